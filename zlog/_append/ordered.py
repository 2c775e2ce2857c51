"""Appends to a log that is ordered by its object (docs/design/ordered-logs.md).

The live stripe has one object, and its method ``append`` assigns positions in the step that stores
the entries. It can therefore check a condition in the same step. A request contains the parts of
several callers. Each part has its own condition, and is stored completely or not at all.

Every answer but a timeout is definite. STALE_EPOCH means that the parts are not in the object and
never will be. They are then sent again, to the object of the newest view.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from zlog._append.append import Appender, Grants
from zlog._append.conditions import ALWAYS, Condition, conflict_with, conflict_with_gap
from zlog._append.rounds import Failed, again, indefinite, not_sent
from zlog._base.codes import Code, PartState
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.monitor import explain
from zlog._base.options import compression_of
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.appends import AppendPart, append_outcomes, encode_append
from zlog._native.new_entries import (
    EntryLimit,
    NewEntry,
    entries_cut,
    entries_owned,
)
from zlog._native.rounds import QuickRound
from zlog._read.read import Reader
from zlog._read.select import TagReader
from zlog._replica.repair import answers
from zlog.entry import Entry, GapKind
from zlog.errors import (
    AppendRefused,
    BeyondTail,
    Conflict,
    CorruptEntry,
    EntryTooLarge,
    StoreTimeout,
    ZlogError,
)
from zlog.limits import APPEND_BYTES_MAX, APPEND_ENTRIES_MAX
from zlog.view import View

_PARTS_MAX = 128
"""The class's limit for the parts of one request."""

_INDEFINITE = (Code.SAME_ID, Code.UNREADABLE, Code.LOST, Code.BELOW_TRIM_POINT)
"""Answers if the object cannot tell whether it stores an earlier copy of the request."""


class NotOrdered(AppendRefused):
    """The log is not ordered by its object."""


class Rejected(NamedTuple):
    """An object rejected a part.

    Attributes:
        position: the position of a conflicting entry; the tail if the tail was not as expected.
        tail: the log's tail at that moment.
    """

    position: int
    tail: int


@dataclass(slots=True, eq=False)
class Part:
    """The entries of one caller, which are appended together or not at all.

    Attributes:
        entries: the entries, at least one.
        condition: the condition under which they are appended.
        outcome: the position of the first entry, the error, or why the condition did not hold. None
            until this is known.
    """

    entries: Sequence[NewEntry]
    condition: Condition = ALWAYS
    outcome: int | BaseException | Rejected | None = None
    number: int = field(init=False, default=-1)
    searched: int = field(init=False, default=0)
    """No entry from ``condition.start`` up to here conflicts."""


_KNOWN_SECONDS = 5.0
"""How long a known tail is used. An old one makes the object search for copies of a request if
many other writers have appended since."""


class _Known(NamedTuple):
    """A position that a stripe's tail has reached, and when this was read."""

    stripe: int
    tail: int
    read: float


_NOTHING = _Known(0, 0, 0.0)

Admit = Callable[[View, int, Deadline], Awaitable[bool]]
"""Called before each request with its view and a position that the tail has reached. If it returns
False, there is a newer view."""


