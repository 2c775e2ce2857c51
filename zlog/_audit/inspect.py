"""The audit of whole objects, which compares them with the head."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from zlog._audit.findings import Finding, FindingKind, about
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.names import head_object
from zlog._base.refusals import refused_call
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog.errors import CorruptEntry
from zlog.view import OPEN_END, ObjectRef, Stripe, View

ANY_EPOCH = 2**64 - 1
"""An epoch that no object refuses in a call that reads. An audit need not be fenced, because it
changes nothing and positions never move to another object. With this epoch, it can report an
unfinished layout change instead of finishing it."""

_OBJECTS_AT_ONCE = 256


class _Looked(NamedTuple):
    """What an audit learned about a stripe object.

    ``sealed`` is the lowest epoch that the object should have. ``stat`` is the object's reply to
    ``stat``, or a negative errno if the call failed.
    """

    stripe: Stripe
    ref: ObjectRef
    sealed: int
    stat: messages.StatReply | int


async def walk(
    layout: Layout, start: int, end: int, deadline: Callable[[], Deadline]
) -> AsyncIterator[Stripe | range]:
    """Iterate over the stripes that have untrimmed positions in ``[start, end)``.

    If the head has lost a stripe, the iterator yields the range of its positions instead.
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
            position = layout.view.trim_point  # the stripe was trimmed meanwhile
        else:
            yield stripe
            position = stripe.end


async def _next_known(layout: Layout, position: int, deadline: Deadline) -> int:
    """Return the first position of the next known stripe after a lost one."""
    view = layout.view
    try:
        archived = await layout.head.stripes(view.log_id, position, deadline)
    except CorruptEntry:
        archived = []
    starts = [stripe.start for stripe in archived if stripe.start > position]
    return min(starts, default=max(position + 1, view.stripes[0].start))


async def stat_objects(
    layout: Layout, names: Sequence[str], deadline: Callable[[], Deadline]
) -> AsyncIterator[tuple[str, Reply]]:
    """Call ``stat`` on many objects at a time. Yield each object's name with its reply."""
    request = messages.stat(ANY_EPOCH)
    for start in range(0, len(names), _OBJECTS_AT_ONCE):
        some = names[start : start + _OBJECTS_AT_ONCE]
        replies = await layout.io.execute([Call(n, "stat", request) for n in some], deadline())
        for pair in zip(some, replies, strict=True):
            yield pair


class Inspector:
    """Compares a log's head, its directory entry and its stripe objects.

    Clients use the log meanwhile, so a difference may be a change in progress. It counts as a
    finding only if a second, later comparison finds it again.

    Attributes:
        objects: the number of stripe objects in the last comparison.
        taken: all positions below this one were granted before the last comparison ended.
    """

    def __init__(self, layout: Layout, deadline: Callable[[], Deadline]) -> None:
        self._layout = layout
        self._deadline = deadline
        self._freed: int | None = None
        self.objects = 0
        self.taken = 0

    async def look(self) -> list[Finding]:
        """Compare the head with the objects once, and return the differences.

        Clients may change the log meanwhile, so the head is read before and after the objects. An
        object must have at least the first head's epoch, because clients seal before they record a
        view. It may be trimmed up to the second head's trim point, because clients record it first.
        """
        before = await self._layout.refresh(self._deadline())
        if self._freed is None:
            self._freed = before.trim_point  # so that the trim has time until the second look
        findings: list[Finding] = []
        looked: list[_Looked] = []
        await self._layout.list_offloaded(self._deadline())
        async for stripe in walk(self._layout, 0, OPEN_END, self._deadline):
            if isinstance(stripe, Stripe):
                if self._layout.offloaded.file_of(stripe) is None:
                    looked += await self._stats(before, stripe)
            else:
                findings.append(_lost_stripe(before, stripe))
        after = await self._layout.refresh(self._deadline())
        await self._layout.list_offloaded(self._deadline())
        files = self._layout.offloaded
        looked = [each for each in looked if files.file_of(each.stripe) is None]
        self.objects = len(looked)
        # The tail may be below the positions of a mirror's unfinished round, and below the
        # unconfirmed entries of an exclusive log.
        shared = not before.mirror and before.writer is None
        self.taken = max([before.tail_floor, *map(_taken, looked if shared else ())])
        may_exceed = await self._ended_at_holes(looked)
        findings += (each for one in looked for each in _check(one, self._freed, after, may_exceed))
        directory = self._layout.directory.logs
        if not await directory.has(before.log, self._deadline()):
            detail = f"log {before.log!r} is not in the store's directory"
            findings.append(
                about(FindingKind.UNLISTED, directory.objects_of(before.log)[0], detail)
            )
        return findings

    async def _ended_at_holes(self, looked: Sequence[_Looked]) -> set[int]:
        """Return the ids of the stripes whose objects may hold positions above the stripe's end.

        Unconfirmed entries may follow the end of an exclusive log's stripe. A stripe whose view the
        head no longer stores is included, because it may have been exclusive.
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
        # A stripe is ended by a seal with an epoch above its own id. The next stripe's id may be
        # even higher, because an empty stripe can be replaced.
        sealed = view.epoch if stripe.open else stripe.id + 1
        refs = {ref.name: ref for ref in self._layout.objects(view, stripe)}
        return [
            _Looked(stripe, refs[name], sealed, code if code else messages.stat_reply(payload))
            async for name, (code, payload) in stat_objects(self._layout, [*refs], self._deadline)
        ]


def _lost_stripe(view: View, positions: range) -> Finding:
    detail = "the head no longer records which objects hold these positions"
    first, end = positions[0], positions[-1] + 1
    return Finding(FindingKind.MISSING_STRIPE, head_object(view.log), first, end, detail)


def _taken(looked: _Looked) -> int:
    if isinstance(looked.stat, int) or not looked.stripe.open or looked.stat.highest is None:
        return 0
    return looked.stat.highest + 1


def _exceeds(looked: _Looked) -> bool:
    """Whether an object has positions above its stripe's end."""
    stripe, _, _, stat = looked
    if isinstance(stat, int) or stat.highest is None:
        return False
    # An object counts all positions below its trim point as taken.
    return stat.highest >= max(stripe.end, stat.trim_point)


