"""Statistics of stripe objects and of logs."""

from __future__ import annotations

import errno
from typing import NamedTuple

from zlog._base.deadline import Deadline
from zlog._base.names import check_range
from zlog._layout.layout import Layout
from zlog._layout.object_calls import call_each
from zlog._native import messages
from zlog._positions.positions import Positions
from zlog.view import OPEN_END, ObjectRef, Stripe, View


class OffloadedStat(NamedTuple):
    """Statistics of a log's offloaded stripes.

    If the trim point is inside of a segment of a file, the whole segment is counted.

    Attributes:
        stripes: the number of stripes.
        entries: the number of their entries.
        bytes: the size of the entries' data.
        file_bytes: the size of the files.
    """

    stripes: int = 0
    entries: int = 0
    bytes: int = 0
    file_bytes: int = 0


class LogStat(NamedTuple):
    """Statistics of a log, or of the stripes in a range. Trimmed entries are not counted.

    Attributes:
        name: the log's name.
        log_id: the log's id. A log that is removed and created again gets another id.
        epoch: the epoch of the newest view.
        tail: the next position to be granted.
        trim_point: all positions below it are trimmed.
        width: the number of stripe objects of the live stripe.
        stripe_unit: the number of consecutive positions in one stripe object.
        stripes: the number of stripes that have positions in the range and are not wholly trimmed.
        objects: the number of objects of these stripes.
        sequencer: the sequencer's address; empty if writers find the tail themselves.
        entries: the number of entries. Lost entries count until they are trimmed.
        bytes: the size of the entries' data.
        stored_bytes: the space that this data takes in the objects, without their index. It is
            smaller than ``bytes`` with compression, and larger with MACs.
        offloaded: what is in files; see :class:`OffloadedStat`. ``entries`` and ``bytes`` include
            it, but ``objects`` and ``stored_bytes`` do not.
    """

    name: str
    log_id: int
    epoch: int
    tail: int
    trim_point: int
    width: int
    stripe_unit: int
    stripes: int
    objects: int
    sequencer: str
    entries: int
    bytes: int
    stored_bytes: int
    offloaded: OffloadedStat = OffloadedStat()


def plus(stat: OffloadedStat, *more: int) -> OffloadedStat:
    """Return the sums of two statistics."""
    return OffloadedStat(*map(sum, zip(stat, more, strict=True)))


async def stat(positions: Positions, start: int, end: int | None, deadline: Deadline) -> LogStat:
    """Return statistics of a log; see :meth:`zlog.Log.stat`."""
    check_range(start, end)
    tail = await positions.tail(deadline)
    layout = positions.layout
    await layout.refresh(deadline)
    stripes = objects = entries = size = stored = 0
    offloaded = OffloadedStat()
    async for stripe in layout.stripes(start, OPEN_END if end is None else end, deadline):
        stripes += 1
        file = layout.offloaded.file_of(stripe)
        objects += 0 if file else stripe.width
        before = entries, size
        for object_stat in await object_stats(layout, stripe, deadline):
            entries += object_stat.entries
            size += data_bytes(layout, object_stat)
            stored += object_stat.stored_bytes or 0
        if file:
            offloaded = plus(offloaded, 1, entries - before[0], size - before[1], file.size)
    view = layout.view
    return LogStat(
        name=view.log,
        log_id=view.log_id,
        epoch=view.epoch,
        tail=tail,
        trim_point=view.trim_point,
        width=view.live_stripe.width,
        stripe_unit=view.live_stripe.stripe_unit,
        stripes=stripes,
        objects=objects,
        sequencer=view.sequencer,
        entries=entries,
        bytes=size,
        stored_bytes=stored,
        offloaded=offloaded,
    )


def data_bytes(layout: Layout, stat: messages.StatReply) -> int:
    """Return the bytes of data in an object, without the MACs of its entries."""
    return max(0, stat.bytes - layout.macs.bytes * stat.entries)


async def object_stats(
    layout: Layout, stripe: Stripe, deadline: Deadline, *expected: int
) -> list[messages.StatReply]:
    """Return statistics of a stripe's objects, except missing ones and ``expected`` errors.

    For an offloaded stripe, returns one item about its file.
    """

    def request(view: View, _: ObjectRef) -> bytes:
        return messages.stat(view.epoch)

    if (file := layout.offloaded.file_of(stripe)) is not None:
        entries, size = file.since(layout.view.trim_point)
        end = file.end - 1
        return [messages.StatReply(0, end, 0, entries, size, 0, 0, 1, 0, 1, 0, True)]
    refs = layout.objects(layout.view, stripe)
    replies = await call_each(layout, "stat", refs, request, deadline, -errno.ENOENT, *expected)
    if len(replies) < len(refs):
        await layout.refresh(deadline)
        await layout.list_offloaded(deadline)
        if layout.offloaded.file_of(stripe) is not None:  # it was offloaded meanwhile
            return await object_stats(layout, stripe, deadline, *expected)
    return [*map(messages.stat_reply, replies.values())]
