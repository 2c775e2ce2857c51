"""Compaction by key: of entries that are old enough, the newest of each tag are kept.

A *pass* is about the part of the log that no pass has seen yet. It first learns where the newest
entry with each tag of that part is. Then it goes over the log from the trim point to that part's
end, and trims what these supersede: each entry that has tags, and of each of them a newer entry.
Objects list tags and positions only, and store what is left together (cls_zlog/stripe/compact.cc).

Every step may be the last one, and be done twice: what is trimmed has a newer entry, whichever
client trims it. How far passes came is noted in the head, so that each entry is new to one of them.
"""

from __future__ import annotations

import errno
from bisect import bisect_left

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._layout.layout import Layout
from zlog._layout.object_calls import call_each
from zlog._native import messages
from zlog._native.completions import ReplyBytes
from zlog._native.replies import NewestOfTags
from zlog._positions.stat import object_stats
from zlog._read.cursors import Cursors
from zlog._trim.age import Progress, Watch
from zlog._trim.count import ask
from zlog.view import OPEN_END, ObjectRef, Stripe, View

_GONE = (-errno.ENOENT, -errno.EIO)
"""What objects answer that are gone or damaged: these keep what they have."""

_TAGS_MAX = 262_144
"""Tags that one pass knows: some 30 MB. With more, it ends earlier, and another one follows."""

_WINDOW = 65536
"""Positions of each object that a pass takes up at a time, at least."""

_OBJECTS_AT_ONCE = 16
"""Objects that are asked at the same time: each may list some megabytes."""

_DIRTY_SHARE = 4
"""A pass looks at all that is left; so one is due when what is new is a fourth of what is there."""


async def compact(layout: Layout, old_end: int, deadline: Deadline, *, now: bool) -> Progress:
    """Compact a log below ``old_end``, as far as no cursor lies below; returns how far it is.

    Where the time is up before, the next call goes on.

    Args:
        layout: of the log. A mirror is left as it is: its copier compares it with its source.
        old_end: all below it is settled, and old enough.
        deadline: budget.
        now: also where little is new.
    """
    log_id = layout.view.log_id
    _, state = await layout.head.retention_read(log_id, deadline)
    progress = Watch.decode(state).compacted
    cursors = await Cursors(layout).list(deadline)
    bound = min([old_end, *(cursor.position for cursor in cursors)])
    if layout.view.mirror or bound <= max(progress.done, layout.view.trim_point):
        return progress
    if not (now or progress.unfinished or await _due(layout, bound - progress.done, deadline)):
        return progress
    left = deadline.remaining()
    budget = deadline if left is None else deadline.sooner(left * 3 / 4)
    while True:
        progress = await _go_on(layout, progress, bound, budget, deadline)
        if progress.done < bound and not progress.unfinished and budget.expired:
            progress = Progress(progress.done, bound, 0)
        await _note(layout, progress, deadline)
        doubtful = progress.unfinished and progress.at == progress.end
        if progress.done >= bound or budget.expired or doubtful:
            return progress


async def emptied_end(layout: Layout, end: int, deadline: Deadline) -> int:
    """Return up to where stripes below ``end`` hold nothing any more, and nothing there is lost."""
    start = layout.view.trim_point
    async for stripe in layout.stripes(start, end, deadline):
        if stripe.end > end or not await _empty(layout, stripe, deadline):
            break
        start = stripe.end
    return start


async def _empty(layout: Layout, stripe: Stripe, deadline: Deadline) -> bool:
    stats = await object_stats(layout, stripe, deadline, *_GONE)
    if any(stat.entries for stat in stats):  # also those that a newer version stored
        return False
    refs = layout.objects(layout.view, stripe)
    left = dict.fromkeys(refs, max(stripe.start, layout.view.trim_point))
    while left:
        counted = await ask(layout, left, stripe.end, deadline)
        if len(counted) < len(left) or any(each.entries or each.lost for each in counted.values()):
            return False
        left = {ref: each.end for ref, each in counted.items() if each.end < stripe.end}
    return True


async def _due(layout: Layout, fresh: int, deadline: Deadline) -> bool:
    entries = 0
    async for stripe in layout.stripes(layout.view.trim_point, OPEN_END, deadline):
        stats = await object_stats(layout, stripe, deadline, *_GONE)
        entries += sum(stat.entries for stat in stats)
    return fresh * _DIRTY_SHARE >= entries


async def _note(layout: Layout, progress: Progress, deadline: Deadline) -> None:
    """Note how far the log is compacted. Where another client has noted more, that stays."""
    version, state = await layout.head.retention_read(layout.view.log_id, deadline)
    found = Watch.decode(state)
    if found.compacted.done <= progress.done:
        found.compacted = progress
        await layout.head.retention_write(layout.view.log_id, version, found.encode(), deadline)


async def _go_on(
    layout: Layout, progress: Progress, bound: int, budget: Deadline, deadline: Deadline
) -> Progress:
    """Do a pass, or what is left of one, as far as the budget goes."""
    start = max(progress.done, layout.view.trim_point)
    goal = min(progress.end, bound) if progress.unfinished else bound
    newest = NewestOfTags()
    end = await _learn(layout, newest, start, goal, budget, deadline)
    resumed = progress.unfinished and end == progress.end
    trim_point = layout.view.trim_point
    at = await _clean(
        layout, newest, max(progress.at if resumed else 0, trim_point), end, budget, deadline
    )
    if at < end:
        return Progress(progress.done, end, at)
    if newest.doubtful or resumed:  # no one notes what made an interrupted pass doubtful
        if budget.expired and not (resumed and progress.at == end):
            return Progress(progress.done, end, end)  # once more, with the time of a whole call
        # Entries with several tags may have newer ones with some of them further down.
        reached = await _learn(
            layout, newest, trim_point, start, budget, deadline, room=2 * _TAGS_MAX
        )
        cleaned = await _clean(layout, newest, trim_point, end, budget, deadline, again=True)
        if (reached < start or cleaned < end) and not (resumed and progress.at == end):
            return Progress(progress.done, end, end)
    return Progress(end, end, end)


