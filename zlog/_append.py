"""Appending: ask for positions, write there, and know for certain what became of every entry.

Each entry carries its append id, the writer's id and a number. The class answers "that very entry
is here already" before it looks at the epoch, so each answer of a write is definite:

- OK: the entry is at this position, now or since an attempt whose reply was lost.
- READ_ONLY: somebody else's entry, junk or a trim is there; this one is not and never will be.
- STALE_EPOCH: it is not there, and the seal keeps it out.

Only after READ_ONLY or STALE_EPOCH does an entry move on to another position. An entry is
therefore at one position at most, also when the call ends in a time-out.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Sequence
from typing import NamedTuple

from zlog import _native
from zlog._codes import Code
from zlog._deadline import Deadline
from zlog._io import Call
from zlog._layout import Layout
from zlog._positions import Positions
from zlog.errors import CorruptEntry, EntryTooLarge, ZlogError, from_errno
from zlog.view import ObjectRef, View

ENTRY_BYTES_MAX_DEFAULT = 1 << 20

_ROUND_ENTRIES_MAX = 16384
_ROUND_BYTES_MAX = 16 << 20
"""What one grant covers at most; longer lists go in several rounds, one after the other."""


class _Slot(NamedTuple):
    """A position, and which of the entries in hand is about to be written there."""

    position: int
    entry: int


class _Round(NamedTuple):
    """What became of one attempt to write some entries."""

    bumped: list[int]
    stale: bool
    missing: str | None
    error: ZlogError | None


class Appender:
    """Appends entries under one writer id, which no other process or log handle uses."""

    def __init__(self, layout: Layout, positions: Positions, entry_bytes_max: int) -> None:
        self._layout = layout
        self._io = layout.io
        self._positions = positions
        self._entry_bytes_max = entry_bytes_max
        self._writer = os.urandom(16)
        self._numbers = itertools.count()

    async def append(self, entries: Sequence[bytes], deadline: Deadline) -> list[int]:
        """Append entries; returns their positions, in the entries' order.

        Positions ascend unless a reader filled one of them meanwhile: such an entry goes to a
        later position than its successors (docs/design.md, "Order within a batch").

        Raises:
            EntryTooLarge: before anything was sent.
            ZlogError: with ``positions`` set to what was acknowledged until then (None: not
                acknowledged, and for a StoreTimeout possibly in the log all the same).
        """
        for index, data in enumerate(entries):
            if len(data) > self._entry_bytes_max:
                raise EntryTooLarge(
                    f"entry {index} has {len(data)} bytes; log {self._layout.view.log!r} takes"
                    f" up to {self._entry_bytes_max}"
                )
        numbers = [next(self._numbers) for _ in entries]
        positions: list[int | None] = [None] * len(entries)
        try:
            for start, end in _rounds(entries):
                await self._append_round(
                    entries, numbers, list(range(start, end)), positions, deadline
                )
        except ZlogError as error:
            error.positions = tuple(positions)
            raise
        return [position for position in positions if position is not None]

    async def _append_round(
        self,
        entries: Sequence[bytes],
        numbers: Sequence[int],
        pending: list[int],
        positions: list[int | None],
        deadline: Deadline,
    ) -> None:
        timestamp = self._io.wall_clock_us()
        while pending:
            view, first = await self._positions.grant(len(pending), deadline)
            slots = [_Slot(first + offset, index) for offset, index in enumerate(pending)]
            done = await self._write(view, slots, entries, numbers, timestamp, positions, deadline)
            if done.error is not None:
                raise done.error
            pending = done.bumped
            if done.stale:
                await self._layout.advance(view, deadline)
            elif done.missing:
                newest = await self._layout.refresh(deadline)
                if newest.epoch == view.epoch:
                    raise CorruptEntry(f"stripe object {done.missing} is missing")

    async def _write(
        self,
        view: View,
        slots: Sequence[_Slot],
        entries: Sequence[bytes],
        numbers: Sequence[int],
        timestamp: int,
        positions: list[int | None],
        deadline: Deadline,
    ) -> _Round:
        """Write entries at their positions, one operation per object, all at the same time.

        An object takes all or none of its entries. Where somebody was faster at one position, the
        others of that object are sent again without it.
        """
        bumped: list[int] = []
        stale = False
        missing: str | None = None
        error: ZlogError | None = None
        groups = _by_object(view, slots)
        while groups:
            calls = [
                Call(
                    ref.name,
                    "write",
                    _native.encode_write(
                        view.epoch,
                        timestamp,
                        self._writer,
                        ref.stride,
                        [slot.position for slot in group],
                        [numbers[slot.entry] for slot in group],
                        [entries[slot.entry] for slot in group],
                    ),
                )
                for ref, group in groups.items()
            ]
            again: dict[ObjectRef, list[_Slot]] = {}
            replies = await self._io.execute(calls, deadline)
            for (ref, group), reply in zip(groups.items(), replies, strict=True):
                if reply.code == Code.OK:
                    for slot in group:
                        positions[slot.entry] = slot.position
                elif reply.code == Code.READ_ONLY:
                    taken = _native.decode_position(reply.payload)
                    bumped += (slot.entry for slot in group if slot.position == taken)
                    if rest := [slot for slot in group if slot.position != taken]:
                        again[ref] = rest
                elif reply.code == Code.STALE_EPOCH or reply.code == -errno.ENOENT:
                    bumped += (slot.entry for slot in group)
                    stale = stale or reply.code == Code.STALE_EPOCH
                    missing = ref.name if reply.code < 0 else missing
                else:
                    what = f"append to log {view.log!r}, object {ref.name}"
                    error = from_errno(reply.code, what)
            groups = again
        return _Round(sorted(bumped), stale, missing, error)


def _by_object(view: View, slots: Sequence[_Slot]) -> dict[ObjectRef, list[_Slot]]:
    """Sort positions of the live stripe by the object that holds them."""
    stripe = view.live_stripe
    groups: dict[int, list[_Slot]] = {}
    for slot in slots:
        groups.setdefault(slot.position % stripe.width, []).append(slot)
    return {view.object_at(stripe, index): group for index, group in groups.items()}


def _rounds(entries: Sequence[bytes]) -> list[tuple[int, int]]:
    """Cut a list into ranges that one grant and one write per object may carry."""
    ranges: list[tuple[int, int]] = []
    start = size = 0
    for index, data in enumerate(entries):
        if index > start and (
            index - start >= _ROUND_ENTRIES_MAX or size + len(data) > _ROUND_BYTES_MAX
        ):
            ranges.append((start, index))
            start, size = index, 0
        size += len(data)
    if start < len(entries):
        ranges.append((start, len(entries)))
    return ranges
