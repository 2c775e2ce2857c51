"""Wakes readers that wait for entries in a log without a sequencer.

Waiting readers watch an empty object, and writers notify its watchers when there may be more
entries. Because a notification may be lost, and some clients may not watch objects, readers also
poll. They poll less often while notifications arrive in time.

Source: docs/design/exclusive-writers.md.
"""

from __future__ import annotations

import errno
import functools
import math

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of

NOTIFIED_POLL_SECONDS = 1.0
"""How often a reader polls while its notifications arrive in time."""

_REFUSED = (-errno.EOPNOTSUPP, -errno.EPERM, -errno.EACCES)
"""The answers if the store has no notifications, or if the cluster's caps do not allow them."""

_REFUSED_SECONDS = 60.0
"""How long a client waits before it watches again after such an answer."""

_FAILED_SECONDS = 0.05
"""How long a client waits before it watches again after it has lost a watch."""


class Notifications:
    """The notifications of new entries that one handle receives through a log's watched object.

    Attributes:
        number: the number of the last notification; 0 while none can be received.
        prompt: whether the last wait for entries was ended by a notification, not by a poll.
    """

    def __init__(self, io: Io, object: str) -> None:
        self.number = 0
        self.prompt = False
        self._io = io
        self._object = object
        self._refused_until = -math.inf

    async def wait(self, number: int, seconds: float) -> bool:
        """Wait for a notification later than ``number``. Returns whether one came in time.

        If ``number`` is 0, this waits until notifications can be received, and returns False.
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
    """Remove the watched object of a log, if this client may remove it."""
    start = functools.partial(io.store.remove_watched, object=object)
    (await io.run(start, deadline)).check(f"cannot remove the object {object}", *_REFUSED)
