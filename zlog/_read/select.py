"""Reads the entries that have some tags, or a range backwards.

The object class selects the entries (``select``, docs/formats/wire.md), so only matching entries
leave the store. An object reports how far it has searched, and which positions it could not search,
because they are unwritten, lost or unreadable. The reader reads these individually, and waits for
holes and fills them, so that all readers find the same entries.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from zlog._base.codes import State
from zlog._base.deadline import Deadline, Timeout
from zlog._base.io import Call
from zlog._base.names import check_range
from zlog._base.settings import HoleTimeout
from zlog._base.striping import ObjectPositions, Striping
from zlog._base.wanted import Wanted
from zlog._layout.layout import Layout
from zlog._layout.segments import Form
from zlog._native import messages
from zlog._native.replies import Selected, decode_select
from zlog._read.items import Slot, in_order
from zlog._read.read import READ_BYTES_MAX, Reader
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import StoreTimeout
from zlog.view import ObjectRef, Stripe, View

_ENTRIES_MAX = 4096
"""The maximum number of entries in one reply of an object."""

_ROUND_BYTES = 32 << 20
_SHARE_BYTES_MIN = 64 << 10
"""Limits for the data in replies: of all objects of a stripe together, and of one at least."""

MISSING_AT_ONCE = 65536
"""How many positions that no object could search are read in one step."""

_SETTLED_AT_ONCE = 4096
"""How many positions are read outside the search in one call."""

_WINDOW_BACKWARDS = 1024
"""How many positions one call reads if all entries are read backwards."""

_HIDING = (GapKind.UNWRITTEN, GapKind.LOST, GapKind.UNREADABLE, GapKind.FORGED)
"""Gaps that may hide an entry. Filled and trimmed positions hold none, for any reader."""

_by_position = attrgetter("position")


@dataclass(slots=True)
class _Part:
    """One object's share of a range of positions, and the results of the search there.

    Attributes:
        ref: the object.
        start, end: the positions left to search are in ``[start, end)``.
        items: the results that have not been returned yet, in reading order.
        hole: the hole at which the search stopped. The reader waits for it when it gets there.
    """

    ref: ObjectRef
    start: int
    end: int
    items: deque[Slot] = field(default_factory=deque)
    hole: int | None = None

    def __post_init__(self) -> None:
        self.extend(self.end)

    def extend(self, end: int) -> None:
        """Continue the search to a later end."""
        self.start = self.ref.striping.first_at(self.start, self.ref.number)
        self.end = end

    def take(self, reached: int, *, reverse: bool) -> list[Slot]:
        """Remove and return the items that the reader has reached."""
        items, taken = self.items, []
        while items and (items[0].position >= reached if reverse else items[0].position < reached):
            taken.append(items.popleft())
        return taken


class _TagSearch:
    """Searches a stripe's objects for tags, in either direction, and merges the results."""

    def __init__(
        self,
        reader: Reader,
        wanted: Wanted,
        holes: HoleTimeout,
        indexes: Collection[int] | None,
        entries_max: int = _ENTRIES_MAX,
        *,
        reverse: bool = False,
    ) -> None:
        self._reader = reader
        self._layout = reader.layout
        self._wanted = wanted
        self._tags = [tag.encode() for tag in wanted.tags]
        self._holes = holes
        self._indexes = indexes
        self._entries_max = entries_max
        self._reverse = reverse
        self._parts: list[_Part] = []
        self._stripe: tuple[int, int] | None = None  # the id and start of the parts' stripe
        self._end = 0  # where the parts end

    def forget(self) -> None:
        """Drop the results that were not returned yet."""
        self._stripe = None

    async def find(
        self, stripe: Stripe, start: int, end: int, tail: int, deadline: Deadline
    ) -> tuple[list[Entry | Gap], int] | None:
        """Search the positions ``[start, end)`` of a stripe for the next items.

        Returns:
            The entries and gaps that were found, and the position where the next call must start
            (in reverse: end). None if the log was trimmed during the search.
        """
        reverse = self._reverse
        identity = stripe.id, stripe.start
        if self._stripe != identity:
            objects = self._layout.objects(self._layout.view, stripe)
            wanted = range(stripe.width) if self._indexes is None else self._indexes
            self._parts = [_Part(ref, start, end) for ref in objects if ref.number in wanted]
        elif not reverse and self._end < end:
            for part in self._parts:
                part.extend(end)
        self._stripe, self._end = identity, end
        if not await self._ask(end - 1 if reverse else start, tail, deadline):
            self.forget()
            return None
        unfinished = [part for part in self._parts if part.start < part.end]
        if reverse:
            reached = max((part.end for part in unfinished), default=start)
        else:
            reached = min((part.start for part in unfinished), default=end)
        found = [slot for part in self._parts for slot in part.take(reached, reverse=reverse)]
        items = in_order(sorted(found, key=_by_position))
        return items[::-1] if reverse else items, reached

    async def _ask(self, first: int, tail: int, deadline: Deadline) -> bool:
        """Let each object continue its search. Returns False if the log was trimmed meanwhile.

        ``first`` is the reader's next position. If it is a hole, the call waits for it. An object's
        search stops at any other hole, so that the reader gets the items before the hole.
        """
        reverse = self._reverse
        parts = [
            part
            for part in self._parts
            if not part.items and part.start < part.end and part.hole in (None, first)
        ]
        if not parts:
            return True
        share = max(_SHARE_BYTES_MIN, min(READ_BYTES_MAX, _ROUND_BYTES // len(parts)))

        rest = share, False, not self._reader.with_data  # bytes_max, with_ids, without_data

        def request(epoch: int, part: _Part) -> bytes:
            start, end = part.start, part.end
            every, most = self._wanted.every, self._entries_max
            return messages.select(epoch, start, end, self._tags, every, reverse, most, *rest)

        def calls(view: View) -> list[Call]:
            return [Call(part.ref.name, "select", request(view.epoch, part)) for part in parts]

        view, replies = await self._layout.guarded(calls, deadline)
        for part, reply in zip(parts, replies, strict=True):
            striping = part.ref.striping
            if reply.code in (-errno.ENOENT, -errno.EIO):
                if reply.code == -errno.ENOENT and await self._layout.outdated(view, deadline):
                    return False
                end = part.end if reverse else min(part.end, part.start + MISSING_AT_ONCE)
                begin = max(part.start, part.end - MISSING_AT_ONCE) if reverse else part.start
                doubtful = [*striping.positions(begin, end, part.ref.number)]
                entries: Sequence[Entry] = []
            else:
                reply.check_call("select", part.ref.name)
                mac, with_data = self._layout.macs.key, self._reader.with_data
                found = decode_select(reply.payload, mac, with_data)
                cut = any(state == State.TRIMMED for *_, state in found.gaps)
                if cut and (await self._layout.refresh(deadline)).trim_point > part.start:
                    return False
                begin, end = (found.end, part.end) if reverse else (part.start, found.end)
                spans = doubtful_places(striping, part.ref.number, found, begin, end)
                doubtful, all_of_them = _next_of(spans, MISSING_AT_ONCE, reverse=reverse)
                if not all_of_them:
                    begin, end = (doubtful[0], end) if reverse else (begin, doubtful[-1] + 1)
                doubtful += [p for p in found.damaged if begin <= p < end]
                entries = found.entries
            slots, part.hole = await self._settled(doubtful, first, tail, deadline)
            if part.hole is not None:
                begin, end = (part.hole + 1, end) if reverse else (begin, part.hole)
            items = [item for item in (*entries, *slots) if begin <= item.position < end]
            part.items.extend(sorted(items, key=_by_position, reverse=reverse))
            part.start, part.end = (part.start, begin) if reverse else (end, part.end)
        return True

    async def _settled(
        self, positions: Iterable[int], first: int, tail: int, deadline: Deadline
    ) -> tuple[list[Slot], int | None]:
        """Read positions, and wait for the holes among them as :meth:`_ask` describes.

        Returns the matching entries and the gaps that may hide matching entries, and the hole at
        which reading stopped, or None.
        """
        result: list[Slot] = []
        hole = None
        reverse = self._reverse
        positions = sorted(set(positions), reverse=reverse)
        for at in range(0, len(positions), _SETTLED_AT_ONCE):
            some = sorted(positions[at : at + _SETTLED_AT_ONCE])
            found = await self._reader.read(some, deadline)
            hole = await self._reader.settle(
                found, self._holes, tail, (), deadline, first=first, reverse=reverse
            )
            for slot in found.values():
                if self._wanted.fit(slot.tags) if isinstance(slot, Entry) else slot.kind in _HIDING:
                    result.append(slot)
            if hole is not None:
                break
        return result, hole


def doubtful_places(
    striping: Striping, number: int, found: Selected, begin: int, end: int
) -> list[ObjectPositions]:
    """Return the positions of ``[begin, end)`` that an object could not search, ascending."""
    least = striping.first_at(begin, number)
    doubtful = [
        ObjectPositions(striping, max(first, least), min(end, last + 1))
        for first, last, state in found.gaps
        if state != State.TRIMMED
    ]
    above = begin if found.highest is None else max(begin, found.highest + 1)
    doubtful.append(striping.positions(above, end, number))
    return doubtful


def _next_of(spans: list[ObjectPositions], most: int, *, reverse: bool) -> tuple[list[int], bool]:
    """Return the first ``most`` positions of the spans, and whether these are all positions.

    If ``reverse`` is set, the last positions are returned instead, also in ascending order. Their
    number is limited because a hostile writer can leave millions of holes.
    """
    taken: list[int] = []
    for span in reversed(spans) if reverse else spans:
        left = most - len(taken)
        if reverse:
            taken[:0] = span[max(0, len(span) - left) :]
        else:
            taken += span[:left]
        if len(span) > left:
            return taken, False
    return taken, True


def trimmed_part(layout: Layout, gap: Gap, indexes: Collection[int] | None) -> Gap | None:
    """Return the part of a trimmed gap in some objects. In unknown stripes, return all of it."""
    if indexes is None:
        return gap
    view = layout.view
    named = min(gap.end, max(gap.position, view.stripes[0].start))
    own = [
        places
        for first, last, stripe in layout.by_stripe(view, named, gap.end)
        for places in stripe.striping.by_object(first, last)
        if places.number in indexes
    ]
    start = min((places.start for places in own), default=gap.end)
    end = max((places[-1] + 1 for places in own), default=named)
    start = gap.position if gap.position < named else start
    return gap._replace(position=start, end=end) if start < end else None


async def _part_at(reader: Reader, position: int, deadline: Deadline, form: Form) -> Stripe | None:
    """Return the stripe of a position, or None if the position is trimmed."""
    layout = reader.layout
    if position < layout.view.trim_point:
        return None
    stripe = await layout.part_at(position, deadline, form)
    return None if position < layout.view.trim_point else stripe


class TagReader:
    """An :class:`zlog._read.iterate.OrderedReader` of the entries with some tags."""

    def __init__(
        self,
        reader: Reader,
        wanted: Wanted,
        position: int,
        hole_timeout: Timeout,
        indexes: Collection[int] | None = None,
    ) -> None:
        reader.layout.macs.check_key()
        self.position = position
        self._reader = reader
        self._holes = HoleTimeout(reader.budget, hole_timeout)
        self._indexes = indexes
        self._form = wanted
        self._search = _TagSearch(reader, wanted, self._holes, indexes)

    def go_to(self, position: int) -> None:
        """Continue at another position."""
        self.position = position
        self._search.forget()

    async def next(self, tail: int) -> Sequence[Entry | Gap]:
        """See :class:`zlog._read.iterate.OrderedReader`."""
        layout = self._reader.layout
        while self.position < tail:
            deadline = self._reader.budget.longer(self._holes.seconds)
            stripe = await _part_at(self._reader, self.position, deadline, self._form)
            if stripe is None:
                gap = Gap(self.position, min(tail, layout.view.trim_point), GapKind.TRIMMED)
                self.go_to(gap.end)
                own = trimmed_part(layout, gap, self._indexes)
                return [] if own is None else [own]
            end = min(tail, stripe.end)
            found = await self._search.find(stripe, self.position, end, tail, deadline)
            if found is None:  # the log was trimmed during the search
                continue
            items, self.position = found
            if items:
                return items
        return ()


class BackwardReader:
    """Reads a range from its end to its start; see :meth:`zlog.Log.read_range`.

    It returns the entries that match ``wanted``, or all entries if this is None. If ``end`` is
    None, it begins at the tail as of the first call. A reply has up to ``entries_max`` entries.
    """

    def __init__(
        self,
        reader: Reader,
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
        self._holes = holes = HoleTimeout(reader.budget, hole_timeout)
        self._form: Form = "objects" if wanted is None else wanted
        self._search = None
        if wanted is not None:
            self._search = _TagSearch(reader, wanted, holes, None, entries_max, reverse=True)

    async def next(self) -> Sequence[Entry | Gap] | None:
        """Return the next items, which may be empty. Returns None at the end."""
        deadline = self._reader.budget.longer(self._holes.seconds)
        if self._position is None:
            self._tail = await self._reader.positions.tail_up_to(self._end, deadline)
            self._position = self._tail
        if self._position <= self._start:
            return None
        found = await self._below(self._position, deadline)
        if found is None:
            return ()
        items, self._position = found
        if self._kept is not None:  # the items may continue the held gap
            items = in_order([*items[::-1], self._kept])[::-1]
        last = items[-1] if items and self._position > self._start else None
        self._kept = last if isinstance(last, Gap) else None
        return items if self._kept is None else items[:-1]

    async def _below(self, end: int, deadline: Deadline) -> tuple[list[Entry | Gap], int] | None:
        """Return the items just below a position, as :meth:`_TagSearch.find` does."""
        reader = self._reader
        stripe = await _part_at(reader, end - 1, deadline, self._form)
        if stripe is None:
            return [Gap(self._start, end, GapKind.TRIMMED)], self._start
        start = max(self._start, stripe.start, reader.layout.view.trim_point)
        if self._search is not None:
            return await self._search.find(stripe, start, end, self._tail, deadline)
        first = max(start, end - _WINDOW_BACKWARDS)
        found = await reader.read(range(first, end), deadline)
        hole = await reader.settle(
            found, self._holes, self._tail, (), deadline, first=end - 1, reverse=True
        )
        first = first if hole is None else hole + 1
        return in_order(found[position] for position in range(first, end))[::-1], first


async def last_entry(
    reader: Reader, wanted: Wanted | None, before: int | None, timeout: Timeout
) -> Entry | None:
    """Return the newest entry with the tags, if any; see :meth:`zlog.Log.last`."""
    deadline = reader.budget.deadline(timeout)
    backwards = BackwardReader(reader, wanted, 0, before, entries_max=1)
    while (items := await backwards.next()) is not None:
        for item in items:
            if isinstance(item, Entry):
                return item
        if deadline.expired:
            raise StoreTimeout("no entry with the tag was found in time")
    return None
