"""Sealing, making and removing the objects of a stripe."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io
from zlog._native import core
from zlog.errors import CorruptEntry, from_errno
from zlog.view import ObjectRef

_REMOVED_AT_ONCE_MAX = 64
"""Objects under removal at the same time: an OSD has other things to do too."""


class Sealed(NamedTuple):
    """What an object tells when it is sealed.

    Attributes:
        highest: the highest position that is taken; None: none is.
        records: stored records, each of them an omap key.
        bytes: length of its bytestream, or the data of its live entries if that is more.
    """

    highest: int | None
    records: int
    bytes: int


async def seal(
    io: Io,
    objects: Iterable[ObjectRef],
    epoch: int,
    deadline: Deadline,
    *,
    create: bool = False,
    missing_ok: bool = False,
) -> list[Sealed] | None:
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
        Call(ref.name, "seal", core.encode_seal(epoch, ref.stride, ref.residue, create))
        for ref in objects
    ]
    sealed: list[Sealed] = []
    overtaken = False
    for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
        if reply.code == -errno.ENOENT:
            if not missing_ok:
                raise CorruptEntry(f"stripe object {call.object} is missing")
        elif reply.code < 0:
            raise from_errno(reply.code, f"seal on {call.object}")
        elif reply.code == Code.INVALID_EPOCH:
            overtaken = True
        else:
            sealed.append(Sealed(*core.decode_seal(reply.payload)))
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
            calls = [Call(name, "remove", core.encode_epoch(known)) for name, known in left.items()]
            for call, reply in zip(calls, await io.execute(calls, deadline), strict=True):
                if reply.code < 0 and reply.code != -errno.ENOENT:
                    raise from_errno(reply.code, f"remove on {call.object}")
                if reply.code == Code.STALE_EPOCH:
                    left[call.object] = core.decode_epoch(reply.payload)
                else:
                    del left[call.object]
