"""Appends entries: obtains positions, writes the entries, and determines which are in the log.

Each entry carries an append id, which consists of the writer's id and a number. When the object
class receives a write, it first checks whether it already stores the entry, and only then compares
epochs. The following answers to a write are therefore definite:

- OK: the entry is at this position. An earlier attempt whose reply was lost may have written it.
- READ_ONLY: the position is taken, so it will never hold the entry.
- STALE_EPOCH: the position does not hold the entry, and the object is sealed, so a delayed write
  cannot put it there later.
- BEYOND_STRIPE: the position is above the stripe's end in this epoch, so no entry can be there.
- SAME_ID: the position holds an entry with the same append id. The writer must compare the two
  (:mod:`zlog._append.same_id`).

Any other answer ends the call. After two of these, the entry may be in the log: UNREADABLE, if a
newer class stored an entry at the position, and LOST, if the entry stored there is damaged or gone.

An entry moves to another position only after READ_ONLY, STALE_EPOCH or BEYOND_STRIPE, or after
SAME_ID with other data. It is therefore at one position at most, even if the call times out.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from zlog._append.feedback import RollWatch
from zlog._append.rounds import Failed, indefinite
from zlog._append.same_id import AppendId, compare
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.monitor import explain
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._layout.writes import writes_at
from zlog._native.mutex import Mutex
from zlog._native.new_entries import EntryLimit, NewEntry, entries_check, entries_cut, entries_owned
from zlog._native.rounds import QuickRound
from zlog._native.writes import encode_write
from zlog._positions.positions import check_takes_appends, takes_appends
from zlog._replica.repair import answers
from zlog.errors import ClassNotLoaded, CorruptEntry, EntryTooLarge, StoreTimeout, ZlogError
from zlog.limits import APPEND_BYTES_MAX, APPEND_ENTRIES_MAX
from zlog.view import ObjectRef, View

_BUMPS_MAX = 8
"""How many times in a row an entry's granted position may turn out to be taken before the writer
creates a new view. Readers fill only few positions, but a client that takes many positions without
the sequencer stays ahead of it until the next epoch."""


class Grants(Protocol):
    """Grants positions."""

    async def grant(self, count: int, deadline: Deadline) -> tuple[View, int]:
        """Return a view, and the first of ``count`` positions that are granted in it."""


class Appender:
    """Appends entries under one writer id. It owns all numbers from ``number`` on."""

    def __init__(
        self,
        layout: Layout,
        positions: Grants,
        writer: bytes,
        limit: EntryLimit,
        *,
        number: int = 0,
    ) -> None:
        self.layout = layout
        self.positions = positions
        self.limit = limit
        self.writer = writer
        self.rolls = RollWatch(layout)
        self._number = number
        self._lock = Mutex()

    async def append(self, entries: Sequence[NewEntry], deadline: Deadline) -> list[int]:
        """Append entries and return their positions, in the order of the entries.

        The positions are in ascending order, except when a reader or another writer has taken an
        entry's position first (docs/design/append.md, "Order within a batch").

        Raises:
            EntryTooLarge: an entry is too large. Nothing was sent.
            ZlogError: the error's ``positions`` lists the position of each acknowledged entry, and
                None for each other entry. After a StoreTimeout, the others may be in the log too.
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

    async def append_in_order(
        self,
        entries: Sequence[NewEntry],
        give_back: Callable[[Sequence[int], Deadline], Awaitable[None]],
        deadline: Deadline,
    ) -> None:
        """Append entries so that each is above all earlier ones, with one write after the other.

        An object executes a write completely or not at all. The entries of a refused write and all
        later ones move, and ``give_back`` fills their granted positions.
        """
        self.check(entries)
        entries = entries_owned(entries)
        done = refusals = 0
        while done < len(entries):
            if self.rolls.alert:
                await self.rolls.act(deadline)
            view, first = await self.positions.grant(len(entries) - done, deadline)
            first -= done  # the position of entry 0, if all had consecutive positions
            unit = view.live_stripe.striping.stripe_unit
            while done < len(entries):
                count = min(unit - (first + done) % unit, len(entries) - done)
                now = self.layout.io.wall_clock_us()
                work = _Round(self, entries, done, count, self.take_numbers(count), now)
                if not await work.append_at(view, first + done, refusals, deadline):
                    refusals += 1
                    await give_back(range(first + done, first + len(entries)), deadline)
                    break
                done += count
        if not self.layout.view.sequencer:
            self.layout.head.announce()

    async def append_round(
        self,
        entries: Sequence[NewEntry],
        start: int,
        end: int,
        deadline: Deadline,
        begun: QuickRound | None = None,
    ) -> Sequence[int] | Failed:
        """Append ``entries[start:end]``, already checked, as one round.

        ``begun`` is the same round, if its entries are being written.
        """
        if begun is None:
            if self.rolls.alert:
                await self.rolls.act(deadline)
            number, timestamp = self.take_numbers(end - start), self.layout.io.wall_clock_us()
        else:
            number, timestamp = begun.number, begun.timestamp
        work = _Round(self, entries, start, end - start, number, timestamp)
        try:
            appended = await work.append(deadline, begun)
        except ZlogError as error:
            if isinstance(error, StoreTimeout):
                await explain(self.layout.io, error)
            return Failed(error, work.acknowledged())
        if not self.layout.view.sequencer:
            self.layout.head.announce()
        return appended

    def quick(self, view: View) -> bool:
        """Whether a round in this view needs only a grant of its sequencer and OK replies."""
        macs, store = self.layout.macs, self.layout.io.store
        if macs.missing or store.read_only:
            return False
        return bool(view.sequencer) and takes_appends(view)

    def writes(
        self, view: View, first: int, entries: Sequence[NewEntry], number: int, timestamp: int
    ) -> list[Call]:
        """Return the writes of a round, one per stripe object."""
        append_id = self.writer, number
        return writes_at(self.layout, view, view.live_stripe, first, entries, append_id, timestamp)

    def take_numbers(self, count: int) -> int:
        """Return the first of ``count`` consecutive numbers for appends."""
        with self._lock:
            number = self._number
            self._number += count
            return number

    def check(self, entries: Sequence[NewEntry]) -> None:
        """Raise EntryTooLarge if an entry is too large, or TypeError if it is not bytes."""
        found = entries_check(entries, bytes_max := self.limit.bytes_max)
        if found is not None:
            raise EntryTooLarge(
                f"entry {found[0]} has {found[1]} bytes, but log {self.layout.view.log!r}"
                f" accepts at most {bytes_max}"
            )


