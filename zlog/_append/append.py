"""Appending: ask for positions, write there, and know for certain what became of every entry.

Each entry carries its append id, the writer's id and a number. The class answers "that very entry
is here already" before it looks at the epoch, so these answers of a write are definite:

- OK: the entry is at this position, now or since an attempt whose reply was lost.
- READ_ONLY: another entry, junk or a trim is there; this one is not and never will be.
- STALE_EPOCH: it is not there, and the seal keeps it out.
- BEYOND_STRIPE: no entry can be there; only an epoch above this one might change that.
- ALIKE: nothing was done; whether the entry is there, its data tells (:mod:`zlog._append.same_id`).
- REQUEST_TOO_NEW: nothing was done; an older class takes entries that are not compressed, and none
  with tags.

Any other answer ends the call. Two are indefinite, since it may be this entry that is there or
another one: UNREADABLE, where a newer class stored it; and LOST, where it is damaged or gone, and
may be put back from another copy.

Only after READ_ONLY, STALE_EPOCH, BEYOND_STRIPE, or ALIKE and other data, does an entry move
on to another position. An entry is therefore at one position at most, also when the call ends in a
time-out. After STALE_EPOCH it keeps its position if a later entry of the batch is written, so that
a change of the layout does not reorder the batch.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from zlog._append.compression import Compression
from zlog._append.outcomes import Failed
from zlog._append.roll import RollWatch
from zlog._append.same_id import AppendId, compare
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.pool_full import explain
from zlog._base.refusals import from_code
from zlog._layout.layout import Layout
from zlog._native.mutex import Mutex
from zlog._native.new_entries import entries_check, entries_cut, entries_owned
from zlog._native.writes import encode_write, encode_writes
from zlog._positions.positions import refusal
from zlog._replica.repair import answers
from zlog.errors import (
    ClassNotLoaded,
    CorruptEntry,
    EntryTooLarge,
    StoreTimeout,
    ZlogError,
)
from zlog.limits import APPEND_BYTES_MAX, APPEND_ENTRIES_MAX
from zlog.view import ObjectRef, View

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry

_BUMPS_MAX = 8
"""How often in a row an entry may find the position taken that a sequencer has handed out. Readers
fill few of them; what fills many gets ahead of the sequencer, and only another epoch passes it."""


class Grants(Protocol):
    """Where positions to write to come from."""

    async def grant(self, count: int, deadline: Deadline) -> tuple[View, int]:
        """Return a view and the first of ``count`` positions to use in that view only."""
        ...


class Appender:
    """Appends entries under one writer id, whose numbers no other appender uses.

    Args:
        layout: of the log.
        positions: where they come from.
        writer: the id.
        entry_bytes_max: of one entry.
        number: the first append's.
    """

    def __init__(
        self,
        layout: Layout,
        positions: Grants,
        writer: bytes,
        entry_bytes_max: int,
        *,
        number: int = 0,
    ) -> None:
        self._layout = layout
        self._positions = positions
        self.entry_bytes_max = entry_bytes_max
        self._writer = writer
        self._number = number
        self._rolls = RollWatch(layout)
        self.compression = Compression()
        self._lock = Mutex()

    async def append(self, entries: Sequence[NewEntry], deadline: Deadline) -> list[int]:
        """Append entries; returns their positions, in the entries' order.

        Positions ascend unless a reader or another writer takes one of them first: that entry gets
        a position above its successors (docs/design.md, "Order within a batch").

        Raises:
            EntryTooLarge: before anything was sent.
            ZlogError: with ``positions`` set to what was acknowledged until then (None: not
                acknowledged, and for a StoreTimeout possibly in the log all the same).
        """
        self.check(entries)
        entries = entries_owned(entries)
        positions: list[int] = []
        start = 0
        while start < len(entries):
            end = entries_cut(entries, start, APPEND_ENTRIES_MAX, APPEND_BYTES_MAX)
            appended = await self.append_round(entries, start, end, deadline)
            if isinstance(appended, Failed):
                raise appended.error_of_all(positions, len(entries) - end)
            positions += appended
            start = end
        return positions

    async def append_round(
        self, entries: Sequence[NewEntry], start: int, end: int, deadline: Deadline
    ) -> Sequence[int] | Failed:
        """Append ``entries[start:end]``, which were checked and are few enough for one round.

        Returns their positions, in the entries' order; or what they failed with.
        """
        count = end - start
        if self._rolls.alert:
            await self._rolls.act(deadline)
        shared = (self._layout, self._rolls, self.compression, self._writer)
        work = _Round(*shared, entries, start, self._take(count))
        try:
            appended = await work.append(count, self._positions, deadline)
        except ZlogError as error:
            if isinstance(error, StoreTimeout):
                await explain(self._layout.io, error)
            return Failed(error, work.acknowledged(count))
        if not self._layout.view.sequencer:
            self._layout.head.announce()
        return appended

    def check(self, entries: Sequence[NewEntry]) -> None:
        """Raise EntryTooLarge, or TypeError for what is no bytes, before anything is sent."""
        found = entries_check(entries, self.entry_bytes_max)
        if found is not None:
            raise EntryTooLarge(
                f"entry {found[0]} has {found[1]} bytes; log {self._layout.view.log!r} takes up to"
                f" {self.entry_bytes_max}"
            )

    def _take(self, count: int) -> int:
        """Return the first of ``count`` append numbers, which are given out once."""
        with self._lock:
            number = self._number
            self._number += count
            return number


class _Slot(NamedTuple):
    """A position, and which entry of the round is about to be written there."""

    position: int
    entry: int


_Groups = dict[ObjectRef, list[_Slot]]


class _Round:
    """Entries that travel together: one grant, one write per stripe object, all at once.

    In the usual case every object takes its share, and no entry is looked at one by one. Where an
    object refuses, its entries are sorted out: see :meth:`_sort`.
    """

    def __init__(
        self,
        layout: Layout,
        rolls: RollWatch,
        compression: Compression,
        writer: bytes,
        entries: Sequence[NewEntry],
        start: int,
        number: int,
    ) -> None:
        self._layout = layout
        self._rolls = rolls
        self._compression = compression
        self._sent = "none"  # what compressed that which was sent last
        self._writer = writer
        self._entries = entries
        self._start = start
        self._number = number
        self._timestamp = layout.io.wall_clock_us()
        self._acknowledged: dict[int, int] = {}
        self._bumped: list[int] = []
        self._sealed: _Groups = {}  # refused since an object has a newer epoch
        self._sealed_at = 0  # the highest of these epochs
        self._beyond = False
        self._missing = ""

    def acknowledged(self, count: int) -> list[int | None]:
        """Return the positions acknowledged so far, None for the other entries."""
        return [self._acknowledged.get(index) for index in range(count)]

    async def append(self, count: int, positions: Grants, deadline: Deadline) -> Sequence[int]:
        """Append ``count`` entries and return their positions."""
        layout = self._layout
        view, first = await positions.grant(count, deadline)
        calls, indexes = self._all_at_once(view, first, count)
        replies = await layout.io.execute(calls, deadline)
        if not any(reply.code for reply in replies):
            self._rolls.note(view, replies, first + count)
            return range(first, first + count)
        replies = await answers(layout.io, calls, replies, deadline)
        slots = [_Slot(first + index, index) for index in range(count)]
        groups = _by_object(view, slots)
        by_index = dict(zip(indexes, replies, strict=True))
        replies = [by_index[ref.number] for ref in groups]
        bumps = 0
        while True:
            await self._take_answers(view, groups, replies, deadline)
            if not (self._bumped or self._sealed):
                return [self._acknowledged[index] for index in range(count)]
            bumps += 1
            self._beyond = self._beyond or (bool(view.sequencer) and bumps % _BUMPS_MAX == 0)
            await self._catch_up(view, deadline)
            view, groups = await self._assign(positions, deadline)
            replies = await layout.io.execute(self._calls(view, groups), deadline)

    async def _assign(self, positions: Grants, deadline: Deadline) -> tuple[View, _Groups]:
        """Return where the refused entries go next, and the view to write them in.

        An entry below an acknowledged one keeps its position: the change of the layout that refused
        it found that one written, so the new tail is above both, and neither is handed out again.
        """
        view = self._layout.view  # before what is looked up in it, or in a newer one
        sealed, self._sealed = self._sealed, {}
        groups = await self._kept(sealed, deadline)
        if self._bumped:
            pending, self._bumped = sorted(self._bumped), []
            view, first = await positions.grant(len(pending), deadline)
            groups = await self._kept(groups, deadline)
            slots = [_Slot(first + offset, index) for offset, index in enumerate(pending)]
            for ref, group in _by_object(view, slots).items():
                groups[ref] = groups.get(ref, []) + group
        elif (refused := refusal(view)) is not None:
            raise refused
        return view, groups

    async def _kept(self, refused: _Groups, deadline: Deadline) -> _Groups:
        """Return those refused entries that keep their positions; the others need new ones."""
        kept: _Groups = {}
        last = max(self._acknowledged.values(), default=-1)
        for ref, group in refused.items():
            below = [slot for slot in group if slot.position < last]
            if below and await self._holds(ref, below[-1].position, deadline):
                kept[ref] = below
            else:
                below = []
            self._bumped += (slot.entry for slot in group[len(below) :])
        return kept

    async def _holds(self, ref: ObjectRef, position: int, deadline: Deadline) -> bool:
        """Whether an object still has a position: not if it is trimmed, or after a rescue."""
        layout = self._layout
        stripe = await layout.stripe_at(position, deadline)
        view = layout.view
        return (
            stripe is not None
            and position >= view.trim_point
            and ref in layout.objects(view, stripe)
        )

    def _all_at_once(self, view: View, first: int, count: int) -> tuple[list[Call], list[int]]:
        stripe = view.live_stripe
        self._sent = self._compression.of(view)
        requests = encode_writes(
            view.epoch,
            self._timestamp,
            self._writer,
            stripe.spacing.packed,
            first,
            self._number,
            self._entries,
            self._start,
            self._start + count,
            self._sent,
            self._layout.macs.key,
        )
        refs = self._layout.objects(view, stripe)
        calls = [Call(refs[index].name, "write", request) for index, request in requests]
        return calls, [index for index, _ in requests]

    def _calls(self, view: View, groups: _Groups) -> list[Call]:
        return [
            Call(
                ref.name,
                "write",
                encode_write(
                    view.epoch,
                    self._timestamp,
                    self._writer,
                    ref.spacing.packed,
                    [slot.position for slot in group],
                    [self._number + slot.entry for slot in group],
                    [self._entries[self._start + slot.entry] for slot in group],
                    mac=self._layout.macs.key,
                ),
            )
            for ref, group in groups.items()
        ]

    async def _take_answers(
        self, view: View, groups: _Groups, replies: Sequence[Reply], deadline: Deadline
    ) -> None:
        """Bring every entry to a definite answer at its position in ``view``."""
        error = None
        while True:
            again: _Groups = {}
            sent, self._sent = self._sent, "none"
            for (ref, group), reply in zip(groups.items(), replies, strict=True):
                if self._compression.refused(view, ref.name, reply.code, sent):
                    rest, failure = group, None
                elif reply.code == Code.ALIKE:
                    rest, failure = await self._take_same_id(ref, group, reply, deadline)
                else:
                    rest, failure = self._take_answer(ref, group, reply)
                if not isinstance(error, StoreTimeout):  # which holds for others as well
                    error = failure or error
                if rest:
                    again[ref] = rest
            if error is not None:
                raise error
            if not again:
                return
            groups = again
            replies = await self._layout.io.execute(self._calls(view, groups), deadline)

    def _take_answer(
        self, ref: ObjectRef, group: list[_Slot], reply: Reply
    ) -> tuple[list[_Slot], ZlogError | None]:
        """Take note of one object's answer, which concerns all entries of the group.

        An object takes all or none. Where another writer was faster at one position, that entry
        needs another one, and the rest is returned, to be sent again without it.
        """
        if reply.code == Code.OK:
            self._acknowledged.update((slot.entry, slot.position) for slot in group)
        elif reply.code == Code.READ_ONLY:
            taken = reply.number
            self._bumped += (slot.entry for slot in group if slot.position == taken)
            return [slot for slot in group if slot.position != taken], None
        elif reply.code == Code.STALE_EPOCH:
            self._sealed[ref] = group
            self._sealed_at = max(self._sealed_at, reply.number)
        elif reply.code in (Code.BEYOND_STRIPE, -errno.ENOENT):
            self._bumped += (slot.entry for slot in group)
            self._beyond = self._beyond or reply.code == Code.BEYOND_STRIPE
            self._missing = ref.name if reply.code < 0 else self._missing
        else:
            what = f"append to log {self._layout.view.log!r}, object {ref.name}"
            if reply.code in (Code.UNREADABLE, Code.LOST):
                return [], _indefinite(what, reply)
            return [], from_code(reply.code, what)
        return [], None

    async def _take_same_id(
        self, ref: ObjectRef, group: list[_Slot], reply: Reply, deadline: Deadline
    ) -> tuple[list[_Slot], ZlogError | None]:
        """Acknowledge the entries that are there; others move on, or are returned."""
        wanted = {
            slot.position: AppendId(
                self._writer, self._number + slot.entry, self._entries[self._start + slot.entry]
            )
            for slot in group
        }
        same = await compare(self._layout, ref, wanted, deadline)
        if same.get(reply.number, False) is None:
            what = f"append to log {self._layout.view.log!r}, object {ref.name}"
            return [], _indefinite(what, reply)
        self._acknowledged.update((s.entry, s.position) for s in group if same.get(s.position))
        self._bumped += (s.entry for s in group if same.get(s.position) is False)
        return [slot for slot in group if same.get(slot.position) is None], None

    async def _catch_up(self, view: View, deadline: Deadline) -> None:
        """Find the newer view, if an object refused this one or is gone; or bring one in.

        That is for positions that are of no use: beyond those that the stripe takes, or taken again
        and again, though a sequencer hands out each once.
        """
        if self._sealed:
            await self._layout.advance(view, deadline, sealed=self._sealed_at)
        elif self._beyond:
            with contextlib.suppress(ClassNotLoaded):  # one that may not has to go on as it is
                await self._layout.renew(view, deadline)
        elif self._missing and not await self._layout.outdated(view, deadline):
            raise CorruptEntry(f"stripe object {self._missing} is missing")
        self._beyond, self._missing = False, ""


def _indefinite(what: str, reply: Reply) -> StoreTimeout:
    why = from_code(reply.code, f"{what}, at position {reply.number}")
    return StoreTimeout(
        f"{why}. It may be this entry, or another one",
        hint=f"Whether the entry is in the log is unknown. {why.hint}",
    )


def _by_object(view: View, slots: Sequence[_Slot]) -> _Groups:
    """Sort positions of the live stripe by the object that holds them."""
    stripe = view.live_stripe
    spacing = stripe.spacing
    groups: dict[int, list[_Slot]] = {}
    for slot in slots:
        groups.setdefault(spacing.number(slot.position), []).append(slot)
    return {view.object_at(stripe, index): group for index, group in groups.items()}
