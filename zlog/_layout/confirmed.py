"""Finds the end of the confirmed entries of an exclusive log.

The log's writer takes consecutive positions, and an append is confirmed once all positions below it
are written. The confirmed entries therefore end at the first unwritten position, and this end never
moves back. Entries above it are in flight, or were left by a writer that died. Readers stop at the
end and fill no position above it.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply
from zlog._native import messages
from zlog._replica.repair import answers
from zlog.view import ObjectRef, View


async def confirmed_end(
    io: Io, view: View, start: int, deadline: Deadline, objects: Sequence[ObjectRef] | None = None
) -> int | None:
    """Return the first unwritten position of the live stripe that is not below ``start``.

    If ``objects`` is given, only their positions count. Usually one request per object is enough.
    Returns None if the caller must first refresh or change the view.
    """
    refs = [*view.objects(view.live_stripe)] if objects is None else objects
    request = messages.max_position(view.epoch, start)
    replies = await _ask(io, [Call(ref.name, "max_position", request) for ref in refs], deadline)
    if replies is None:
        return None
    end: int | None = None
    for ref, reply in zip(refs, replies, strict=True):
        found = messages.max_position_reply(reply.payload)
        first = start if found.unwritten is None else found.unwritten
        if found.highest is not None and first < found.highest:
            exact = await _first_hole(io, view, ref, first, found.highest, deadline)
            if exact is None:
                return None
            first = exact
        end = first if end is None else min(end, first)
    return end


async def _first_hole(
    io: Io, view: View, ref: ObjectRef, start: int, highest: int, deadline: Deadline
) -> int | None:
    """Return one object's first unwritten position from ``start`` on, at most after ``highest``."""
    while start <= highest:
        request = messages.count(view.epoch, start, highest + 1)
        replies = await _ask(io, [Call(ref.name, "count", request)], deadline)
        if replies is None:
            return None
        counted = messages.count_reply(replies[0].payload)
        if counted.hole is not None:
            return counted.hole
        start = counted.end
    return ref.striping.after(highest)


async def _ask(io: Io, calls: Sequence[Call], deadline: Deadline) -> list[Reply] | None:
    """Call stripe objects. Returns None if an object refuses the epoch or is missing.

    The caller must then refresh or change the view. Changing it fails if an object is lost.
    """
    replies = await io.execute(calls, deadline)
    if any(reply.code for reply in replies):
        replies = await answers(io, calls, replies, deadline)
    if any(reply.code in (Code.STALE_EPOCH, -errno.ENOENT) for reply in replies):
        return None
    for call, reply in zip(calls, replies, strict=True):
        reply.check_call(call.method, call.object)
    return replies
