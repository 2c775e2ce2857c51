"""Putting right what one copy of an object has damaged, from another copy of it."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Sequence

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply
from zlog._native import messages, replies
from zlog._replica.replicas import Copies, elsewhere, in_vain, note_in_vain
from zlog.errors import ZlogError

_logger = logging.getLogger(__name__)

_REFUSED = (Code.READ_ONLY, Code.BELOW_TRIM_POINT, Code.UNREADABLE, -errno.ENOENT, -errno.EIO)
"""It was trimmed meanwhile, or healed by another client, or is more damaged than was looked at."""


async def damaged(
    io: Io, object: str, deadline: Deadline, *, any_copy: bool = False
) -> list[bytes]:
    """Return the attributes and keys of an object that fail their checksum, or should be there.

    Of a stripe object its header alone; `verify` tells of its positions.

    Args:
        io: the world.
        object: its name.
        deadline: budget.
        any_copy: look at a copy that is chosen at random, instead of the primary one.
    """
    found: list[bytes] = []
    after = b""
    while True:
        reply = await look(
            io, Call(object, "damaged", messages.damaged(after)), deadline, any_copy=any_copy
        )
        if reply is None or reply.code == -errno.ENOENT:
            return found
        reply.check_call("damaged", object)
        names, after = messages.damaged_reply(reply.payload)
        found += names
        if not after:
            return found


async def look(io: Io, call: Call, deadline: Deadline, *, any_copy: bool) -> Reply | None:
    """Return what the primary copy answers, or one chosen at random; None: there is none."""
    if not any_copy:
        return (await io.execute([call], deadline))[0]
    copies = Copies(io, call.object, call.method, bytes(call.payload), deadline)
    return await anext(copies.replies(), None)


async def heal_values(
    io: Io, object: str, names: Sequence[bytes], deadline: Deadline
) -> list[bytes]:
    """Put attributes and keys of an object back; returns those that another copy had."""
    return [name for name in names if await _heal(io, object, name, None, deadline) is not None]


async def heal_record(io: Io, object: str, position: int, deadline: Deadline) -> int | None:
    """Put the record that covers a position back, with all entries in it.

    Returns its last position; None: no copy has all of it, or it is no damage any more.
    """
    return await _heal(io, object, b"", position, deadline)


async def _heal(
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
    _logger.info("healed object=%s name=%s from another copy", object, sound.name)
    return sound.last


async def _salvage(
    io: Io, object: str, name: bytes, position: int | None, deadline: Deadline
) -> messages.SalvageReply | None:
    """Return a value from the newest copy.

    Of a record whose index the primary copy has, any sound copy will do: the index says which.
    Else all have to answer: the newest may be one that does not.

    Returns:
        None: no copy has it, some contradict each other, or one did not answer.
    """
    request = messages.salvage(name, position)
    (reply,) = await io.execute([Call(object, "salvage", request)], deadline)
    sound = [bytes(reply.payload)] if reply.code == Code.OK else []
    indexed = position is not None and reply.code in (Code.OK, -errno.EIO)
    if not (sound and indexed):
        copies = Copies(io, object, "salvage", request, deadline)
        async for reply in copies.replies():
            if reply.code == Code.OK:
                sound.append(bytes(reply.payload))
                if indexed:
                    break
        if not indexed and not await copies.all_answered():
            return None
    found = [messages.salvage_reply(each) for each in dict.fromkeys(sound)]
    if not found:
        return None
    newest = 0 if len(found) == 1 else replies.newest(name, [each.value for each in found])
    if newest is None:
        what = (object, found[0].name.decode(errors="replace"))
        _logger.warning("object %s: copies of %s contradict each other: not healed", *what)
        return None
    return found[newest]


async def answers(
    io: Io, calls: Sequence[Call], replies: Sequence[Reply], deadline: Deadline
) -> list[Reply]:
    """Return the replies to some calls, without damage where a sound copy is left.

    Where the primary copy could not do without bytes that it has damaged, another one is asked
    what a call wants to know; and a call that changes something is repeated once these are put
    right. So it must be one that may be repeated.
    """
    result: list[Reply] = []
    for call, reply in zip(calls, replies, strict=True):
        if reply.code == -errno.EIO and not in_vain(io, call.object, call.method):
            reply = await elsewhere(io, call, reply, deadline)
            if reply.code == -errno.EIO and await _mend(io, call.object, deadline):
                (reply,) = await io.execute([call], deadline)
            if reply.code == -errno.EIO:
                note_in_vain(io, call.object, [call.method], deadline)
        result.append(reply)
    return result


async def _mend(io: Io, object: str, deadline: Deadline) -> bool:
    """Put right what stands in every call's way; False where there is nothing, or no way."""
    if io.store.read_only:
        return False
    with contextlib.suppress(ZlogError):  # such as for want of caps: then it stays as it is
        names = await damaged(io, object, deadline)
        return bool(await heal_values(io, object, names, deadline))
    return False
