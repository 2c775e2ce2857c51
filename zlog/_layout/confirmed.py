"""Where the confirmed entries of an exclusive log end.

Its writer takes positions in a row, and an append is confirmed once all below it are written. So
the entries end at the first position at which nothing is, whatever lies above that: those are
appends under way, or what a writer left that died. No filled position is among them, as readers
look no further, and what they have seen stays: a position that is written is so for ever.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply
from zlog._native import messages
from zlog._replica.repair import answers
from zlog.errors import UnsupportedVersion
from zlog.view import ObjectRef, View


async def confirmed_end(
    io: Io, view: View, start: int, deadline: Deadline, objects: Sequence[ObjectRef] | None = None
) -> int | None:
    """Return the first position of the live stripe, from ``start`` on, that is not written.

    The objects' headers tell: one call of each. Where one has passed positions over, and does not
    know exactly which, its records are counted.

    Args:
        io: the world.
        view: of an exclusive log; the calls carry its epoch.
        start: positions below it are known to be written; not below the live stripe's start.
        deadline: budget of the call.
        objects: of the live stripe, if only these are to be asked.

    Returns:
        The position; None: there is a newer view, or has to be one.

    Raises:
        UnsupportedVersion: an OSD has a class that does not tell.
    """
    refs = [*view.objects(view.live_stripe)] if objects is None else objects
    request = messages.max_position(view.epoch, start)
    replies = await _ask(io, [Call(ref.name, "max_position", request) for ref in refs], deadline)
    if replies is None:
        return None
    end: int | None = None
    for ref, reply in zip(refs, replies, strict=True):
        found = messages.max_position_reply(reply.payload)
        first = found.unwritten
        if first is None:
            raise UnsupportedVersion(
                f"the object class that serves {ref.name} is older than exclusive logs",
                hint="Upgrade libcls_zlog.so on every OSD host (docs/upgrading.md).",
            )
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
    """Return the first unwritten position of one object, from one that may be."""
    while start <= highest:
        request = messages.count(view.epoch, start, highest + 1)
        replies = await _ask(io, [Call(ref.name, "count", request)], deadline)
        if replies is None:
            return None
        counted = messages.count_reply(replies[0].payload)
        if counted.hole is not None:
            return counted.hole
        start = counted.end
    return ref.spacing.after(highest)


async def _ask(io: Io, calls: Sequence[Call], deadline: Deadline) -> list[Reply] | None:
    """Return what the objects answer; None where one shows that there is a newer view.

    It refuses the epoch, or is gone: a stripe is replaced in which nothing is confirmed. Where
    there is no newer view, the change that brings one in tells which object is missing.
    """
    replies = await io.execute(calls, deadline)
    if any(reply.code for reply in replies):
        replies = await answers(io, calls, replies, deadline)
    if any(reply.code in (Code.STALE_EPOCH, -errno.ENOENT) for reply in replies):
        return None
    for call, reply in zip(calls, replies, strict=True):
        reply.check_call(call.method, call.object)
    return replies
