"""Putting right what one copy of an object has damaged, from another copy of it."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Sequence

from zlog._base.copies import Copies, elsewhere
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply
from zlog._base.protocol import Code
from zlog._native import messages
from zlog.errors import ZlogError

_logger = logging.getLogger(__name__)

_REFUSED = (Code.READ_ONLY, Code.BELOW_TRIM_POINT, Code.UNREADABLE, -errno.ENOENT, -errno.EIO)
"""It was trimmed meanwhile, or healed by another client, or is more damaged than was looked at."""


async def damaged(
    io: Io, object: str, deadline: Deadline, *, any_copy: bool = False
) -> list[bytes]:
    """Return the attributes and keys of an object that fail their checksum.

    Of a stripe object its header alone; `verify` tells of its positions.

    Args:
        io: the world.
        object: its name.
        deadline: budget.
        any_copy: look at a copy that is chosen at random, instead of the primary one.
    """
    copies = Copies(io, object, deadline)
    found: list[bytes] = []
    after = b""
    while True:
        request = messages.damaged(after)
        if any_copy:
            reply = await copies.ask("damaged", request)
        else:
            (reply,) = await io.execute([Call(object, "damaged", request)], deadline)
        if reply is None or reply.code == -errno.ENOENT:
            return found
        reply.check(f"damaged on {object}")
        names, after = messages.damaged_reply(reply.payload)
        found += names
        if not after:
            return found


async def heal_values(
    io: Io, object: str, names: Sequence[bytes], deadline: Deadline
) -> list[bytes]:
    """Put attributes and keys of an object back; returns those that another copy had."""
    return [
        name
        for name in names
        if await _heal(io, object, messages.salvage(name, None), deadline) is not None
    ]


async def heal_record(io: Io, object: str, position: int, deadline: Deadline) -> int | None:
    """Put the record that covers a position back, with all entries in it.

    Returns its last position; None: no copy has all of it, or it is no damage any more.
    """
    return await _heal(io, object, messages.salvage(b"", position), deadline)


async def _heal(io: Io, object: str, request: bytes, deadline: Deadline) -> int | None:
    sound = await _salvage(io, object, request, deadline)
    if sound is None:
        return None
    install = Call(object, "heal", messages.heal(sound.name, sound.value, sound.data))
    (reply,) = await io.execute([install], deadline)
    reply.check(f"heal on {object}", *_REFUSED)
    if reply.code != Code.OK:
        return None
    _logger.info("healed object=%s name=%s from another copy", object, sound.name)
    return sound.last


async def _salvage(
    io: Io, object: str, request: bytes, deadline: Deadline
) -> messages.SalvageReply | None:
    """Return what is asked for from the primary copy, if it is sound there, or from another."""
    reply: Reply | None
    (reply,) = await io.execute([Call(object, "salvage", request)], deadline)
    copies = Copies(io, object, deadline)
    while reply is not None and reply.code != Code.OK:
        reply = await copies.ask("salvage", request)
    return None if reply is None else messages.salvage_reply(reply.payload)


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
        if reply.code == -errno.EIO:
            reply = await elsewhere(io, call, reply, deadline)
        if reply.code == -errno.EIO and await _mend(io, call.object, deadline):
            (reply,) = await io.execute([call], deadline)
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