class OrderedAppender(Appender):
    """An appender that also appends to logs that are ordered by their object.

    Its methods return coroutines of :class:`Appender` as they are, because a wrapper takes time.
    """

    def __init__(
        self,
        layout: Layout,
        positions: Grants,
        writer: bytes,
        limit: EntryLimit,
        reader: Reader,
        *,
        number: int = 0,
    ) -> None:
        super().__init__(layout, positions, writer, limit, number=number)
        self._reader = reader
        self.admit: Admit | None = None
        self._known = _NOTHING

    def append(
        self, entries: Sequence[NewEntry], deadline: Deadline
    ) -> Coroutine[Any, Any, list[int]]:
        """See :meth:`Appender.append`. A list that fits into one request is stored as a whole."""
        if self.layout.view.ordered:
            return self._append_cut(entries, deadline)
        return super().append(entries, deadline)

    async def _append_cut(self, entries: Sequence[NewEntry], deadline: Deadline) -> list[int]:
        positions: list[int] = []
        try:
            while len(positions) < len(entries) and self.layout.view.ordered:
                start = len(positions)
                end = entries_cut(entries, start, APPEND_ENTRIES_MAX, APPEND_BYTES_MAX)
                with contextlib.suppress(NotOrdered):  # a sequencer orders the log now
                    positions += await self.append_all(entries[start:end], deadline)
            if len(positions) < len(entries):
                rest = entries[len(positions) :] if positions else entries
                positions += await super().append(rest, deadline)
        except ZlogError as error:
            known = (*positions, *error.positions)
            error.positions = (*known, *[None] * (len(entries) - len(known)))
            raise
        return positions

    def append_round(
        self,
        entries: Sequence[NewEntry],
        start: int,
        end: int,
        deadline: Deadline,
        begun: QuickRound | None = None,
    ) -> Coroutine[Any, Any, Sequence[int] | Failed]:
        """See :meth:`Appender.append_round`."""
        if begun is None and self.layout.view.ordered:
            return self._append_round(entries, start, end, deadline)
        return super().append_round(entries, start, end, deadline, begun)

    async def _append_round(
        self, entries: Sequence[NewEntry], start: int, end: int, deadline: Deadline
    ) -> Sequence[int] | Failed:
        try:
            return await self.append_all(entries[start:end], deadline)
        except NotOrdered:  # a sequencer orders the log now
            return await super().append_round(entries, start, end, deadline)
        except ZlogError as error:
            return Failed(error, (None,) * (end - start))

    def quick_ended(self, entries: int, took: float, error: BaseException | None) -> None:
        """Do nothing. Metrics replace this, which is called after each round without a task."""

    async def append_all(
        self, entries: Sequence[NewEntry], deadline: Deadline, condition: Condition = ALWAYS
    ) -> range:
        """Append all entries or none, at consecutive positions. May raise NotOrdered."""
        part = self.part(entries, condition)
        await self.append_parts([part], deadline)
        return await self.positions_of(part, deadline)

    def part(self, entries: Sequence[NewEntry], condition: Condition = ALWAYS) -> Part:
        """Return a part.

        Raises:
            EntryTooLarge: the entries exceed a limit. Nothing was sent.
            TypeError: an entry is not bytes.
        """
        self.check(entries)
        entries = entries_owned(entries)
        if entries_cut(entries, 0, APPEND_ENTRIES_MAX, APPEND_BYTES_MAX) < len(entries):
            size = sum(map(len, entries))
            what = f"{len(entries):,} entries with {size:,} bytes of data"
            if len(entries) <= APPEND_ENTRIES_MAX and size <= APPEND_BYTES_MAX:
                what = "entries with so many tags"
            raise EntryTooLarge(
                f"log {self.layout.view.log!r} is ordered by its object, which cannot append {what}"
                f" together: the limits are {APPEND_ENTRIES_MAX:,} entries,"
                f" {APPEND_BYTES_MAX >> 20} MiB of data, and the tags of one request",
                hint="Append fewer entries per call.",
            )
        return Part(entries, condition)

    async def append_parts(self, parts: Sequence[Part], deadline: Deadline) -> None:
        """Append parts, and set the outcome of each.

        Undecided parts are sent to the same object until it refuses them. Otherwise, a copy of an
        earlier request could still be stored there.
        """
        waiting = [*parts]
        view: View | None = None
        since = 0
        try:
            while waiting:
                if view is None:
                    view, since = await self._begin(waiting, deadline)
                elif self.admit is None or await self.admit(view, since, deadline):
                    view, since = await self._send(view, waiting, since, deadline)
                else:
                    view = None
                waiting = [part for part in waiting if part.outcome is None]
        except ZlogError as error:
            self._known = _NOTHING
            if isinstance(error, StoreTimeout):
                await explain(self.layout.io, error)
            for part in waiting:
                if part.outcome is None:
                    part.outcome = again(error)
                    part.outcome.positions = (None,) * len(part.entries)

    async def positions_of(self, part: Part, deadline: Deadline) -> range:
        """Return the positions of an appended part, or raise the error of one that was not."""
        outcome = part.outcome
        if isinstance(outcome, Rejected):
            outcome = await self._conflict(part.condition, *outcome, deadline)
        if isinstance(outcome, BaseException):
            raise outcome
        assert outcome is not None
        return range(outcome, outcome + len(part.entries))

    async def _begin(self, waiting: Sequence[Part], deadline: Deadline) -> tuple[View, int]:
        """Return the newest view, and a position that the tail of its live stripe has reached."""
        if self.rolls.alert:
            await self.rolls.act(deadline)
        await self._reader.positions.check_appendable(deadline)
        view = self.layout.view
        self._check_ordered(view)
        for part in waiting:
            await self.search_ended(part, view, deadline)
        known, now = self._known, self.layout.io.monotonic()
        if known.stripe == view.live_stripe.id and now < known.read + _KNOWN_SECONDS:
            return view, known.tail
        return view, await self._tail(view, deadline)

    async def _send(
        self, view: View, waiting: Sequence[Part], since: int, deadline: Deadline
    ) -> tuple[View | None, int]:
        """Send one request with the first parts.

        ``since`` is a position; no copy of an earlier request with these parts is below it. Returns
        the arguments of the next request, whose view is None if the object refuses the epoch.
        """
        layout = self.layout
        sent = self._fitting(waiting)
        parts = [_encodable(part, view) for part in sent]
        ref = view.object_at(view.live_stripe, 0)
        call = Call(ref.name, "append", self._request(view, parts, sent, since))
        replies = await layout.io.execute([call], deadline)
        [reply] = await answers(layout.io, [call], replies, deadline)
        if reply.code != Code.OK:
            await self._refused(view, ref.name, reply, deadline)
            return None, since
        decided = messages.append_reply(reply.payload)
        self._known = _Known(view.live_stripe.id, decided.since, layout.io.monotonic())
        if decided.stored:
            self.rolls.note(view, [reply], decided.tail)
            layout.head.announce()
        for part, (state, position) in zip(sent, append_outcomes(decided, parts), strict=True):
            if state == PartState.APPENDED:  # now, or by an earlier copy of the request
                part.outcome = position
            elif state == PartState.CONFLICT:
                part.outcome = Rejected(position, decided.tail)
            else:
                part.searched = max(part.searched, position)
        return view, decided.since

    def _fitting(self, waiting: Sequence[Part]) -> list[Part]:
        """Return the first parts, as many as fit into one request."""
        entries: list[NewEntry] = []
        sent: list[Part] = []
        for part in waiting[:_PARTS_MAX]:
            entries += part.entries
            cut = entries_cut(entries, 0, APPEND_ENTRIES_MAX, APPEND_BYTES_MAX)
            if sent and cut < len(entries):
                break
            sent.append(part)
            if part.number < 0:
                part.number = self.take_numbers(len(part.entries))
        return sent

    def _request(
        self, view: View, parts: Sequence[AppendPart], sent: Sequence[Part], since: int
    ) -> bytes:
        return encode_append(
            view.epoch,
            self.layout.io.wall_clock_us(),
            self.writer,
            since,
            parts,
            [entry for part in sent for entry in part.entries],
            compression_of(view.options),
        )

    async def _refused(self, view: View, name: str, reply: Reply, deadline: Deadline) -> None:
        """Get a view in which refused parts can be sent again. Raises other errors."""
        layout = self.layout
        if reply.code == Code.STALE_EPOCH:
            await layout.advance(view, deadline, sealed=reply.number)
        elif reply.code == Code.BEYOND_STRIPE:
            await layout.renew(view, deadline)
        elif reply.code == -errno.ENOENT:
            if not await layout.outdated(view, deadline):
                raise CorruptEntry(f"stripe object {name} is missing")
        else:
            error = refused_call(reply.code, "append", name)
            raise indefinite(error, reply) if reply.code in _INDEFINITE else error

    async def search_ended(self, part: Part, view: View, deadline: Deadline) -> None:
        """Check a part's condition in the stripes that have ended in ``view``.

        Sets the outcome if the part conflicts, or if the stripes cannot be searched.
        """
        start = view.live_stripe.start
        begin = max(part.condition.start, part.searched)
        if part.condition.unless and begin < start and part.outcome is None:
            try:
                part.outcome = await self._find(part.condition, begin, start, deadline)
                part.searched = start
            except ZlogError as error:
                part.outcome = error

    async def _conflict(
        self, condition: Condition, position: int, tail: int, deadline: Deadline
    ) -> ZlogError:
        """Return the error of a part that an object rejected."""
        log = self.layout.view.log
        if condition.start > tail:
            return BeyondTail(
                f"the condition is about entries after {condition.start - 1}, which is not in log"
                f" {log!r} yet: its tail is {tail}",
                hint="Pass the position of the last entry that you have read.",
            )
        if position == tail:
            expected = f"the tail of log {log!r} is {tail}, not {condition.expect}"
            return Conflict(expected, position=tail)
        with contextlib.suppress(ZlogError):
            found = (await self._reader.read([position], deadline))[position]
            if isinstance(found, Entry):
                return conflict_with(log, found)
            return conflict_with_gap(log, found, position)
        return Conflict(f"log {log!r}: position {position} conflicts", position=position)

    async def _find(
        self, condition: Condition, start: int, end: int, deadline: Deadline
    ) -> Conflict | None:
        """Return a conflict of a condition in ``[start, end)``, if there is one."""
        log = self.layout.view.log
        for wanted in condition.wanted():
            reader = TagReader(self._reader, wanted, start, ...)
            while reader.position < end:
                if deadline.expired:
                    raise not_sent("its condition was not checked in time")
                for item in await reader.next(end):
                    if isinstance(item, Entry):
                        return conflict_with(log, item)
                    if item.kind != GapKind.TRIMMED or condition.start:
                        return conflict_with_gap(log, item, item.end - 1)
        return None

    async def _tail(self, view: View, deadline: Deadline) -> int:
        """Return the position after the last entry of a view's live stripe."""
        ref = view.object_at(view.live_stripe, 0)
        call = Call(ref.name, "max_position", messages.max_position(view.epoch))
        [reply] = await answers(
            self.layout.io, [call], await self.layout.io.execute([call], deadline), deadline
        )
        if reply.code in (Code.STALE_EPOCH, -errno.ENOENT):  # the object will also refuse the parts
            return view.live_stripe.start
        reply.check_call("max_position", ref.name)
        highest = messages.max_position_reply(reply.payload).highest
        return max(view.live_stripe.start, 0 if highest is None else highest + 1)

    def _check_ordered(self, view: View) -> None:
        if not view.ordered:
            raise NotOrdered(
                f"log {view.log!r} is ordered by a sequencer, so appends cannot have conditions",
                hint="Let its object order it: `zlog reconfigure LOG --ordering object`.",
            )


def _encodable(part: Part, view: View) -> AppendPart:
    """Return a part as it is sent to the live stripe's object."""
    expect, unless, start = part.condition
    if start or part.searched > view.live_stripe.start:
        start = max(start, part.searched)  # from 0 on, the object ignores trimmed entries
    return AppendPart(part.number, len(part.entries), expect, start, unless)
