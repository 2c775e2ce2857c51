"""An audit's look at objects as a whole: whether what the head says of them holds."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from zlog._audit.findings import Finding, FindingKind, about
from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._base.names import head_object
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog.errors import CorruptEntry
from zlog.view import OPEN_END, ObjectRef, Stripe, View

ANY_EPOCH = 2**64 - 1
"""No object refuses a reading call of this epoch. An audit need not be fenced: it changes nothing,
and where a position lies never changes. So it goes on where a layout change was left half done,
and tells of it rather than finishing it."""

OBJECTS_AT_ONCE = 256


class _Looked(NamedTuple):
    """A stripe object as it was met.

    ``sealed`` is the epoch that it was sealed with, at least. ``stat`` is an errno where the object
    could not tell.
    """

    stripe: Stripe
    ref: ObjectRef
    sealed: int
    stat: messages.StatReply | int


async def walk(
    layout: Layout, start: int, end: int, deadline: Callable[[], Deadline]
) -> AsyncIterator[Stripe | range]:
    """Iterate over the stripes that hold positions of ``[start, end)``, and are not all trimmed.

    Where the head has lost the stripe of some positions, these come in its place.
    """
    position = max(start, layout.view.trim_point)
    while position < end:
        try:
            stripe = await layout.stripe_at(position, deadline())
        except CorruptEntry:
            known = await _next_known(layout, position, deadline())
            yield range(position, known)
            position = known
            continue
        if stripe is None:
            position = layout.view.trim_point  # it was trimmed meanwhile
        else:
            yield stripe
            position = stripe.end


async def _next_known(layout: Layout, position: int, deadline: Deadline) -> int:
    """Return the first position above one whose stripe is lost that lies in another stripe."""
    view = layout.view
    try:
        archived = await layout.head.stripes(view.log_id, position, deadline)
    except CorruptEntry:  # what the head has is damaged, and what comes behind it hidden
        archived = []
    starts = [stripe.start for stripe in archived if stripe.start > position]
    return min(starts, default=max(position + 1, view.stripes[0].start))


class Inspector:
    """Compares a log's head, its directory entry and its stripe objects.

    The log is in use meanwhile, so what a look finds may be a change that is half done: it counts
    once a second look, some time later, finds it again.

    Attributes:
        objects: how many stripe objects the last look was at.
        taken: positions below it are taken, or were told to be below the tail, as of that look.
    """

    def __init__(self, layout: Layout, deadline: Callable[[], Deadline]) -> None:
        self._layout = layout
        self._deadline = deadline
        self._freed: int | None = None
        self.objects = 0
        self.taken = 0

    async def look(self) -> list[Finding]:
        """Return what does not fit, as of now.

        A layout or a trim point is recorded before objects are cut off, trimmed or removed, and
        after they were made and sealed. So what objects must have done is judged by the head as it
        was before they were asked, and what they may have done by the head as it is afterwards.
        """
        before = await self._layout.refresh(self._deadline())
        if self._freed is None:
            self._freed = before.trim_point  # a second look leaves a trim the time in between
        findings: list[Finding] = []
        looked: list[_Looked] = []
        async for stripe in walk(self._layout, 0, OPEN_END, self._deadline):
            if isinstance(stripe, Stripe):
                looked += await self._stats(before, stripe)
            else:
                findings.append(_lost_stripe(before, stripe))
        after = await self._layout.refresh(self._deadline())
        self.objects = len(looked)
        # No tail has to cover what a mirror holds above its floor, which was not copied whole yet,
        # nor what an exclusive log holds above a hole, which is not confirmed.
        shared = not before.mirror and before.writer is None
        self.taken = max([before.tail_floor, *map(_taken, looked if shared else ())])
        may_exceed = await self._ended_at_holes(looked)
        findings += (each for one in looked for each in _judge(one, self._freed, after, may_exceed))
        directory = self._layout.directory.logs
        if not await directory.has(before.log, self._deadline()):
            detail = f"log {before.log!r} is not in the store's directory"
            findings.append(
                about(FindingKind.UNLISTED, directory.objects_of(before.log)[0], detail)
            )
        return findings

    async def _ended_at_holes(self, looked: Sequence[_Looked]) -> set[int]:
        """Return stripes, by id, that may hold positions from their end on.

        Those that an exclusive writer has left, which end where its confirmed entries did; and
        those of which the head has no view any more that tells.
        """
        beyond = {each.stripe.id for each in looked if _exceeds(each)}
        if not beyond:
            return beyond
        shared = {
            view.live_stripe.id: view.writer is None
            for view in await self._layout.head.views(self._deadline())
        }
        return {each for each in beyond if not shared.get(each, False)}

    async def _stats(self, view: View, stripe: Stripe) -> list[_Looked]:
        # A stripe is ended by a seal with an epoch above its own. The next stripe's id may be
        # higher still: one that held nothing is replaced.
        sealed = view.epoch if stripe.open else stripe.id + 1
        request = messages.stat(ANY_EPOCH)
        refs = self._layout.objects(view, stripe)
        calls = [Call(ref.name, "stat", request) for ref in refs]
        looked: list[_Looked] = []
        for start in range(0, len(refs), OBJECTS_AT_ONCE):
            some = calls[start : start + OBJECTS_AT_ONCE]
            replies = await self._layout.io.execute(some, self._deadline())
            for ref, (code, payload) in zip(refs[start:], replies, strict=False):
                stat = code if code else messages.stat_reply(payload)
                looked.append(_Looked(stripe, ref, sealed, stat))
        return looked


def _lost_stripe(view: View, positions: range) -> Finding:
    detail = "the head has lost which objects hold these positions"
    first, end = positions[0], positions[-1] + 1
    return Finding(FindingKind.MISSING_STRIPE, head_object(view.log), first, end, detail)


def _taken(looked: _Looked) -> int:
    if isinstance(looked.stat, int) or not looked.stripe.open or looked.stat.highest is None:
        return 0
    return looked.stat.highest + 1


def _exceeds(looked: _Looked) -> bool:
    """Whether an object has positions beyond its stripe's end."""
    stripe, _, _, stat = looked
    if isinstance(stat, int) or stat.highest is None:
        return False
    # Below its own trim point an object counts positions as taken that it never had.
    return stat.highest >= max(stripe.end, stat.trim_point)


