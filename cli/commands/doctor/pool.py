"""What the monitors say of the pool: whether it can hold logs, and whether there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from zlog import Store, StoreTimeout, StoreUnavailable
from zlog.admin import ask_monitors
from zlog.cli.ceph import Target, new_client
from zlog.cli.commands.doctor.diagnosis import Diagnosis, Level, ok

_ERASURE = 3
"""``type`` of an erasure-coded pool in the monitors' answers (osd_types.h)."""

_COPIES = 3
"""Ceph's own default size of a pool. With fewer OSDs than copies nothing is fully stored."""

_GROUPS_MAX = 3
"""Placement groups that are named."""

_WHOLE_OBJECTS = "osd_object_clean_region_max_num_intervals"
"""With 0, an OSD that missed writes is sent the objects concerned as a whole."""

_FIND_MONITOR = "ceph -s   # shows which monitors are down"
_PART = "pool"


def examine(store: Store, url: str, seconds: float) -> Iterator[Diagnosis]:
    """Look at the pool, and at what concerns it of the cluster's health.

    Args:
        store: in that pool.
        url: of the store.
        seconds: how long each answer may take.
    """
    ask = partial(ask_monitors, store, timeout=seconds)
    try:
        pools = ask("osd pool ls", detail="detail")
        found = next((each for each in pools if each["pool_name"] == store.pool), None)
        if found is None:
            return  # it was removed since the store was opened
        yield _copies(found, len(ask("osd ls")))
        if found["type"] != _ERASURE and found["size"] > 1:
            yield _recovery(ask)
        yield from _room(found)
        yield from _health(found, ask("health", detail="detail"))
    except StoreUnavailable as error:
        late = isinstance(error, StoreTimeout)
        mend = _FIND_MONITOR if late else new_client(Target.parse(url))
        yield Diagnosis(_PART, Level.WARNING, str(error), mend)


def _copies(pool: dict[str, Any], osds: int) -> Diagnosis:
    name, size = pool["pool_name"], pool["size"]
    if pool["type"] == _ERASURE:
        return Diagnosis(
            _PART,
            Level.FAILURE,
            f"{name!r} is erasure coded; logs need a replicated pool, which can hold keys",
            f"ceph osd pool create {name}-replicated 32 32 replicated, and use"
            f" --store ceph://{name}-replicated",
        )
    if size > 1:
        return ok(
            _PART, f"{name!r} is replicated: {size} copies, appends go on with {pool['min_size']}"
        )
    return Diagnosis(
        _PART,
        Level.WARNING,
        f"{name!r} keeps one copy: entries die with the disk they are on",
        f"ceph osd pool set {name} size {_COPIES}"
        if osds >= _COPIES
        else f"add OSDs: the cluster has {osds}, and {_COPIES} copies need {_COPIES}",
    )


def _recovery(ask: Callable[..., Any]) -> Diagnosis:
    """Look whether recovery may lose acknowledged entries, as it may with Ceph's defaults."""
    part = "recovery"
    try:
        intervals = ask("config get", who="osd", key=_WHOLE_OBJECTS)
    except StoreTimeout:
        raise
    except StoreUnavailable as error:  # caps that don't allow it, or a release without the option
        text = f"whether it copies objects as a whole can't be told: {error}"
        return Diagnosis(part, Level.NOTE, text, f"ceph config get osd {_WHOLE_OBJECTS}")
    if intervals == 0:
        return ok(part, "copies objects as a whole")
    return Diagnosis(
        part,
        Level.WARNING,
        "copies parts of objects: entries may get lost where OSDs freeze shortly after each other",
        f"ceph config set osd {_WHOLE_OBJECTS} 0",
    )


def _room(pool: dict[str, Any]) -> Iterator[Diagnosis]:
    """Look at the flags that the monitors put on a pool while it, or an OSD under it, is full.

    Source: Ceph, ``src/osd/osd_types.h``, ``pg_pool_t::FLAG_FULL`` and those after it.
    """
    name, flags = pool["pool_name"], pool["flags_names"].split(",")
    if "full_quota" in flags:
        yield Diagnosis(
            _PART,
            Level.FAILURE,
            f"{name!r} has used up its quota: appends wait until there is room",
            f"trim logs, or raise it with ceph osd pool set-quota; ceph osd pool get-quota {name}"
            " shows it",
        )
    elif "full" in flags:
        yield Diagnosis(
            _PART,
            Level.FAILURE,
            f"{name!r} is full: appends wait until there is room",
            "trim logs, or add OSDs; ceph osd df shows which ones are full",
        )
    elif "nearfull" in flags or "backfillfull" in flags:
        yield Diagnosis(
            _PART,
            Level.WARNING,
            f"{name!r} is nearly full: appends wait once an OSD under it is",
            "trim logs, or add OSDs; ceph osd df shows how full they are",
        )


def _health(pool: dict[str, Any], health: dict[str, Any]) -> Iterator[Diagnosis]:
    """Pass on what concerns the pool; the rest is `ceph -s`'s own business."""
    checks: dict[str, Any] = health.get("checks", {})
    own = f"pg {pool.get('pool_id')}."
    details = checks.get("PG_AVAILABILITY", {}).get("detail", [])
    stuck = [each["message"] for each in details if each["message"].startswith(own)]
    if stuck:
        yield Diagnosis(
            _PART,
            Level.WARNING,
            f"{pool['pool_name']!r} has placement groups that do not answer:"
            f" {'; '.join(stuck[:_GROUPS_MAX])}",
            "ceph health detail",
        )
    for name in ("OSD_DOWN", "OSD_HOST_DOWN"):
        if name in checks:
            text = f"{name}: {checks[name]['summary']['message']}"
            yield Diagnosis("cluster", Level.WARNING, text, "ceph health detail")
