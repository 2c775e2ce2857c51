"""Every OSD's copy of a pool's objects, to be compared: where each OSD has all of them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..support.ceph import CephCluster

_KEYS_EACH = 500
_BYTES_EACH = 4 << 20
_TIMEOUTS = {"rados_osd_op_timeout": "120", "rados_mon_op_timeout": "120"}
_NOTICED_SECONDS = 60.0


def each_osd_in_turn(cluster: CephCluster) -> Iterator[tuple[int, Any]]:
    """Have one OSD after the other serve all placement groups; gives it and a connection."""
    import rados

    with rados.Rados(conffile=str(cluster.conf), conf=_TIMEOUTS) as client:

        def prefer(wanted: set[int]) -> None:
            for osd in range(cluster.spec.osds):
                weight = 1.0 if osd in wanted else 0.0
                words = {"prefix": "osd primary-affinity", "id": osd, "weight": weight}
                code, _, problem = client.mon_command(json.dumps(words), b"")
                assert code == 0, problem
            client.wait_for_latest_osdmap()

        for osd in range(cluster.spec.osds):
            prefer({osd})
            yield osd, client
        prefer(set(range(cluster.spec.osds)))


def digests(client: Any, pool: str) -> dict[tuple[str, str], str]:
    """What each object's copy holds that is served now, by namespace and name."""
    import rados

    with client.open_ioctx(pool) as io:
        io.set_namespace(rados.LIBRADOS_ALL_NSPACES)
        names = [(each.nspace, each.key) for each in io.list_objects()]
        found = {}
        for namespace, name in names:
            io.set_namespace(namespace)
            found[namespace, name] = _digest(io, name)
    return found


def _digest(io: Any, name: str) -> str:
    """Of the bytes, the attributes and the keys; as words, to see which of them differ."""
    import rados

    size, _ = io.stat(name)
    stream = hashlib.sha256()
    for offset in range(0, size, _BYTES_EACH):
        stream.update(io.read(name, _BYTES_EACH, offset))
    attrs = sorted(io.get_xattrs(name))
    keys: list[tuple[str, bytes]] = []
    more = True
    while more:
        with rados.ReadOpCtx() as op:
            page, _ = io.get_omap_vals(op, keys[-1][0] if keys else "", "", _KEYS_EACH)
            io.operate_read_op(op, name)
            found = list(page)
        keys += found
        more = bool(found)
    held = [stream.digest(), *(repr(each).encode() for each in (attrs, keys))]
    shown = [hashlib.sha256(each).hexdigest()[:12] for each in held]
    return f"{size} bytes {shown[0]}, attributes {shown[1]}, {len(keys)} keys {shown[2]}"


def differences(copies: dict[int, dict[tuple[str, str], str]]) -> list[str]:
    """Say of which objects the OSDs' copies differ, and in what."""
    wrong = []
    for name in sorted({name for copy in copies.values() for name in copy}):
        held = {osd: copy.get(name, "nothing") for osd, copy in copies.items()}
        if len(Counter(held.values())) > 1:
            shown = "; ".join(f"osd.{osd} has {what}" for osd, what in held.items())
            wrong.append(f"{'/'.join(name)}: {shown}")
    return wrong


def remove_keys(cluster: CephCluster, osd: int, name: str) -> None:
    """Take all keys off an object's copy, behind its OSD's back, which is stopped meanwhile."""
    data = cluster.conf.parent / "data" / f"osd.{osd}"
    program = ["ceph-objectstore-tool", "--no-mon-config", "--data-path", str(data)]

    def tool(*words: str) -> list[str]:
        done = subprocess.run([*program, *words], check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    cluster.osd("stop", osd, wait=_NOTICED_SECONDS)
    (found,) = tool("--op", "list", name)
    for key in tool(found, "list-omap"):
        tool(found, "rm-omap", key)
    cluster.osd("start", osd, wait=_NOTICED_SECONDS)
