"""Reading the entries that have some tags, or a range backwards.

The class selects (``select``, docs/formats/wire.md): what does not match never leaves the store. An
object tells how far it has looked, and what it could not look into: positions that are unwritten,
lost or unreadable. These are read one by one, waited for and filled as by every reader, since each
may hide an entry with the tags; where that is settled, all readers find the same entries.
"""

from __future__ import annotations

import errno
import heapq
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from zlog._base.codes import State
from zlog._base.deadline import Deadline, Timeout
from zlog._base.io import Call
from zlog._base.names import check_range
from zlog._base.settings import Budget
from zlog._native import core, messages
from zlog._read.doubt import MISSING_AT_ONCE, doubtful_places, next_of, trimmed_part
from zlog._read.holes import Patience
from zlog._read.items import Slot, in_order
from zlog._read.read import READ_BYTES_MAX, Reader
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import StoreTimeout
from zlog.view import ObjectRef, Stripe, View

Match = Literal["any", "all"]
"""Whether an entry has to have one of the tags that are asked for, or each of them."""

_ENTRIES_MAX = 4096
"""Entries that one object may answer with at a time."""

_ROUND_BYTES = 32 << 20
_SHARE_BYTES_MIN = 64 << 10
"""Data that all objects of a stripe together, and one at least, may answer with at a time."""

_SETTLED_AT_ONCE = 4096
"""Positions that are read one by one at a time."""

_HIDING = (GapKind.UNWRITTEN, GapKind.LOST, GapKind.UNREADABLE, GapKind.FORGED)
"""Gaps that may hide an entry. What is filled never was one; what was trimmed by itself is gone for
all readers."""


class Wanted(NamedTuple):
    """The tags that a reader asks for.

    Attributes:
        tags: at least one.
        every: whether an entry has to have all of them.
    """

    tags: tuple[str, ...]
    every: bool

    @classmethod
    def of(cls, tags: Collection[str], match: Match) -> Wanted:
        """Check what a caller asks for.

        Raises:
            InvalidTag, TypeError: one is no tag, or they are too many.
            ValueError: there is none, or ``match`` is neither "any" nor "all".
        """
        if match not in ("any", "all"):
            raise ValueError(f'match is "any" or "all", not {match!r}')
        checked = core.tags_checked(tags)
        if not checked:
            raise ValueError("no tag is asked for; leave `tags` out to read all entries")
        return cls(checked, match == "all")

    def fit(self, tags: Collection[str]) -> bool:
        """Whether an entry with some tags has them."""
        test = all if self.every else any
        return test(tag in tags for tag in self.tags)


class _Part:
    """One object's share of a range of positions, as far as it was looked through.

    Attributes:
        ref: the object.
        start, end: what is left to look through lies in ``[start, end)``.
        items: what was found, in the order in which it is read.
        hole: the position where it stopped, which has to be waited for once it is next.
    """

    __slots__ = ("end", "hole", "items", "ref", "start")

    def __init__(self, ref: ObjectRef, start: int, end: int) -> None:
        self.ref = ref
        self.start = start
        self.end = end
        self.items: deque[Slot] = deque()
        self.hole: int | None = None

    def is_pending(self, first: int) -> bool:
        """Whether its object is to be asked, by a reader whose next position is ``first``."""
        return not self.items and self.start < self.end and self.hole in (None, first)