def _check(
    looked: _Looked, freed: int, newest: View, may_exceed: Collection[int]
) -> Iterator[Finding]:
    stripe, ref, sealed, stat = looked
    if stat == -errno.ENOENT:
        if stripe.end > newest.trim_point and not _was_replaced(stripe, newest):
            yield about(FindingKind.MISSING_OBJECT, ref.name, "the object does not exist")
    elif stat == -errno.EIO:
        detail = "the header fails its checksum, so no entry can be read"
        yield about(FindingKind.DAMAGED_OBJECT, ref.name, detail)
    elif isinstance(stat, int):
        raise refused_call(stat, "stat", ref.name)
    else:
        width, stripe_unit = ref.striping
        epoch, trimmed = stat.object_epoch, stat.trim_point
        if (stat.stride, stat.residue, stat.stripe_unit) != (width, ref.number, stripe_unit):
            detail = (
                f"created as object {stat.residue} of {stat.stride} with stripe unit"
                f" {stat.stripe_unit}, but in the view it is object {ref.number} of {width} with"
                f" stripe unit {stripe_unit}"
            )
            yield about(FindingKind.WRONG_OBJECT, ref.name, detail)
        if _exceeds(looked) and stripe.id not in may_exceed:
            detail = f"holds position {stat.highest}, but its stripe ends at {stripe.end}"
            yield about(FindingKind.BEYOND_END, ref.name, detail)
        if epoch < sealed:
            detail = f"sealed with epoch {epoch} instead of {sealed}"
            yield about(FindingKind.EPOCH_BEHIND, ref.name, detail)
        if epoch > newest.epoch:
            detail = f"sealed with epoch {epoch}, but the newest view has epoch {newest.epoch}"
            yield about(FindingKind.EPOCH_AHEAD, ref.name, detail)
        if trimmed > newest.trim_point:
            detail = f"trimmed to {trimmed}, but the log is trimmed to {newest.trim_point}"
            yield about(FindingKind.TRIM_AHEAD, ref.name, detail)
        if stat.records and stripe.start < freed and trimmed < freed:
            detail = f"freed up to {trimmed}, but the log is trimmed only to {freed}"
            yield about(FindingKind.TRIM_BEHIND, ref.name, detail)


def _was_replaced(stripe: Stripe, newest: View) -> bool:
    """Whether a stripe was replaced by another one while it was empty."""
    kept = any(each.id == stripe.id for each in newest.stripes)
    return not kept and stripe.start >= newest.stripes[0].start
