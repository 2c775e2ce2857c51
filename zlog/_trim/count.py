"""Counts a log's entries and bytes in its objects, to enforce limits on their number and size."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zlog._base.deadline import Deadline
from zlog._layout.layout import Layout
from zlog._layout.object_calls import call_each, prefix_end
from zlog._native import messages
from zlog._positions.stat import object_stats
from zlog._trim.trim import trim_to
from zlog.errors import CorruptEntry, UnsupportedVersion
from zlog.view import OPEN_END, ObjectRef, Stripe, View

_logger = logging.getLogger(__name__)

_LOST = (-errno.ENOENT, -errno.EIO)
"""The answers of objects that cannot count."""

_STEP_POSITIONS = 1024
"""How many positions the first count covers. Each further count covers twice as many."""


class Size(NamedTuple):
    """A number of entries, and the size of their data in bytes."""

    entries: int
    bytes: int

    def plus(self, other: Size) -> Size:
        """Return the sum."""
        return Size(self.entries + other.entries, self.bytes + other.bytes)

    def minus(self, other: Size) -> Size:
        """Return the difference, at least 0."""
        return Size(max(0, self.entries - other.entries), max(0, self.bytes - other.bytes))


class _Held(NamedTuple):
    """A stripe, its size, and where its taken positions end."""

    stripe: Stripe
    size: Size
    end: int


async def ask(
    layout: Layout, starts: Mapping[ObjectRef, int], end: int, deadline: Deadline
) -> dict[ObjectRef, messages.CountReply]:
    """Let objects of a stripe count their entries, each from its own start up to ``end``.

    An object may count only a part of them in one call. Objects that are missing, or whose header
    is damaged in all replicas, are left out.
    """

    def request(view: View, ref: ObjectRef) -> bytes:
        return messages.count(view.epoch, starts[ref], end)

    replies = await call_each(layout, "count", starts, request, deadline, *_LOST)
    return {ref: messages.count_reply(reply) for ref, reply in replies.items()}


async def taken_end(layout: Layout, stripe: Stripe, deadline: Deadline) -> int:
    """Return one past the highest written, filled or trimmed position of a stripe.

    Unwritten positions do not count, nor do positions above a mirror's tail floor.
    """
    return (await _held(layout, stripe, deadline)).end


async def end_beyond(layout: Layout, limit: Size, deadline: Deadline) -> int:
    """Return the position below which entries must be trimmed to keep a log within its limit.

    If nothing needs to be trimmed, this is the trim point. If the limit is in bytes, the log may
    exceed it by less than one entry. Whole stripes are counted from their objects' statistics, and
    only the stripe where the trim ends is counted by ranges. In an offloaded stripe, the trim ends
    at the start of a segment. The statistics include lost entries, so these are added to the limit.
    """
    start = layout.view.trim_point
    # Free the space of an earlier trim, which would count as entries. Space in damaged objects, or
    # space that an older class cannot free, still counts.
    with contextlib.suppress(UnsupportedVersion, CorruptEntry):
        await trim_to(layout, start, deadline)
    counted: list[Stripe] = []
    while True:
        held = await _all_held(layout, deadline)
        walk = _Walk(layout, _excess(held, limit), deadline)
        stripe = await walk.up(held, start, counted)
        if stripe is None:
            break
        counted.append(stripe)
        limit = limit.plus(await _lost(layout, stripe, start, deadline))
    # A concurrent trim freed entries that were counted as kept. The next call trims the rest.
    if walk.end > start and not walk.within(_excess(await _all_held(layout, deadline), limit)):
        return start
    return max(start, walk.end)


async def _all_held(layout: Layout, deadline: Deadline) -> list[_Held]:
    stripes = layout.stripes(layout.view.trim_point, OPEN_END, deadline)
    return [await _held(layout, stripe, deadline) async for stripe in stripes]


async def _held(layout: Layout, stripe: Stripe, deadline: Deadline) -> _Held:
    stats = await object_stats(layout, stripe, deadline, *_LOST)
    if len(stats) < stripe.width and layout.offloaded.file_of(stripe) is None:
        damaged, log = stripe.width - len(stats), layout.view.log
        what = "log %r: objects of the stripe from %d on that are damaged and not counted: %d"
        _logger.warning(what, log, stripe.start, damaged)
    size = Size(sum(stat.entries for stat in stats), sum(stat.bytes for stat in stats))
    taken = max((each.highest + 1 for each in stats if each.highest is not None), default=0)
    end = await _seen_end(layout, stripe, deadline)
    if taken <= end:
        return _Held(stripe, size, max(taken, stripe.start))
    unseen, _, _ = await count(layout, stripe, end, taken, deadline)
    return _Held(stripe, size.minus(unseen), end)


async def _seen_end(layout: Layout, stripe: Stripe, deadline: Deadline) -> int:
    """Return the position in a stripe above which readers see no entries.

    Entries above it belong to a mirror's unfinished round, or were never confirmed by a writer.
    """
    view = layout.view
    if view.mirror:
        return min(max(view.tail_floor, stripe.start), stripe.end)

    def known(view: View) -> int | None:
        live = view.writer is not None and stripe.id == view.live_stripe.id
        return stripe.start if live else None

    _, end = await prefix_end(layout, view, known, deadline)
    return stripe.end if end is None else end


async def _lost(layout: Layout, stripe: Stripe, start: int, deadline: Deadline) -> Size:
    """Return a lower bound of how much more a stripe's statistics report than it contains."""
    end = (await _held(layout, stripe, deadline)).end
    there, _, _ = await count(layout, stripe, max(start, stripe.start), end, deadline)
    # Read this last, so that entries added meanwhile count as lost.
    return (await _held(layout, stripe, deadline)).size.minus(there)