async def _learn(
    layout: Layout,
    newest: NewestOfTags,
    start: int,
    end: int,
    budget: Deadline,
    deadline: Deadline,
    *,
    room: int = 0,
) -> int:
    """Learn where the newest entry of each tag is in ``[start, end)``; returns how far that goes.

    Not to the end, if half the time is up, or there are too many tags; with ``room`` for so many,
    others are left out instead.
    """
    left = budget.remaining()
    half = budget if left is None else budget.sooner(left / 2)
    at = start
    async for stripe in layout.stripes(start, end, deadline):
        at = max(at, stripe.start)
        last = min(stripe.end, end)
        while at < last:
            if at > start and (half.expired or (not room and len(newest) >= _TAGS_MAX)):
                return at
            reached = min(last, at + _WINDOW * stripe.width)
            objects = _objects(layout, stripe, at, reached)
            while objects:
                for ref, reply in (await _listed(layout, objects, reached, deadline)).items():
                    told = newest.note(reply, room) if room else newest.note(reply)
                    _advance(objects, ref, told, reached)
            at = reached
    return max(at, end)


async def _clean(
    layout: Layout,
    newest: NewestOfTags,
    start: int,
    end: int,
    budget: Deadline,
    deadline: Deadline,
    *,
    again: bool = False,
) -> int:
    """Trim what is superseded in ``[start, end)``; returns how far it came.

    The first time it changes something before it stops at the budget, so that a pass ends.
    """
    at = start
    async for stripe in layout.stripes(start, end, deadline):
        last = min(stripe.end, end)
        at = await _clean_stripe(
            layout, stripe, newest, max(at, stripe.start), last, budget, deadline, again=again
        )
        if at < last:
            return at
    return end


async def _clean_stripe(
    layout: Layout,
    stripe: Stripe,
    newest: NewestOfTags,
    start: int,
    end: int,
    budget: Deadline,
    deadline: Deadline,
    *,
    again: bool,
) -> int:
    left = _objects(layout, stripe, start, end)
    changed: dict[ObjectRef, range] = {}
    while left and not (budget.expired and (changed or again)):
        pages: dict[ObjectRef, tuple[int, int, list[int]]] = {}
        for ref, reply in (await _listed(layout, left, end, deadline)).items():
            first = left[ref]
            reached, superseded = newest.superseded(reply)
            _advance(left, ref, reached, end)
            if superseded:
                pages[ref] = first, reached, superseded
                known = changed.get(ref, range(first, reached))
                changed[ref] = range(known.start, reached)
        await _compact(layout, pages, deadline)
    await _rebuild(layout, changed, deadline)
    return min(left.values(), default=end)


def _objects(layout: Layout, stripe: Stripe, start: int, end: int) -> dict[ObjectRef, int]:
    """Return the objects that have positions of ``[start, end)``, and where to begin."""
    refs = layout.objects(layout.view, stripe)
    parts = stripe.spacing.parts(start, end)
    return {refs[part.number]: start for part in parts}


def _advance(left: dict[ObjectRef, int], ref: ObjectRef, reached: int, end: int) -> None:
    left[ref] = reached
    if reached >= end:
        del left[ref]


async def _listed(
    layout: Layout, left: dict[ObjectRef, int], end: int, deadline: Deadline
) -> dict[ObjectRef, ReplyBytes]:
    """Have objects list their tags from where they are on; those that can't are struck off."""
    refs = sorted(left, key=left.__getitem__)[:_OBJECTS_AT_ONCE]

    def request(view: View, ref: ObjectRef) -> bytes:
        return messages.tags_list(view.epoch, left[ref], end)

    replies = await call_each(layout, "tags_list", refs, request, deadline, *_GONE)
    for ref, reply in replies.items():
        if reply.code != Code.OK:
            del left[ref]
    return {ref: reply.payload for ref, reply in replies.items() if reply.code == Code.OK}


async def _compact(
    layout: Layout, pages: dict[ObjectRef, tuple[int, int, list[int]]], deadline: Deadline
) -> None:
    """Have objects trim some positions of ranges, and give their space back."""

    def request(view: View, ref: ObjectRef) -> bytes:
        first, end, superseded = pages[ref]
        return messages.compact(view.epoch, first, end, ref.spacing.packed, superseded)

    while pages:
        replies = await call_each(layout, "compact", pages, request, deadline, *_GONE)
        for ref, reply in replies.items():
            _, end, superseded = pages.pop(ref)
            if reply.code != Code.OK:
                continue
            first = messages.compact_reply(reply.payload).end
            rest = superseded[bisect_left(superseded, first) :]
            if rest and first < end:
                pages[ref] = first, end, rest


async def _rebuild(layout: Layout, changed: dict[ObjectRef, range], deadline: Deadline) -> None:
    """Have objects make their index of tags anew, which has all that was trimmed."""

    def request(view: View, ref: ObjectRef) -> bytes:
        return messages.tags_rebuild(view.epoch, changed[ref].start, changed[ref].stop)

    while changed:
        refs = [*changed][:_OBJECTS_AT_ONCE]
        replies = await call_each(layout, "tags_rebuild", refs, request, deadline, *_GONE)
        for ref, reply in replies.items():
            left = changed.pop(ref)
            if reply.code == Code.OK:
                reached = messages.tags_rebuild_reply(reply.payload).end
                if reached < left.stop:
                    changed[ref] = range(reached, left.stop)
