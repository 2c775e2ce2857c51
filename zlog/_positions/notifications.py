"""Notifying readers that wait for entries of a log without a sequencer to wait at.

Its writers notify the watchers of an empty object when there may be more entries, and such readers
watch it. That is a hint: a notification may be lost, a client may not be allowed to watch, and a
writer may be older. So a reader that waits also polls: seldom while notifications arrive before
it finds entries.

Source: docs/design.md, "Exclusive writers".
"""

from __future__ import annotations

import errno
import functools
import math

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of

NOTIFIED_POLL_SECONDS = 1.0
"""How often a reader polls that is notified in time."""

_REFUSED = (-errno.EOPNOTSUPP, -errno.EPERM, -errno.EACCES)
"""What a store answers that has no means, or a cluster whose caps don't allow it."""

_REFUSED_SECONDS = 60.0
"""How long it is not tried again then."""

_FAILED_SECONDS = 0.05
"""After a watch was lost, how long until the next one."""


class Notifications:
    """The notifications that one handle receives of a log.

    Args:
        io: the world.
        object: that is watched.

    Attributes:
        number: of the last notification; 0 while none can be received.
        prompt: whether a notification came before the last entries that were waited for.
    """

    def __init__(self, io: Io, object: str) -> None:
        self.number = 0
        self.prompt = False
        self._io = io
        self._object = object
        self._refused_until = -math.inf

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for another notification than this one; returns whether one came in time.

        With 0 it waits until the object is watched: no later notification is missed.
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