async def count(
    layout: Layout, stripe: Stripe, start: int, end: int, deadline: Deadline
) -> tuple[Size, int, bool]:
    """Return a range's size, its last entry's position, and whether a part of it is lost."""
    refs = layout.objects(layout.view, stripe)
    some = stripe.striping.by_object(start, end)
    left = {refs[part.number]: start for part in some}
    size, last, lost = Size(0, 0), 0, False
    while left:
        counted = await ask(layout, left, end, deadline)
        lost = lost or len(counted) < len(left)
        for each in counted.values():
            size = size.plus(Size(each.entries, each.bytes))
            last = max(last, each.last or 0)
            lost = lost or each.lost
        left = {ref: each.end for ref, each in counted.items() if each.end < end}
    return size, last, lost


def _excess(held: list[_Held], limit: Size) -> Size:
    entries = sum(each.size.entries for each in held)
    return Size(entries, sum(each.size.bytes for each in held)).minus(limit)


class _Walk:
    """Goes up over the entries beyond a limit. ``end`` is one past the last of them."""

    def __init__(self, layout: Layout, excess: Size, deadline: Deadline) -> None:
        self.end = 0
        self._layout = layout
        self._excess = excess
        self._deadline = deadline
        self._passed = Size(0, 0)

    def within(self, excess: Size) -> bool:
        """Whether all entries passed so far are beyond at least one of the limits."""
        return any(0 < most >= passed for most, passed in zip(excess, self._passed, strict=True))

    async def up(self, held: list[_Held], start: int, counted: Sequence[Stripe]) -> Stripe | None:
        """Pass all entries beyond the limit. Returns an uncounted stripe with wrong statistics."""
        for each in held if any(self._excess) else ():
            if not self.take(each.size, each.end):
                whole = await self._into(each, max(start, each.stripe.start))
                return None if whole or each.stripe in counted else each.stripe
        return None

    def take(self, size: Size, end: int) -> bool:
        """Pass entries of this size up to ``end`` if all of them are beyond a limit."""
        before, self._passed = self._passed, self._passed.plus(size)
        if not self.within(self._excess):
            self._passed = before
            return False
        if size.entries:
            self.end = end
        return True

    async def _into(self, held: _Held, start: int) -> bool:
        """Pass the part of a stripe beyond a limit. Returns whether no counted entry is lost."""
        if (file := self._layout.offloaded.file_of(held.stripe)) is not None:
            for segment in file.segments[file.segment_of(start) :]:
                if not self.take(Size(segment.entries, segment.bytes), segment.end):
                    break
            return True
        whole = True
        step, growing = _STEP_POSITIONS, True
        while start < held.end and step:
            end = min(start + step, held.end)
            size, last, lost = await count(self._layout, held.stripe, start, end, self._deadline)
            whole = whole and not lost
            if self.take(size, last + 1):
                start += step
            else:
                growing = False
            step = step * 2 if growing else step // 2
        return whole
