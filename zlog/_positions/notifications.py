"""Waking readers that wait for entries of a log without a sequencer to wait at.

Its writers announce at an empty object that there may be more, and such readers watch it. That is
a hint: an announcement may be lost, a client may not be allowed to watch, and a writer may be
older. So a reader that waits looks from time to time all the same: seldom while announcements come
first.

Source: docs/design.md, "Exclusive writers".
"""

from __future__ import annotations

import errno
import functools
import math

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of

LOOK_SECONDS = 1.0
"""How often a reader looks that is told in time."""

_REFUSED = (-errno.EOPNOTSUPP, -errno.EPERM, -errno.EACCES)
"""What a store answers that has no means, or a cluster whose caps don't allow it."""

_REFUSED_SECONDS = 60.0
"""How long it is not tried again then."""

_FAILED_SECONDS = 0.05
"""After a watch was lost, how long until the next one."""


class Wakes:
    """What one handle hears of a log.

    Args:
        io: the world.
        object: that is watched.

    Attributes:
        number: of the last announcement; 0 while none can be heard.
        prompt: whether the last entries that were waited for were announced before they were found.
    """

    def __init__(self, io: Io, object: str) -> None:
        self.number = 0
        self.prompt = False
        self._io = io
        self._object = object
        self._refused_until = -math.inf

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for another announcement than this one; returns whether there was one in time.

        With 0 it waits until announcements are heard: none that comes later is missed.
        """
        deadline = deadline_of(self._io, seconds)
        if self._io.monotonic() >= self._refused_until:
            code = await self._watch(number, deadline)
            if not code:
                return number != 0
            if code in _REFUSED:
                self._refused_until = self._io.monotonic() + _REFUSED_SECONDS
            elif code != -errno.ETIMEDOUT:
                self.number, self.prompt = 0, False
                deadline = deadline.sooner(_FAILED_SECONDS)
        await self._io.sleep(deadline.within(seconds))
        return False

    async def _watch(self, number: int, deadline: Deadline) -> int:
        store, name = self._io.store, self._object
        reply = await self._io.run(
            lambda queue, token: store.watch(queue, token, name, number), deadline
        )
        if not reply.code:
            self.number = int.from_bytes(bytes(reply.payload), "little")
        return reply.code


async def remove_wake_object(io: Io, object: str, deadline: Deadline) -> None:
    """Remove what the readers of a log have watched; it stays where this client may not."""
    start = functools.partial(io.store.remove_watched, object=object)
    (await io.run(start, deadline)).check(f"removing {object}", *_REFUSED)
