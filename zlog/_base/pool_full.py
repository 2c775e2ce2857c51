"""Finding out whether a write was left unanswered because the store is full.

A full Ceph cluster holds writes that add data back until there is room. To a waiting
writer it looks like a slow cluster; the monitor knows better.
"""

from __future__ import annotations

import json
from typing import Any

from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io
from zlog.errors import StoreTimeout, StoreUnavailable

_SECONDS = 1.0
"""How long the monitor has for its answer, after the caller's own time was up."""

_HINT = (
    "Make room: `zlog trim LOG --to P` and `zlog rm LOG` work on a full cluster; or add OSDs. The"
    " operation waits in Ceph, and may take effect when there is room."
)


async def explain(io: Io, error: StoreTimeout) -> None:
    """Have a write's time-out say that the store is full, if it is. Asks the monitor, on Ceph."""
    why = await _full(io)
    if why:
        error.args = (f"{error}: {why}",)
        error.hint = _HINT


async def _full(io: Io) -> str:
    """Return why the store takes no data, in Ceph's words; empty when it does, or can't tell."""
    deadline = Deadline(_SECONDS, io.monotonic)
    try:
        (reply,) = await io.execute([Call("", "mon.health", b"")], deadline)
    except StoreUnavailable:
        return ""  # it was closed meanwhile, which is why no answer came
    return "" if reply.code else full_pool(bytes(reply.payload), io.store.pool)


def full_pool(health: bytes, pool: str) -> str:
    """Return what the monitor's health, in JSON, says of a pool that is full; else empty.

    Source: https://docs.ceph.com/en/pacific/rados/operations/health-checks (POOL_FULL, which an
    OSD that is full brings about for every pool on it).
    """
    try:
        found: Any = json.loads(health)
        details = found["checks"]["POOL_FULL"]["detail"]
        messages = [str(each["message"]) for each in details]
    except (ValueError, KeyError, TypeError):
        return ""
    return next((message for message in messages if f"'{pool}'" in message), "")