class Selection:
    """Reads entries with some tags in order, as :class:`zlog._read.iterate.Ahead` reads all.

    Args:
        reader: of the log.
        budget: of the handle.
        wanted: the tags.
        position: where it begins.
        patience: with holes.
        indexes: of the stripe objects to look into; None: all.
    """

    def __init__(
        self,
        reader: Reader,
        budget: Budget,
        wanted: Wanted,
        position: int,
        patience: Patience,
        indexes: Collection[int] | None = None,
    ) -> None:
        reader.layout.macs.check_key()
        self.position = position
        self._budget = budget
        self._patience = patience
        self._lookup = _Lookup(reader, wanted, patience, indexes)

    def go_to(self, position: int) -> None:
        """Read on from another position."""
        self.position = position
        self._lookup.forget()

    async def next(self, tail: int) -> Sequence[Entry | Gap]:
        """Return what is next of the entries below ``tail``, which is above ``position``."""
        lookup = self._lookup
        while self.position < tail:
            deadline = self._budget.longer(self._patience.seconds)
            stripe = await lookup.stripe_at(self.position, deadline)
            if stripe is None:
                gap = Gap(self.position, min(tail, lookup.trim_point), GapKind.TRIMMED)
                self.go_to(gap.end)
                own = trimmed_part(lookup.layout, gap, lookup.indexes)
                return [] if own is None else [own]
            end = min(tail, stripe.end)
            found = await lookup.forward(stripe, self.position, end, tail, deadline)
            if found is None:  # the trim point has passed it
                continue
            items, self.position = found
            if items:
                return items
        return ()


class Backwards:
    """Reads ``[start, end)`` from its end, as far as the tail when it begins: see ``read_range``.

    Args:
        reader: of the log.
        budget: of the handle.
        wanted: the tags; None: all entries.
        start: the last position that is read.
        end: one past the first; None: the tail.
        hole_timeout: as of all readers.
        entries_max: entries to ask an object for at a time.
    """

    def __init__(
        self,
        reader: Reader,
        budget: Budget,
        wanted: Wanted | None,
        start: int,
        end: int | None,
        hole_timeout: Timeout = ...,
        entries_max: int = _ENTRIES_MAX // 4,
    ) -> None:
        check_range(start, end)
        reader.layout.macs.check_key()
        self._start = start
        self._end = end
        self._position: int | None = None
        self._tail = 0
        self._kept: Gap | None = None
        self._reader = reader
        self._budget = budget
        self._wanted = wanted
        self._patience = Patience(budget.hole_timeout(hole_timeout))
        self._lookup = _Lookup(reader, wanted, self._patience, None, entries_max)

    async def next(self) -> Sequence[Entry | Gap] | None:
        """Return what is next, which may be nothing; None at the end."""
        deadline = self._budget.longer(self._patience.seconds)
        if self._position is None:
            self._tail = await self._reader.positions.tail_up_to(self._end, deadline)
            self._position = self._tail
        if self._position <= self._start:
            return None
        lookup = self._lookup
        stripe = await lookup.stripe_at(self._position - 1, deadline)
        if stripe is None:
            trimmed = Gap(self._start, self._position, GapKind.TRIMMED)
            found: tuple[list[Entry | Gap], int] | None = [trimmed], self._start
        else:
            start = max(self._start, stripe.start, lookup.trim_point)
            find = lookup.backward if self._wanted is not None else lookup.window_below
            found = await find(stripe, start, self._position, self._tail, deadline)
        if found is None:
            return ()
        items, self._position = found
        if self._kept is not None:  # the next items may go on with it
            items = in_order([*items[::-1], self._kept])[::-1]
        last = items[-1] if items and self._position > self._start else None
        self._kept = last if isinstance(last, Gap) else None
        return items if self._kept is None else items[:-1]


