"""Repairs a damaged replica of an object from another replica."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Sequence

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply
from zlog._native import messages, replies
from zlog._replica.replicas import Replicas, elsewhere, failed_lately, note_failed
from zlog.errors import ZlogError

_logger = logging.getLogger(__name__)

_REFUSED = (Code.READ_ONLY, Code.BELOW_TRIM_POINT, Code.UNREADABLE, -errno.ENOENT, -errno.EIO)
"""The answers if the value was trimmed or repaired before, or if more of the object is damaged."""


async def damaged(
    io: Io, object: str, deadline: Deadline, *, any_replica: bool = False
) -> list[bytes]:
    """Return the names of an object's attributes and keys that are missing or damaged.

    In a stripe object, only the header is checked here; `verify` checks the positions. If
    ``any_replica`` is set, a random replica is checked instead of the primary.
    """
    found: list[bytes] = []
    after = b""
    while True:
        reply = await look(
            io, Call(object, "damaged", messages.damaged(after)), deadline, any_replica=any_replica
        )
        if reply is None or reply.code == -errno.ENOENT:
            return found
        reply.check_call("damaged", object)
        names, after = messages.damaged_reply(reply.payload)
        found += names
        if not after:
            return found


async def look(io: Io, call: Call, deadline: Deadline, *, any_replica: bool) -> Reply | None:
    """Return the reply of the primary or of a random replica, or None if there is none."""
    if not any_replica:
        return (await io.execute([call], deadline))[0]
    replicas = Replicas(io, call.object, call.method, bytes(call.payload), deadline)
    return await anext(replicas.replies(), None)


async def repair_values(
    io: Io, object: str, names: Sequence[bytes], deadline: Deadline
) -> list[bytes]:
    """Repair attributes and keys of an object. Returns those that another replica had."""
    return [name for name in names if await _repair(io, object, name, None, deadline) is not None]


async def repair_record(io: Io, object: str, position: int, deadline: Deadline) -> int | None:
    """Repair the record that covers a position, with all its entries.

    Returns the record's last position, or None if the record is intact or no replica has all of it.
    """
    return await _repair(io, object, b"", position, deadline)


async def _repair(
    io: Io, object: str, name: bytes, position: int | None, deadline: Deadline
) -> int | None:
    sound = await _salvage(io, object, name, position, deadline)
    if sound is None:
        return None
    install = Call(object, "heal", messages.heal(sound.name, sound.value, sound.data))
    (reply,) = await io.execute([install], deadline)
    reply.check_call("heal", object, *_REFUSED)
    if reply.code != Code.OK:
        return None
    _logger.info("repaired object=%s name=%s from another replica", object, sound.name)
    return sound.last


async def _salvage(
    io: Io, object: str, name: bytes, position: int | None, deadline: Deadline
) -> messages.SalvageReply | None:
    """Find a sound copy of a value for a repair, in the replica that has its newest version.

    If the primary knows a record's index, any sound copy of the record will do. Otherwise, any
    replica may have the newest version, so all must answer. Returns None if a required replica did
    not answer, if no replica has the value, or if the replicas contradict each other.
    """
    request = messages.salvage(name, position)
    (reply,) = await io.execute([Call(object, "salvage", request)], deadline)
    sound = [bytes(reply.payload)] if reply.code == Code.OK else []
    indexed = position is not None and reply.code in (Code.OK, -errno.EIO)
    if not (sound and indexed):
        replicas = Replicas(io, object, "salvage", request, deadline)
        async for reply in replicas.replies():
            if reply.code == Code.OK:
                sound.append(bytes(reply.payload))
                if indexed:
                    break
        if not indexed and not await replicas.all_answered():
            return None
    found = [messages.salvage_reply(each) for each in dict.fromkeys(sound)]
    if not found:
        return None
    newest = 0 if len(found) == 1 else replies.newest(name, [each.value for each in found])
    if newest is None:
        what = (object, found[0].name.decode(errors="replace"))
        _logger.warning("object %s: not repaired: the replicas of %s contradict each other", *what)
        return None
    return found[newest]


async def answers(
    io: Io, calls: Sequence[Call], replies: Sequence[Reply], deadline: Deadline
) -> list[Reply]:
    """Replace replies that report damage with replies of sound replicas, if there are any.

    A call that only reads is sent to other replicas. A call that changes the object is repeated
    after a repair, so it must be idempotent.
    """
    result: list[Reply] = []
    for call, reply in zip(calls, replies, strict=True):
        if reply.code == -errno.EIO and not failed_lately(io, call.object, call.method):
            reply = await elsewhere(io, call, reply, deadline)
            if reply.code == -errno.EIO and await _repair_values(io, call.object, deadline):
                (reply,) = await io.execute([call], deadline)
            if reply.code == -errno.EIO:
                note_failed(io, call.object, [call.method], deadline)
        result.append(reply)
    return result


async def _repair_values(io: Io, object: str, deadline: Deadline) -> bool:
    """Repair the damaged values that every call needs. Returns whether any was repaired."""
    if io.store.read_only:
        return False
    with contextlib.suppress(ZlogError):  # if caps are missing, for example, nothing is repaired
        names = await damaged(io, object, deadline)
        return bool(await repair_values(io, object, names, deadline))
    return False
