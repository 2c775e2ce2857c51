"""What tests do to a log below its interface, and what they look at in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar, cast
from zlib import crc32

import zlog
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._base.names import head_object
from zlog._io import drive
from zlog._native import messages
from zlog._native.writes import encode_write

T = TypeVar("T")

UNITS = (1, 2, 8)
"""Of logs whose few entries are to lie in several objects."""

TAGS = ("even", *(f"kind-{number}" for number in range(4)))

_UNTRUSTED = b"a stranger's id."


def data_of(items: Iterable[zlog.Entry | zlog.Gap]) -> list[bytes]:
    """Return the data of the entries among what a log or a range of it gives."""
    return [item.data for item in items if isinstance(item, zlog.Entry)]


def data_without_gap(log: zlog.Log, start: int = 0) -> list[bytes]:
    """Return the data that a log has from a position on, where no entry may be missing."""
    items = list(log.read_range(start))
    assert all(isinstance(item, zlog.Entry) for item in items), items
    return data_of(items)


def by_position(items: Iterable[zlog.Entry | zlog.Gap]) -> dict[int, bytes | zlog.GapKind]:
    """Return the data of an entry or the kind of a gap for each position."""
    return {
        position: item.data if isinstance(item, zlog.Entry) else item.kind
        for item in items
        for position in range(item.position, item.end)
    }


def tags_of(entry: bytes) -> tuple[str, ...]:
    """Return up to two tags of an entry, by what it is: every third one has none."""
    kind = crc32(entry) % 3
    return (TAGS[0], TAGS[1 + entry[-1] % 4])[:kind]


async def all_of(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Wait until all calls have ended; returns their results, or raises the first error."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("list[T]", results)


def leave_hole(log: zlog.Log, count: int = 1) -> int:
    """Take positions and never write them, as an appender that dies; returns the first."""
    client = log._client
    return drive(client.positions.grant(count, deadline_of(client.io, 10)))[1]


def new_epoch(log: zlog.Log) -> zlog.View:
    """Bring in the same layout in a new epoch, as a new sequencer or an abandoned change does."""
    client = log._client
    return drive(client.layout.change(lambda view: view, deadline_of(client.io, 10)))


def raise_tail(log: zlog.Log, tail: int) -> int:
    """Show the log's head a tail, as a client that was given it; returns the code."""
    request = messages.tail_raise(log.view.log_id, log.view.epoch, tail)
    return log.store.execute(head_object(log.name), "tail_raise", request)[0]


def fill_at(log: zlog.Log, positions: Sequence[int]) -> int:
    """Fill positions of one object, whether they were handed out or not; returns the code."""
    ref = log.view.object_of(positions[0])
    request = messages.fill(log.view.epoch, 1, _UNTRUSTED, 0, ref.striping.packed, positions)
    return log.store.execute(ref.name, "fill", request)[0]


def write_at(log: zlog.Log, position: int) -> int:
    """Write to a position, whether it was handed out or not; returns the code."""
    ref = log.view.object_of(position)
    request = encode_write(
        log.view.epoch, 0, _UNTRUSTED, ref.striping.packed, [position], [0], [b"far"]
    )
    return log.store.execute(ref.name, "write", request)[0]


def after_first_grant(log: zlog.Log, action: Callable[[int], object]) -> list[int]:
    """Do something between the first grant of positions and their use.

    Args:
        log: the handle whose grant it is.
        action: is told the first position that was granted.

    Returns:
        how many positions each grant had, kept up while the handle is used.
    """
    inner = log._client.positions.grant
    counts: list[int] = []

    async def grant(count: int, deadline: Deadline) -> tuple[zlog.View, int]:
        view, position = await inner(count, deadline)
        counts.append(count)
        if len(counts) == 1:
            action(position)
        return view, position

    log._client.positions.grant = grant  # type: ignore[method-assign]
    return counts


def is_there(store: zlog.Store, name: str) -> bool:
    """Whether there is such a log, and it is finished: a listing does not tell."""
    try:
        zlog.Log.open(store, name).close()
    except zlog.LogNotFound:
        return False
    return True