def _judge(
    looked: _Looked, freed: int, newest: View, may_exceed: Collection[int]
) -> Iterator[Finding]:
    stripe, ref, _, stat = looked
    if not isinstance(stat, int):
        yield from _judge_made(looked, stat)
        if _exceeds(looked) and stripe.id not in may_exceed:
            detail = f"holds position {stat.highest}, its stripe ends at {stripe.end}"
            yield about(FindingKind.BEYOND_END, ref.name, detail)
        yield from _judge_epoch(looked, stat, newest)
        yield from _judge_trim(looked, stat, freed, newest)
    elif stat == -errno.ENOENT:
        if stripe.end > newest.trim_point and not _was_replaced(stripe, newest):
            yield about(FindingKind.MISSING_OBJECT, ref.name, "the object is gone")
    elif stat == -errno.EIO:
        detail = "the header fails its checksum, so that no entry can be read"
        yield about(FindingKind.DAMAGED_OBJECT, ref.name, detail)
    else:
        raise refused_call(stat, "stat", ref.name)


def _was_replaced(stripe: Stripe, newest: View) -> bool:
    """Whether a stripe went without ever holding anything."""
    kept = any(each.id == stripe.id for each in newest.stripes)
    return not kept and stripe.start >= newest.stripes[0].start


def _judge_made(looked: _Looked, stat: messages.StatReply) -> Iterator[Finding]:
    ref = looked.ref
    width, unit = ref.spacing
    if (stat.stride, stat.residue, stat.unit) != (width, ref.number, unit):
        detail = (
            f"made as object {stat.residue} of {stat.stride} with units of {stat.unit}, in the view"
            f" it is {ref.number} of {width} with units of {unit}"
        )
        yield about(FindingKind.WRONG_OBJECT, ref.name, detail)


def _judge_epoch(looked: _Looked, stat: messages.StatReply, newest: View) -> Iterator[Finding]:
    epoch, name = stat.object_epoch, looked.ref.name
    if epoch < looked.sealed:
        detail = f"sealed with epoch {epoch} only, it must have {looked.sealed}"
        yield about(FindingKind.EPOCH_BEHIND, name, detail)
    if epoch > newest.epoch:
        detail = f"sealed with epoch {epoch}, the newest view has {newest.epoch}"
        yield about(FindingKind.EPOCH_AHEAD, name, detail)


def _judge_trim(
    looked: _Looked, stat: messages.StatReply, freed: int, newest: View
) -> Iterator[Finding]:
    name = looked.ref.name
    if stat.trim_point > newest.trim_point:
        detail = f"trimmed to {stat.trim_point}, the log to {newest.trim_point}"
        yield about(FindingKind.TRIM_AHEAD, name, detail)
    if stat.records and looked.stripe.start < freed and stat.trim_point < freed:
        detail = f"freed up to {stat.trim_point}, the log is trimmed to {freed}"
        yield about(FindingKind.TRIM_BEHIND, name, detail)
