"""What the primary copy of an object has damaged, asked of its other copies."""

from __future__ import annotations

import errno
import functools
import logging

from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, Reply

_logger = logging.getLogger(__name__)

TRIES_MAX = 24
"""Which copy answers is chance: of three, a sound one is missed 24 times in a row once in 10**4
where it is the only one, and once in 10**11 where it is one of two."""

_SECONDS_MAX = 5.0


class Copies:
    """Asks copies of one object, chosen at random, for as long as that is of use.

    Every ordinary call goes to the primary copy; this is for when that answered with damage.

    Args:
        io: the world.
        object: name of the object.
        deadline: of the whole call.
    """

    def __init__(self, io: Io, object: str, deadline: Deadline) -> None:
        self._io = io
        self._object = object
        self._deadline = deadline.sooner(_SECONDS_MAX)
        self._left = TRIES_MAX

    async def ask(self, method: str, request: bytes) -> Reply | None:
        """Return what the next copy answers; None: there are no others, or it was tried enough."""
        if not self._left or self._deadline.expired:
            return None
        self._left -= 1
        store = self._io.store
        start = functools.partial(
            store.ask_copy, object=self._object, method=method, request=request
        )
        reply = await self._io.run(start, self._deadline)
        return None if reply.code in (-errno.EOPNOTSUPP, -errno.ETIMEDOUT) else reply

    def helped(self) -> None:
        """Count, and the first time tell, that another copy had what the primary one lost."""
        self._io.rescued[self._object] += 1
        if self._io.rescued[self._object] == 1:
            _logger.warning(
                "the primary copy of object %s is damaged; another copy of it has what was asked."
                " `zlog check --heal` puts it back",
                self._object,
            )


async def elsewhere(io: Io, call: Call, reply: Reply, deadline: Deadline) -> Reply:
    """Return a sound copy's answer where the primary's is that its stored bytes are damaged."""
    if reply.code != -errno.EIO or not isinstance(call.payload, bytes):
        return reply
    copies = Copies(io, call.object, deadline)
    while (other := await copies.ask(call.method, call.payload)) is not None:
        if other.code >= 0:
            copies.helped()
            return other
    return reply
