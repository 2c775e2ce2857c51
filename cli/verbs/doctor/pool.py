"""What the monitors say of the cluster and of the pool, through python-rados where it is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from zlog.cli.ceph import Target, connected, new_client
from zlog.cli.verbs.doctor.diagnosis import Diagnosis, Level, ok

_ERASURE = 3
"""``type`` of an erasure-coded pool in the monitors' answers (osd_types.h)."""

_COPIES = 3
"""Ceph's own default size of a pool. With fewer OSDs than copies nothing is fully stored."""

_FULL = frozenset(("OSD_FULL", "POOL_FULL"))


def examine(url: str, seconds: float) -> Iterator[Diagnosis]:
    """Look at the pool and at the cluster's health.

    Args:
        url: of the store.
        seconds: how long connecting and each answer may take.
    """
    try:
        import rados
    except ImportError:
        text = "not looked at, because python-rados is not there: it may be erasure coded or full"
        yield Diagnosis("pool", Level.NOTE, text)
        return
    target = Target.parse(url)
    try:
        with connected(url, seconds) as (cluster, _):
            pools = _ask(cluster, "osd pool ls", seconds, detail="detail")
            yield from _pool(target, pools, len(_ask(cluster, "osd ls", seconds)))
            yield from _health(_ask(cluster, "health", seconds, detail="detail"))
    except rados.Error as error:
        yield Diagnosis(
            "pool",
            Level.WARNING,
            f"the monitors don't tell this client about it: {error}",
            new_client(target),
        )


def _ask(cluster: Any, prefix: str, seconds: float, **others: str) -> Any:
    import rados

    command = json.dumps({"prefix": prefix, "format": "json", **others})
    code, answer, status = cluster.mon_command(command, b"", timeout=max(1, int(seconds)))
    if code:
        raise rados.Error(status or f"`{prefix}` answered {code}")
    return json.loads(answer)


def _pool(target: Target, pools: list[dict[str, Any]], osds: int) -> Iterator[Diagnosis]:
    found = next((each for each in pools if each["pool_name"] == target.pool), None)
    if found is None:
        return  # connecting has said so
    name = target.pool
    if found["type"] == _ERASURE:
        yield Diagnosis(
            "pool",
            Level.FAILURE,
            f"{name!r} is erasure coded; logs need a replicated pool, which can hold keys",
            f"ceph osd pool create {name}-replicated 32 32 replicated, and use"
            f" --store ceph://{name}-replicated",
        )
        return
    size, least = found["size"], found["min_size"]
    if size == 1:
        yield Diagnosis(
            "pool",
            Level.WARNING,
            f"{name!r} keeps one copy: entries die with the disk they are on",
            f"ceph osd pool set {name} size {_COPIES}"
            if osds >= _COPIES
            else f"add OSDs: the cluster has {osds}, and {_COPIES} copies need {_COPIES}",
        )
    else:
        text = f"{name!r} is replicated: {size} copies, appends go on with {least}"
        yield ok("pool", text)


def _health(health: dict[str, Any]) -> Iterator[Diagnosis]:
    """Pass on what concerns data; the rest is `ceph -s`'s own business."""
    checks: dict[str, Any] = health.get("checks", {})
    for name, check in sorted(checks.items()):
        text = f"{name}: {check['summary']['message']}"
        if name in _FULL:
            yield Diagnosis("cluster", Level.FAILURE, text, "trim logs, or add space")
        elif name.endswith("FULL") or name in ("OSD_DOWN", "PG_AVAILABILITY", "OSD_HOST_DOWN"):
            yield Diagnosis("cluster", Level.WARNING, text, "ceph health detail")