class _Lookup:
    """Asks the objects of a stripe, and puts together what they answer."""

    def __init__(
        self,
        reader: Reader,
        wanted: Wanted | None,
        patience: Patience,
        indexes: Collection[int] | None,
        entries_max: int = _ENTRIES_MAX,
    ) -> None:
        self._reader = reader
        self.layout = reader.layout
        self._wanted = wanted or Wanted((), every=False)
        self._tags = [tag.encode() for tag in self._wanted.tags]
        self._patience = patience
        self.indexes = indexes
        self._entries_max = entries_max
        self._parts: list[_Part] = []
        self._of: tuple[int, int] | None = None  # the stripe that these are of, and its end in them

    @property
    def trim_point(self) -> int:
        return self.layout.view.trim_point

    def forget(self) -> None:
        """Give up what was found and not returned yet."""
        self._of = None

    async def stripe_at(self, position: int, deadline: Deadline) -> Stripe | None:
        """Return the stripe that has a position; None where it is trimmed."""
        if position < self.trim_point:
            return None
        stripe = await self.layout.stripe_at(position, deadline)
        return None if position < self.trim_point else stripe

    async def forward(
        self, stripe: Stripe, start: int, end: int, tail: int, deadline: Deadline
    ) -> tuple[list[Entry | Gap], int] | None:
        """Look through ``[start, end)`` of a stripe; returns what was found, and how far that goes.

        None: the log was trimmed beyond ``start`` meanwhile.
        """
        if self._of is None or self._of[0] != stripe.id:
            self._parts = self._parts_of(stripe, start, end)
        elif self._of[1] < end:
            self._extend(stripe, self._of[1], end)
        self._of = (stripe.id, end)
        if not await self._ask(start, tail, deadline, reverse=False):
            self.forget()
            return None
        reached = min((part.start for part in self._parts if part.start < part.end), default=end)
        found = _below(self._parts, reached)
        return in_order(found), reached

    async def backward(
        self, stripe: Stripe, start: int, end: int, tail: int, deadline: Deadline
    ) -> tuple[list[Entry | Gap], int] | None:
        """Do the same from the end downwards."""
        if self._of is None or self._of[0] != stripe.id:
            self._parts = self._parts_of(stripe, start, end)
            self._of = (stripe.id, start)
        if not await self._ask(end - 1, tail, deadline, reverse=True):
            self.forget()
            return None
        reached = max((part.end for part in self._parts if part.start < part.end), default=start)
        found: list[Slot] = []
        for part in self._parts:
            while part.items and part.items[0].position >= reached:
                found.append(part.items.popleft())
        found.sort(key=attrgetter("position"), reverse=True)
        return in_order(found[::-1])[::-1], reached

    async def window_below(
        self, _: Stripe, start: int, end: int, tail: int, deadline: Deadline
    ) -> tuple[list[Entry | Gap], int] | None:
        """Read all entries of some positions right below ``end``, backwards."""
        reader = self._reader
        first = max(start, end - _WINDOW_BACKWARDS)
        found: dict[int, Slot] = {}
        wanted = list(range(first, end))
        while wanted:
            more = await reader.read_some(wanted, deadline)
            found.update(more)
            wanted = [position for position in wanted if position not in found]
        hole = await reader.settle(
            found, self._patience, tail, (), deadline, first=end - 1, reverse=True
        )
        first = first if hole is None else hole + 1
        return in_order(found[position] for position in range(first, end))[::-1], first

    def _parts_of(self, stripe: Stripe, start: int, end: int) -> list[_Part]:
        objects = self.layout.objects(self.layout.view, stripe)
        wanted = range(stripe.width) if self.indexes is None else self.indexes
        return [
            _Part(objects[places.number], places.start, end)
            for places in stripe.spacing.parts(start, end)
            if places.number in wanted
        ]

    def _extend(self, stripe: Stripe, old_end: int, end: int) -> None:
        """Have the parts go on to a later end."""
        by_number = {part.ref.number: part for part in self._parts}
        for more in self._parts_of(stripe, old_end, end):
            known = by_number.get(more.ref.number)
            if known is None:
                self._parts.append(more)
            else:
                known.start = (
                    min(known.start, more.start) if known.start < known.end else more.start
                )
                known.end = end

    async def _ask(self, first: int, tail: int, deadline: Deadline, *, reverse: bool) -> bool:
        """Have objects look through the next bit of their share. False: trimmed meanwhile.

        A hole is waited for if it is ``first``, the reader's next position; else the object's part
        stops there, so that the reader gets what comes before it.
        """
        parts = [part for part in self._parts if part.is_pending(first)]
        if not parts:
            return True
        share = max(_SHARE_BYTES_MIN, min(READ_BYTES_MAX, _ROUND_BYTES // len(parts)))

        def calls(view: View) -> list[Call]:
            return [
                Call(
                    part.ref.name,
                    "select",
                    messages.select(
                        view.epoch,
                        part.start,
                        part.end,
                        self._tags,
                        self._wanted.every,
                        reverse,
                        self._entries_max,
                        share,
                        False,
                    ),
                )
                for part in parts
            ]

        view, replies = await self.layout.guarded(calls, deadline)
        for part, reply in zip(parts, replies, strict=True):
            spacing = part.ref.spacing
            if reply.code in (-errno.ENOENT, -errno.EIO):
                if reply.code == -errno.ENOENT and await self.layout.outdated(view, deadline):
                    return False
                end = part.end if reverse else min(part.end, part.start + MISSING_AT_ONCE)
                begin = max(part.start, part.end - MISSING_AT_ONCE) if reverse else part.start
                doubtful = [*spacing.places(begin, end, part.ref.number)]
                entries: Sequence[Entry] = []
            else:
                reply.check_call("select", part.ref.name)
                found = core.decode_select(reply.payload, self.layout.macs.key)
                cut = any(state == State.TRIMMED for *_, state in found.gaps)
                if cut and (await self.layout.refresh(deadline)).trim_point > part.start:
                    return False
                begin, end = (found.end, part.end) if reverse else (part.start, found.end)
                spans = doubtful_places(spacing, part.ref.number, found, begin, end)
                doubtful, all_of_them = next_of(spans, MISSING_AT_ONCE, reverse=reverse)
                if not all_of_them:
                    begin, end = (doubtful[0], end) if reverse else (begin, doubtful[-1] + 1)
                doubtful += [p for p in found.damaged if begin <= p < end]
                entries = found.entries
            slots, hole = await self._settled(doubtful, first, tail, deadline, reverse=reverse)
            part.hole = hole
            if hole is not None:
                begin, end = (hole + 1, end) if reverse else (begin, hole)
            items = [item for item in (*entries, *slots) if begin <= item.position < end]
            items.sort(key=attrgetter("position"), reverse=reverse)
            part.items.extend(items)
            part.start, part.end = (part.start, begin) if reverse else (end, part.end)
        return True

    async def _settled(
        self, positions: Iterable[int], first: int, tail: int, deadline: Deadline, *, reverse: bool
    ) -> tuple[list[Slot], int | None]:
        """Read positions one by one; returns entries that fit, and gaps that may hide one.

        And the hole before which it stopped, see :meth:`_ask`.
        """
        result: list[Slot] = []
        hole = None
        positions = sorted(set(positions), reverse=reverse)
        for at in range(0, len(positions), _SETTLED_AT_ONCE):
            some = sorted(positions[at : at + _SETTLED_AT_ONCE])
            found = await self._reader.read(some, deadline)
            hole = await self._reader.settle(
                found, self._patience, tail, (), deadline, first=first, reverse=reverse
            )
            for slot in found.values():
                if self._wanted.fit(slot.tags) if isinstance(slot, Entry) else slot.kind in _HIDING:
                    result.append(slot)
            if hole is not None:
                break
        return result, hole


_WINDOW_BACKWARDS = 1024
"""Positions that are read at a time where all entries are read backwards."""


def _below(parts: Sequence[_Part], reached: int) -> list[Slot]:
    """Take off what lies below a position, in order."""
    taken: list[list[Slot]] = []
    for part in parts:
        own: list[Slot] = []
        while part.items and part.items[0].position < reached:
            own.append(part.items.popleft())
        taken.append(own)
    return list(heapq.merge(*taken, key=attrgetter("position")))


async def last_entry(
    reader: Reader, budget: Budget, wanted: Wanted | None, timeout: Timeout
) -> Entry | None:
    """Return the newest entry with the tags, if any; see :meth:`zlog.Log.last`."""
    deadline = budget.deadline(timeout)
    backwards = Backwards(reader, budget, wanted, 0, None, entries_max=1)
    while (items := await backwards.next()) is not None:
        for item in items:
            if isinstance(item, Entry):
                return item
        if deadline.expired:
            raise StoreTimeout("the time was up before an entry with the tag was found")
    return None
