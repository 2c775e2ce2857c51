"""Finding out whether a write was left unanswered because the store is full.

A full Ceph cluster holds writes that add data back until there is room. To a waiting
writer it looks like a slow cluster; the monitor knows better.
"""

from __future__ import annotations

from typing import Any

from zlog._base import monitor
from zlog._base.io import Io, deadline_of
from zlog.errors import StoreTimeout, StoreUnavailable

_SECONDS = 1.0
"""How long the monitor has for its answer, after the caller's own time was up."""

_HINT = (
    "Make room: `zlog trim` and `zlog rm` work on a full cluster; or add OSDs. The"
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
    try:
        health = await monitor.ask(io, deadline_of(io, _SECONDS), "health", detail="detail")
    except StoreUnavailable:
        return ""  # the store has no monitors, they do not answer, or it was closed meanwhile
    return full_pool(health, io.store.pool)


def full_pool(health: Any, pool: str) -> str:
    """Return what the monitors' health says of a pool that is full; else empty.

    Source: https://docs.ceph.com/en/pacific/rados/operations/health-checks (POOL_FULL, which an
    OSD that is full brings about for every pool on it).
    """
    try:
        messages = [str(each["message"]) for each in health["checks"]["POOL_FULL"]["detail"]]
    except (KeyError, TypeError):
        return ""
    return next((message for message in messages if f"'{pool}'" in message), "")
