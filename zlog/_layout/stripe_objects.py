"""Sealing, making and removing the objects of a stripe."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from itertools import islice

from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io
from zlog._base.protocol import Code
from zlog._layout.heal import answers
from zlog._native import messages
from zlog.errors import CorruptEntry
from zlog.view import ObjectRef

_REMOVED_AT_ONCE_MAX = 64
"""Objects under removal at the same time: an OSD has other things to do too."""


async def seal(
    io: Io,
    objects: Iterable[ObjectRef],
    epoch: int,
    deadline: Deadline,
    *,
    create: bool = False,
    missing_ok: bool = False,
) -> list[messages.SealReply] | None:
    """Seal stripe objects with ``epoch``, all at the same time.

    Args:
        io: the world.
        objects: which.
        epoch: the new one.
        deadline: budget of the call.
        create: make the objects, as for a new stripe. Otherwise a missing object is an error: it
            was lost, and must not be replaced in silence by an empty one.
        missing_ok: pass over missing objects, as when removing a log.

    Returns:
        What each object tells, or None when some object has an equal or higher epoch already,
        which means that another client is ahead.
    """
    calls = [
        Call(ref.name, "seal", messages.seal(epoch, ref.stride, ref.residue, create))
        for ref in objects
    ]
    sealed: list[messages.SealReply] = []
    overtaken = False
    replies = await answers(io, calls, await io.execute(calls, deadline), deadline)
    for call, reply in zip(calls, replies, strict=True):
        if reply.code == -errno.ENOENT:
            if not missing_ok:
                raise CorruptEntry(f"stripe object {call.object} is missing")
            continue
        reply.check(f"seal on {call.object}", Code.INVALID_EPOCH)
        if reply.code == Code.INVALID_EPOCH:
            overtaken = True
        else:
            sealed.append(messages.seal_reply(reply.payload))
    return None if overtaken else sealed


async def remove(io: Io, objects: Iterable[ObjectRef], epoch: int, deadline: Deadline) -> None:
    """Remove stripe objects that are not needed any more, sealed with any epoch.

    An object knows a higher epoch than ``epoch`` when a slow client sealed it after its
    stripe had ended. Missing objects are passed over.
    """
    rest = iter(objects)
    while names := [ref.name for ref in islice(rest, _REMOVED_AT_ONCE_MAX)]:
        left = dict.fromkeys(names, epoch)
        while left:
            calls = [Call(name, "remove", messages.remove(known)) for name, known in left.items()]
            for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
                reply.check(f"remove on {call.object}", -errno.ENOENT, Code.STALE_EPOCH)
                if reply.code == Code.STALE_EPOCH:
                    left[call.object] = reply.number
                else:
                    del left[call.object]
