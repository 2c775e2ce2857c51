"""Sealing, making and removing the objects of a stripe."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterable
from itertools import islice

from zlog._base.codes import EPOCHS_AHEAD_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io
from zlog._native import messages
from zlog._replica.repair import answers
from zlog.errors import CorruptEntry
from zlog.view import ObjectRef

_logger = logging.getLogger(__name__)

_REMOVED_AT_ONCE_MAX = 64
"""Objects under removal at the same time: an OSD has other things to do too."""


async def seal(
    io: Io,
    objects: Iterable[ObjectRef],
    epoch: int,
    deadline: Deadline,
    *,
    start: int,
    missing_ok: bool = False,
) -> list[messages.SealReply] | int:
    """Seal stripe objects with ``epoch``, all at the same time.

    An object takes no epoch that is too far above its last one: it is brought near it in steps.

    Args:
        io: the world.
        objects: which.
        epoch: the new one.
        deadline: budget of the call.
        start: no position of their stripe lies below it.
        missing_ok: pass over missing objects, as when removing a log, and over those for other
            positions, which a hostile client has made. Otherwise a missing object is an error: it
            was lost, and must not be replaced in silence by an empty one.

    Returns:
        What each object tells, or the highest epoch that an object has where that is not below
        ``epoch``, which means that another client is ahead.
    """
    sealed: list[messages.SealReply] = []
    ahead = 0
    steps = dict.fromkeys(objects, epoch)
    while steps:
        calls = [
            Call(ref.name, "seal", _seal(ref, step, start, create=False))
            for ref, step in steps.items()
        ]
        replies = await answers(io, calls, await io.execute(calls, deadline), deadline)
        for (ref, step), reply in zip([*steps.items()], replies, strict=True):
            if missing_ok and reply.code in (-errno.ENOENT, -errno.EINVAL):
                del steps[ref]
                continue
            if reply.code == -errno.ENOENT:
                raise CorruptEntry(f"stripe object {ref.name} is missing")
            reply.check_call("seal", ref.name, Code.INVALID_EPOCH)
            reached = reply.number if reply.code == Code.INVALID_EPOCH else step
            if reached < epoch:
                steps[ref] = min(epoch, reached + EPOCHS_AHEAD_MAX)
                continue
            del steps[ref]
            if reply.code == Code.INVALID_EPOCH:
                ahead = max(ahead, reached)
            else:
                sealed.append(messages.seal_reply(reply.payload))
    return ahead or sealed


async def make(
    io: Io, objects: Iterable[ObjectRef], epoch: int, deadline: Deadline, *, start: int
) -> int:
    """Make the objects of a new stripe, of positions from ``start`` on.

    No other client ever seals with their epoch.

    Returns:
        0; or, where one was there already, the epoch that the next attempt's has to be above: a
        hostile client has guessed the name, and may have put anything into the object. It can't
        guess that epoch.
    """
    calls = [Call(ref.name, "seal", _seal(ref, epoch, start, create=True)) for ref in objects]
    made = True
    for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
        reply.check_call("seal", call.object, -errno.EINVAL, Code.INVALID_EPOCH)
        made &= reply.code == Code.OK and messages.seal_reply(reply.payload).made
    return 0 if made else epoch + int(io.random() * EPOCHS_AHEAD_MAX)


def _seal(ref: ObjectRef, epoch: int, start: int, *, create: bool) -> bytes:
    width, unit = ref.spacing
    return messages.seal(epoch, width, ref.number, create, start, unit)


async def remove(io: Io, objects: Iterable[ObjectRef], epoch: int, deadline: Deadline) -> None:
    """Remove stripe objects that are not needed any more, sealed with any epoch.

    An object knows a higher epoch than ``epoch`` when a slow client sealed it after its
    stripe had ended. Missing objects are passed over, and damaged ones, which can't be removed.
    """
    rest = iter(objects)
    while names := [ref.name for ref in islice(rest, _REMOVED_AT_ONCE_MAX)]:
        left = dict.fromkeys(names, epoch)
        while left:
            calls = [Call(name, "remove", messages.remove(known)) for name, known in left.items()]
            for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
                missing, damaged = -errno.ENOENT, -errno.EIO
                reply.check_call("remove", call.object, missing, damaged, Code.STALE_EPOCH)
                if reply.code == Code.STALE_EPOCH:
                    left[call.object] = reply.number
                    continue
                del left[call.object]
                if reply.code == damaged:
                    _logger.warning("object %s stays: its header is damaged", call.object)
