"""Finding out whether a write timed out because the store is full.

A full Ceph cluster delays writes until there is space. To the writer it looks like a slow cluster,
but the monitors report it.
"""

from __future__ import annotations

from typing import Any

from zlog._base import monitor
from zlog._base.io import Io, deadline_of
from zlog.errors import StoreTimeout, StoreUnavailable

_SECONDS = 1.0
"""Limit of the monitors' answer, after the caller's own timeout."""

_HINT = (
    "Make space: `zlog trim` and `zlog rm` work on a full cluster; or add OSDs. The"
    " operation waits in Ceph, and may take effect when there is space."
)


async def explain(io: Io, error: StoreTimeout) -> None:
    """Add to a write's timeout that the store is full, if the monitors report it."""
    try:
        health = await monitor.ask(io, deadline_of(io, _SECONDS), "health", detail="detail")
    except StoreUnavailable:
        return  # the store has no monitors, they do not answer, or it was closed
    if why := full_pool(health, io.store.pool):
        error.args = (f"{error}: {why}",)
        error.hint = _HINT


def full_pool(health: Any, pool: str) -> str:
    """Return Ceph's message that a pool is full, or an empty string.

    Source: https://docs.ceph.com/en/pacific/rados/operations/health-checks (POOL_FULL, which a full
    OSD causes for every pool on it).
    """
    try:
        messages = [str(each["message"]) for each in health["checks"]["POOL_FULL"]["detail"]]
    except (KeyError, TypeError):
        return ""
    return next((message for message in messages if f"'{pool}'" in message), "")
