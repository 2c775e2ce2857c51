"""What the primary copy of an object has damaged, asked of its other copies."""

from __future__ import annotations

import errno
import functools
import logging
from collections.abc import AsyncIterator, Iterable

from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply

_logger = logging.getLogger(__name__)

TRIES_MAX = 24
"""Which copy answers is chance: of three, a sound one is missed 24 times in a row once in 10**4
where it is the only one, and once in 10**11 where it is one of two."""

SECONDS_MAX = 5.0
"""How long copies are asked."""

_BUSY_SECONDS = 0.01
"""The pause before another try while the store asks copies for other calls."""

_IN_VAIN_SECONDS = 10.0
"""How long what no copy had is not asked for again."""

_IN_VAIN_MAX = 1 << 16


async def ask_copies(
    io: Io, object: str, method: str, request: bytes, deadline: Deadline
) -> AsyncIterator[Reply]:
    """Ask copies of an object, chosen at random, one after the other, for as long as it is of use.

    Every ordinary call goes to the primary copy; this is for when that answered with damage.

    Args:
        io: the world.
        object: name of the object.
        method: one that only reads.
        request: encoded.
        deadline: of the whole call.
    """
    deadline = deadline.sooner(SECONDS_MAX)
    start = functools.partial(io.store.ask_copy, object=object, method=method, request=request)
    tries = 0
    while tries < TRIES_MAX and not deadline.expired:
        reply = await io.run(start, deadline)
        if reply.code in (-errno.EOPNOTSUPP, -errno.ETIMEDOUT):
            return
        if reply.code == -errno.EBUSY:
            await io.sleep(_BUSY_SECONDS)
            continue
        yield reply
        tries += 1


def helped(io: Io, object: str) -> None:
    """Count, and the first time tell, that another copy had what the primary one lost."""
    io.rescued[object] += 1
    if io.rescued[object] == 1:
        _logger.warning(
            "the primary copy of object %s is damaged; another copy of it has what was asked."
            " `zlog check --heal` puts it back",
            object,
        )


def in_vain(io: Io, object: str, what: str | int) -> bool:
    """Whether copies were asked in vain lately: for a position, or by a method."""
    return io.monotonic() < io.in_vain.get((object, what), 0.0)


def note_in_vain(io: Io, object: str, what: Iterable[str | int], deadline: Deadline) -> None:
    """Note that copies were asked in vain, unless it was the time of this call that was short."""
    if deadline.expired:
        return
    if len(io.in_vain) > _IN_VAIN_MAX:
        io.in_vain.clear()
    until = io.monotonic() + _IN_VAIN_SECONDS
    io.in_vain.update(((object, each), until) for each in what)


async def elsewhere(io: Io, call: Call, reply: Reply, deadline: Deadline) -> Reply:
    """Return the sound copies' answer where the primary's is that its stored bytes are damaged.

    What positions hold any of them may tell: that does not change. Of what does, a copy may have
    missed the last changes: there they have to agree.
    """
    if reply.code != -errno.EIO or not isinstance(call.payload, bytes):
        return reply
    sound: dict[tuple[int, bytes], Reply] = {}
    async for other in ask_copies(io, call.object, call.method, call.payload, deadline):
        if other.code >= 0:
            sound[other.code, bytes(other.payload)] = other
            if call.method == "read":
                break
    if len(sound) != 1:
        return reply
    helped(io, call.object)
    return next(iter(sound.values()))
