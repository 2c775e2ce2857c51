"""Cursors that keep trims from passing entries with a stream's state."""

from __future__ import annotations

from contextlib import suppress

import msgspec

import zlog
import zlog.aio

FORK = "ds:fork"
"""A fork was made or removed; the entry's data says which."""
_FORKS = "ds.forks"


async def hold_end(log: zlog.aio.Log, position: int) -> None:
    """Hold the entry that closes or deletes a stream."""
    with suppress(zlog.Invalidated):  # it was trimmed meanwhile
        await log.cursor("ds.end", create=position)


async def hold_forks(log: zlog.aio.Log, new: int | None = None) -> None:
    """Hold the entries that register forks: a new one, or None after a fork was removed."""
    with suppress(zlog.Invalidated, zlog.CursorNotFound):
        if new is not None and (await log.cursor(_FORKS, create=new)).position <= new:
            return
        if not await registered(log):
            await (await log.cursor(_FORKS)).remove()
        # A fork that is registered meanwhile may rely on the cursor.
        if forks := await registered(log):
            oldest = min(entry.position for entry in forks.values())
            await (await log.cursor(_FORKS, create=oldest)).reset(oldest)


async def registered(log: zlog.aio.Log) -> dict[str, zlog.Entry]:
    """Return the entries that register forks, by the ids of the forks that were not removed."""
    found: dict[str, zlog.Entry] = {}
    async for item in log.read_range(tags=(FORK,)):
        if isinstance(item, zlog.Entry):
            _, fork_id, exists = msgspec.json.decode(item.data)
            found[fork_id] = item
            if not exists:
                del found[fork_id]
    return found
