"""Compacts a log: of the old entries with a tag, it keeps only the newest.

A *pass* handles the part of the log that no earlier pass has handled. It first finds the newest
entry with each tag in that part. Then it goes over the log, from the trim point to the end of that
part, and trims the superseded entries. An entry with tags is superseded if, for each of its tags,
there is a newer entry with that tag. Objects list only tags and positions, and store the remaining
entries together (cls_zlog/stripe/compact.cc).

A client may die after any step, and it is safe to repeat a step, because an entry is trimmed only
if newer ones exist. The head stores the progress, so each pass starts where the last one ended.
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
from zlog._trim.count import count
from zlog.view import OPEN_END, ObjectRef, Stripe, View

_GONE = (-errno.ENOENT, -errno.EIO)
"""The answers of objects that are gone or damaged, which are not compacted."""

_TAGS_MAX = 262_144
"""How many tags one pass keeps in memory, about 30 MB. If there are more, the pass ends early."""

_WINDOW = 65536
"""The minimum number of positions of each object that a pass handles in one step."""

_OBJECTS_AT_ONCE = 16
"""How many objects are asked at the same time. Each of them may list some megabytes."""

_DIRTY_SHARE = 4
"""A pass looks at all entries, so it is due only once a fourth of them are new."""


async def compact(layout: Layout, old_end: int, deadline: Deadline, *, now: bool) -> Progress:
    """Compact a log up to ``old_end``, but not past its lowest cursor. Returns the progress.

    All positions below ``old_end`` must be settled and old enough. If the time is up, the next call
    continues. A mirror is never compacted, because it must match its source. If ``now`` is False, a
    log is compacted only if many of its entries are new.
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
        progress = await _Pass(layout, budget, deadline).run(progress, bound)
        if progress.done < bound and not progress.unfinished and budget.expired:
            progress = Progress(progress.done, bound, 0)
        await _note(layout, progress, deadline)
        doubtful = progress.unfinished and progress.at == progress.end
        if progress.done >= bound or budget.expired or doubtful:
            return progress


async def emptied_end(layout: Layout, end: int, deadline: Deadline) -> int:
    """Return the end of the first stripes below ``end`` that have no entry or lost position."""
    start = layout.view.trim_point
    async for stripe in layout.stripes(start, end, deadline):
        if stripe.end > end or not await _empty(layout, stripe, deadline):
            break
        start = stripe.end
    return start


async def _empty(layout: Layout, stripe: Stripe, deadline: Deadline) -> bool:
    stats = await object_stats(layout, stripe, deadline, *_GONE)
    if layout.offloaded.file_of(stripe) is not None:
        return False
    if any(stat.entries for stat in stats):  # this counts entries of a newer version as well
        return False
    start = max(stripe.start, layout.view.trim_point)
    size, _, lost = await count(layout, stripe, start, stripe.end, deadline)
    return not (size.entries or lost)


async def _due(layout: Layout, fresh: int, deadline: Deadline) -> bool:
    entries = 0
    async for stripe in layout.stripes(layout.view.trim_point, OPEN_END, deadline):
        stats = await object_stats(layout, stripe, deadline, *_GONE)
        entries += sum(stat.entries for stat in stats)
    return fresh * _DIRTY_SHARE >= entries


async def _note(layout: Layout, progress: Progress, deadline: Deadline) -> None:
    """Store the progress, if no other client has stored further progress."""
    version, state = await layout.head.retention_read(layout.view.log_id, deadline)
    found = Watch.decode(state)
    if found.compacted.done <= progress.done:
        found.compacted = progress
        await layout.head.retention_write(layout.view.log_id, version, found.encode(), deadline)


