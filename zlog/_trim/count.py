"""What the positions of a log hold, as its objects count it: how far limits of size reach."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._layout.layout import Layout
from zlog._layout.object_calls import call_each
from zlog._layout.prefix import prefix_end
from zlog._native import messages
from zlog._positions.stat import object_stats
from zlog._trim.trim import trim_to
from zlog.errors import CorruptEntry, UnsupportedVersion
from zlog.view import OPEN_END, ObjectRef, Stripe, View

_logger = logging.getLogger(__name__)

_LOST = (-errno.ENOENT, -errno.EIO)
"""What objects answer that can't count."""

_STEP_POSITIONS = 1024
"""What is counted first; then twice as many each time."""


class Size(NamedTuple):
    """Entries, and their data in bytes."""

    entries: int
    bytes: int

    def plus(self, other: Size) -> Size:
        """Return both together."""
        return Size(self.entries + other.entries, self.bytes + other.bytes)


class _Held(NamedTuple):
    """A stripe, what it holds, and one past the last of its positions that is taken."""

    stripe: Stripe
    size: Size
    end: int


async def ask(
    layout: Layout, starts: Mapping[ObjectRef, int], end: int, deadline: Deadline
) -> dict[ObjectRef, messages.CountReply]:
    """Have objects of a stripe count what they hold below ``end``, each from its start on.

    An object counts as much as one call may. One that is missing is left out: nothing will ever be
    written to it. So is one whose header is damaged in all copies: what it held is lost.
    """

    def request(view: View, ref: ObjectRef) -> bytes:
        return messages.count(view.epoch, starts[ref], end)

    replies = await call_each(layout, "count", starts, request, deadline, *_LOST)
    return {
        ref: messages.count_reply(reply.payload)
        for ref, reply in replies.items()
        if reply.code == Code.OK
    }


async def taken_end(layout: Layout, stripe: Stripe, deadline: Deadline) -> int:
    """Return one past the highest position of a stripe that is written, filled or trimmed.

    Not the tail: what was only handed out, or made the tail floor, does not count; nor what a
    mirror has above its floor.
    """
    return (await _held(layout, stripe, deadline)).end


async def end_beyond(layout: Layout, limit: Size, deadline: Deadline) -> int:
    """Return one past the last entry that need not be kept, or the trim point.

    What lies above holds as many entries as the limit says, or as many bytes and less than one
    entry more: whichever is less. Whole stripes are taken by what they say that they hold. In the
    one where a limit falls the objects count ranges, which grow as long as all of them is beyond
    the limit, and are then halved. Where some of that is lost, they hold less than they say: all
    that is left of that stripe is counted then.
    """
    start = layout.view.trim_point
    # Space that an earlier trim did not come to free would be taken for that of entries, as is what
    # an older class can't free, or is in damaged objects.
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
    # A trim that came in between has freed what the walk took for kept: leave it to the next call.
    if walk.end > start and not walk.within(_excess(await _all_held(layout, deadline), limit)):
        return start
    return max(start, walk.end)


async def _all_held(layout: Layout, deadline: Deadline) -> list[_Held]:
    stripes = layout.stripes(layout.view.trim_point, OPEN_END, deadline)
    return [await _held(layout, stripe, deadline) async for stripe in stripes]


async def _held(layout: Layout, stripe: Stripe, deadline: Deadline) -> _Held:
    stats = await object_stats(layout, stripe, deadline, *_LOST)
    if len(stats) < stripe.width:
        count, log = stripe.width - len(stats), layout.view.log
        what = "log %r: objects of the stripe from %d on that are damaged and not counted: %d"
        _logger.warning(what, log, stripe.start, count)
    size = Size(sum(stat.entries for stat in stats), sum(stat.bytes for stat in stats))
    taken = max((each.highest + 1 for each in stats if each.highest is not None), default=0)
    end = await _seen_end(layout, stripe, deadline)
    if taken <= end:
        return _Held(stripe, size, max(taken, stripe.start))
    unseen, _, _ = await _count(layout, stripe, end, taken, deadline)
    seen = Size(max(0, size.entries - unseen.entries), max(0, size.bytes - unseen.bytes))
    return _Held(stripe, seen, end)


async def _seen_end(layout: Layout, stripe: Stripe, deadline: Deadline) -> int:
    """Return from where on no reader sees what a stripe holds.

    Those are parts of a round of a mirror's copier; and what an exclusive writer has not confirmed,
    or never will, since its stripe ended below.
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
    """Return how much more a stripe says that it holds than is there, or less than that."""
    end = (await _held(layout, stripe, deadline)).end
    there, _, _ = await _count(layout, stripe, max(start, stripe.start), end, deadline)
    told = (await _held(layout, stripe, deadline)).size  # last: what was added counts as lost
    return Size(max(0, told.entries - there.entries), max(0, told.bytes - there.bytes))


async def _count(
    layout: Layout, stripe: Stripe, start: int, end: int, deadline: Deadline
) -> tuple[Size, int, bool]:
    """Return what a range of a stripe holds, its last entry's position, and if some is lost."""
    refs = layout.objects(layout.view, stripe)
    some = stripe.spacing.parts(start, end)
    left = {refs[part.number]: start for part in some}
    size, last, lost = Size(0, 0), 0, False
    while left:
        counted = await ask(layout, left, end, deadline)
        for each in counted.values():
            size = size.plus(Size(each.entries, each.bytes))
            last = max(last, each.last or 0)
            lost = lost or each.lost
        left = {ref: each.end for ref, each in counted.items() if each.end < end}
    return size, last, lost


def _excess(held: list[_Held], limit: Size) -> Size:
    entries = sum(each.size.entries for each in held)
    size = sum(each.size.bytes for each in held)
    return Size(max(0, entries - limit.entries), max(0, size - limit.bytes))


class _Walk:
    """Goes upwards over what is beyond a limit; ``end`` is one past the last entry there."""

    def __init__(self, layout: Layout, excess: Size, deadline: Deadline) -> None:
        self.end = 0
        self._layout = layout
        self._excess = excess
        self._deadline = deadline
        self._passed = Size(0, 0)

    def within(self, excess: Size) -> bool:
        """Whether no more was passed than is beyond one of the limits."""
        return any(0 < most >= passed for most, passed in zip(excess, self._passed, strict=True))

    async def up(self, held: list[_Held], start: int, counted: Sequence[Stripe]) -> Stripe | None:
        """Pass all that is beyond a limit.

        Returns None; or a stripe that holds less than it says, if it is none of those ``counted``.
        """
        for each in held if any(self._excess) else ():
            if not self.take(each.size, each.end):
                whole = await self._into(each, max(start, each.stripe.start))
                return None if whole or each.stripe in counted else each.stripe
        return None

    def take(self, size: Size, end: int) -> bool:
        """Pass so much up to ``end``, if all of it is beyond a limit."""
        before, self._passed = self._passed, self._passed.plus(size)
        if not self.within(self._excess):
            self._passed = before
            return False
        if size.entries:
            self.end = end
        return True

    async def _into(self, held: _Held, start: int) -> bool:
        """Pass the part of a stripe from ``start`` on that is beyond a limit.

        Returns whether all that was looked at is there.
        """
        whole = True
        step, growing = _STEP_POSITIONS, True
        while start < held.end and step:
            end = min(start + step, held.end)
            size, last, lost = await _count(self._layout, held.stripe, start, end, self._deadline)
            whole = whole and not lost
            if self.take(size, last + 1):
                start += step
            else:
                growing = False
            step = step * 2 if growing else step // 2
        return whole