class _Slot(NamedTuple):
    """A position, and the entry of the round that is to be written there."""

    position: int
    entry: int


_Groups = dict[ObjectRef, list[_Slot]]


class _Round:
    """Entries that are sent together, with one grant and one write per stripe object.

    If an object refuses a write, the entries in it are sent again, at the same or new positions.
    """

    def __init__(
        self,
        appender: Appender,
        entries: Sequence[NewEntry],
        start: int,
        count: int,
        number: int,
        timestamp: int,
    ) -> None:
        self._appender = appender
        self._layout = appender.layout
        self._entries = entries
        self._start = start
        self._count = count
        self._number = number
        self._timestamp = timestamp
        self._acknowledged: dict[int, int] = {}
        self._bumped: list[int] = []
        self._sealed: _Groups = {}  # refused because an object has a newer epoch
        self._sealed_at = 0  # the highest such epoch
        self._beyond = False
        self._missing = ""
        self._together = False  # whether all entries move if one of them does

    def acknowledged(self) -> list[int | None]:
        """Return each entry's position, or None if the entry is not acknowledged."""
        return [self._acknowledged.get(index) for index in range(self._count)]

    async def append(self, deadline: Deadline, begun: QuickRound | None) -> Sequence[int]:
        """Append the entries and return their positions."""
        layout, positions, count = self._layout, self._appender.positions, self._count
        if begun is None:
            view, first = await positions.grant(count, deadline)
            entries = self._entries[self._start : self._start + count]
            calls = self._appender.writes(view, first, entries, self._number, self._timestamp)
            replies = await layout.io.execute(calls, deadline)
        else:
            view, first, calls = begun.view, begun.first, begun.calls
            replies = await begun.finish(deadline)
        if not any(reply.code for reply in replies):
            self._appender.rolls.note(view, replies, first + count)
            return range(first, first + count)
        replies = await answers(layout.io, calls, replies, deadline)
        slots = [_Slot(first + index, index) for index in range(count)]
        groups = _by_object(view, slots)
        by_object = {call.object: reply for call, reply in zip(calls, replies, strict=True)}
        replies = [by_object[ref.name] for ref in groups]
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

    async def append_at(self, view: View, first: int, refusals: int, deadline: Deadline) -> bool:
        """Write the entries from ``first`` on, in one object. Returns False if it refuses them."""
        self._together = True
        entries = self._entries[self._start : self._start + self._count]
        calls = self._appender.writes(view, first, entries, self._number, self._timestamp)
        replies = await self._layout.io.execute(calls, deadline)
        if not any(reply.code for reply in replies):
            self._appender.rolls.note(view, replies, first + self._count)
            return True
        replies = await answers(self._layout.io, calls, replies, deadline)
        slots = [_Slot(first + index, index) for index in range(self._count)]
        await self._take_answers(view, _by_object(view, slots), replies, deadline)
        if self._bumped or self._sealed:
            self._beyond |= bool(view.sequencer) and (refusals + 1) % _BUMPS_MAX == 0
            await self._catch_up(view, deadline)
            return False
        return True

    async def _assign(self, positions: Grants, deadline: Deadline) -> tuple[View, _Groups]:
        """Choose positions for the refused entries, and return them with the view to write them in.

        A refused entry keeps its position if a later entry of the round was acknowledged, because
        the two must stay in order. No other client is granted that position: the new view's tail is
        above the acknowledged entry.
        """
        view = self._layout.view  # may change in the calls below
        sealed, self._sealed = self._sealed, {}
        groups = await self._kept(sealed, deadline)
        if self._bumped:
            pending, self._bumped = sorted(self._bumped), []
            view, first = await positions.grant(len(pending), deadline)
            groups = await self._kept(groups, deadline)
            slots = [_Slot(first + offset, index) for offset, index in enumerate(pending)]
            for ref, group in _by_object(view, slots).items():
                groups[ref] = groups.get(ref, []) + group
        else:
            check_takes_appends(view)
        return view, groups

    async def _kept(self, refused: _Groups, deadline: Deadline) -> _Groups:
        """Return the refused entries that keep their positions, and mark the others as bumped."""
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
        """Whether an object still has a position. It may have been trimmed, or lost in a rescue."""
        layout = self._layout
        stripe = await layout.stripe_at(position, deadline)
        view = layout.view
        return (
            stripe is not None
            and position >= view.trim_point
            and ref in layout.objects(view, stripe)
        )

    def _calls(self, view: View, groups: _Groups) -> list[Call]:
        return [
            Call(
                ref.name,
                "write",
                encode_write(
                    view.epoch,
                    self._timestamp,
                    self._appender.writer,
                    ref.striping.packed,
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
        """Repeat the writes in ``view`` until each entry has a definite answer for its position."""
        error = None
        while True:
            again: _Groups = {}
            for (ref, group), reply in zip(groups.items(), replies, strict=True):
                if reply.code == Code.SAME_ID:
                    rest, failure = await self._take_same_id(ref, group, reply, deadline)
                else:
                    rest, failure = self._take_answer(ref, group, reply)
                if not isinstance(error, StoreTimeout):  # a timeout takes precedence
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
        """Record an object's answer to one write, which is executed completely or not at all.

        If the object refuses the write because one position is taken, that position's entry will
        get a new position. The write's other entries are returned, to be sent again.
        """
        if reply.code == Code.OK:
            self._acknowledged.update((slot.entry, slot.position) for slot in group)
        elif reply.code == Code.READ_ONLY and self._together:
            self._bumped += (slot.entry for slot in group)
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
            error = refused_call(reply.code, "write", ref.name)
            unknown = reply.code in (Code.UNREADABLE, Code.LOST)
            return [], indefinite(error, reply) if unknown else error
        return [], None

    async def _take_same_id(
        self, ref: ObjectRef, group: list[_Slot], reply: Reply, deadline: Deadline
    ) -> tuple[list[_Slot], ZlogError | None]:
        """Acknowledge the entries that the object holds; bump or return the others."""
        wanted = {
            slot.position: AppendId(
                self._appender.writer,
                self._number + slot.entry,
                self._entries[self._start + slot.entry],
            )
            for slot in group
        }
        same = await compare(self._layout, ref, wanted, deadline)
        if same.get(reply.number, False) is None:
            return [], indefinite(refused_call(reply.code, "write", ref.name), reply)
        self._acknowledged.update((s.entry, s.position) for s in group if same.get(s.position))
        self._bumped += (s.entry for s in group if same.get(s.position) is False)
        return [slot for slot in group if same.get(slot.position) is None], None

    async def _catch_up(self, view: View, deadline: Deadline) -> None:
        """Get a view in which the refused entries can be written.

        If an object has refused the epoch or is missing, this finds a newer view. It creates a new
        view if positions were beyond the stripe's end, or were taken again and again.
        """
        if self._sealed:
            await self._layout.advance(view, deadline, sealed=self._sealed_at)
        elif self._beyond:
            with contextlib.suppress(ClassNotLoaded):  # without the rights, continue in this view
                await self._layout.renew(view, deadline)
        elif self._missing and not await self._layout.outdated(view, deadline):
            raise CorruptEntry(f"stripe object {self._missing} is missing")
        self._beyond, self._missing = False, ""


def _by_object(view: View, slots: Sequence[_Slot]) -> _Groups:
    """Group positions of the live stripe by object."""
    stripe = view.live_stripe
    striping = stripe.striping
    groups: dict[int, list[_Slot]] = {}
    for slot in slots:
        groups.setdefault(striping.number(slot.position), []).append(slot)
    return {view.object_at(stripe, index): group for index, group in groups.items()}