class _Pass:
    """One pass, with the newest entry of each tag. When time is up, it stops between two steps."""

    def __init__(self, layout: Layout, budget: Deadline, deadline: Deadline) -> None:
        self._layout = layout
        self._budget = budget
        self._deadline = deadline
        self._newest = NewestOfTags()

    async def run(self, progress: Progress, bound: int) -> Progress:
        """Do a pass, or the rest of an unfinished one."""
        start = max(progress.done, self._layout.view.trim_point)
        goal = min(progress.end, bound) if progress.unfinished else bound
        end = await self._learn(start, goal)
        resumed = progress.unfinished and end == progress.end
        trim_point = self._layout.view.trim_point
        at = await self._clean(max(progress.at if resumed else 0, trim_point), end)
        if at < end:
            return Progress(progress.done, end, at)
        if self._newest.doubtful or resumed:  # an interrupted pass may have been doubtful
            if self._budget.expired and not (resumed and progress.at == end):
                return Progress(progress.done, end, end)  # repeat this with a whole call's time
            # For entries with several tags, newer entries with some of them may be further down.
            reached = await self._learn(trim_point, start, tags_max=2 * _TAGS_MAX)
            cleaned = await self._clean(trim_point, end, again=True)
            if (reached < start or cleaned < end) and not (resumed and progress.at == end):
                return Progress(progress.done, end, end)
        return Progress(end, end, end)

    async def _learn(self, start: int, end: int, *, tags_max: int = 0) -> int:
        """Find the newest entry of each tag in ``[start, end)``. Returns where the search ended.

        The search ends early if half the time is up, or if there are too many tags to remember. If
        ``tags_max`` is not 0, it remembers that many tags and continues without the others.
        """
        newest, stripes = self._newest, self._layout.stripes(start, end, self._deadline)
        left = self._budget.remaining()
        half = self._budget if left is None else self._budget.sooner(left / 2)
        at = start
        async for stripe in stripes:
            last = min(stripe.end, end)
            at = last if self._is_offloaded(stripe) else max(at, stripe.start)
            while at < last:
                if at > start and (half.expired or (not tags_max and len(newest) >= _TAGS_MAX)):
                    return at
                reached = min(last, at + _WINDOW * stripe.width)
                objects = _objects(self._layout, stripe, at, reached)
                while objects:
                    for ref, reply in (await self._listed(objects, reached)).items():
                        noted = newest.note(reply, tags_max) if tags_max else newest.note(reply)
                        _advance(objects, ref, noted, reached)
                at = reached
        return max(at, end)

    async def _clean(self, start: int, end: int, *, again: bool = False) -> int:
        """Trim the superseded entries in ``[start, end)``. Returns where this stopped.

        It stops early if the pass's time is up. If ``again`` is not set, it makes some
        progress first, so that repeated passes come to an end.
        """
        at = start
        async for stripe in self._layout.stripes(start, end, self._deadline):
            last = min(stripe.end, end)
            if self._is_offloaded(stripe):
                continue
            at = await self._clean_stripe(stripe, max(at, stripe.start), last, again=again)
            if at < last:
                return at
        return end

    def _is_offloaded(self, stripe: Stripe) -> bool:
        return self._layout.offloaded.file_of(stripe) is not None

    async def _clean_stripe(self, stripe: Stripe, start: int, end: int, *, again: bool) -> int:
        left = _objects(self._layout, stripe, start, end)
        changed: dict[ObjectRef, range] = {}
        while left and not (self._budget.expired and (changed or again)):
            pages: dict[ObjectRef, tuple[int, int, list[int]]] = {}
            for ref, reply in (await self._listed(left, end)).items():
                first = left[ref]
                reached, superseded = self._newest.superseded(reply)
                _advance(left, ref, reached, end)
                if superseded:
                    pages[ref] = first, reached, superseded
                    known = changed.get(ref, range(first, reached))
                    changed[ref] = range(known.start, reached)
            await _compact(self._layout, pages, self._deadline)
        await rebuild_indexes(self._layout, changed, self._deadline)
        return min(left.values(), default=end)

    async def _listed(self, left: dict[ObjectRef, int], end: int) -> dict[ObjectRef, ReplyBytes]:
        """Return the tags that objects list from their starts on, without objects that are gone."""
        refs = sorted(left, key=left.__getitem__)[:_OBJECTS_AT_ONCE]

        def request(view: View, ref: ObjectRef) -> bytes:
            return messages.tags_list(view.epoch, left[ref], end)

        layout, deadline = self._layout, self._deadline
        replies = await call_each(layout, "tags_list", refs, request, deadline, *_GONE)
        for ref in refs:
            if ref not in replies:
                del left[ref]
        return replies


def _objects(layout: Layout, stripe: Stripe, start: int, end: int) -> dict[ObjectRef, int]:
    """Return the objects that have positions in ``[start, end)``, each with its start."""
    refs = layout.objects(layout.view, stripe)
    parts = stripe.striping.by_object(start, end)
    return {refs[part.number]: start for part in parts}


def _advance(left: dict[ObjectRef, int], ref: ObjectRef, reached: int, end: int) -> None:
    left[ref] = reached
    if reached >= end:
        del left[ref]


async def _compact(
    layout: Layout, pages: dict[ObjectRef, tuple[int, int, list[int]]], deadline: Deadline
) -> None:
    """Let objects trim some positions in ranges and free their space."""

    def request(view: View, ref: ObjectRef) -> bytes:
        first, end, superseded = pages[ref]
        return messages.compact(view.epoch, first, end, ref.striping.packed, superseded)

    while pages:
        refusals = (*_GONE, Code.FROZEN)  # of stripes that are being offloaded
        replies = await call_each(layout, "compact", pages, request, deadline, *refusals)
        asked, pages = pages, {}
        for ref, reply in replies.items():
            _, end, superseded = asked[ref]
            first = messages.compact_reply(reply).end
            rest = superseded[bisect_left(superseded, first) :]
            if rest and first < end:
                pages[ref] = first, end, rest


async def rebuild_indexes(
    layout: Layout, changed: dict[ObjectRef, range], deadline: Deadline
) -> None:
    """Let objects rebuild their tag indexes for some positions. Empties ``changed``."""

    def request(view: View, ref: ObjectRef) -> bytes:
        return messages.tags_rebuild(view.epoch, changed[ref].start, changed[ref].stop)

    while changed:
        refs = [*changed][:_OBJECTS_AT_ONCE]
        replies = await call_each(layout, "tags_rebuild", refs, request, deadline, *_GONE)
        for ref in refs:
            left = changed.pop(ref)
            if ref in replies:
                reached = messages.tags_rebuild_reply(replies[ref]).end
                if reached < left.stop:
                    changed[ref] = range(reached, left.stop)
