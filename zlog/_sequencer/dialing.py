"""One link to a sequencer for all callers: who finds none makes it, and the others wait.

The handles of a process share it, or, with asyncio, those of an event loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakSet

from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._native.mutex import Mutex
from zlog._sequencer.credentials import Credentials
from zlog._sequencer.greeting import Refusal
from zlog._sequencer.link import Guard, Lane, Link
from zlog.errors import SequencerRefused, SequencerTimeout, SequencerUnavailable

L = TypeVar("L", bound=Link)
G = TypeVar("G", bound=Guard)


class Dialer(ABC, Generic[L, G]):
    """Makes the link and holds it, and the locks under which it is made and logs are opened on it.

    Args:
        address: of the sequencer.
        credentials: for it.
        new_guard: makes a lock.

    Attributes:
        sessions: that share it.
        left: the logs of those that have ended. To it alone a session adds while it is collected,
            which may be when any lock is held.
    """

    def __init__(
        self,
        address: str,
        credentials: Credentials,
        new_guard: Callable[[], G],
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._new_guard = new_guard
        self._refusal = Refusal(self.monotonic)
        self._closed = False
        self.sessions = WeakSet[object]()
        self.left = deque[set[LogAddress]]()
        self._lanes: dict[LogAddress, Lane] = {}
        self._unused: set[Lane] = set()
        self._link: L | None = None
        self._dialing = self._new_guard()
        self._mutex = Mutex()

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds on a clock that never goes back, which is that of ``Link.heard``."""

    async def link(self, deadline: Deadline) -> L:
        """Return the live link, made if there is none.

        Raises:
            SequencerUnavailable: it can't be made.
        """
        link = self._link
        if link is not None and not link.lost:
            return link
        if not await self._dialing.acquire(deadline):
            raise SequencerTimeout(f"could not connect to {self._address} in time")
        try:
            if self._closed:
                raise SequencerUnavailable(f"the client of {self._address} is closed")
            if self._link is None or self._link.lost:
                self._refusal.check()
                try:
                    self._link = await self._dial(deadline)
                except SequencerRefused as error:
                    self._refusal.note(error)
                    raise
            return self._link
        finally:
            self._dialing.release()

    async def close(self) -> None:
        """End the link and make no other."""
        self._closed = True
        if self._link is not None:
            self._link.drop("closed by its user")

    @abstractmethod
    async def _dial(self, deadline: Deadline) -> L:
        """Connect, and say HELLO."""

    def lane(self, log: LogAddress, lanes: dict[LogAddress, Lane], logs: set[LogAddress]) -> Lane:
        """Return what sessions share that use ``log``; enter it in the lanes and logs of one."""
        with self._mutex:
            if log not in lanes:
                lane = lanes[log] = self._lanes.get(log) or Lane(log, self._new_guard())
                self._lanes[log] = lane
                logs.add(log)
                lane.users += 1
            return lanes[log]

    def unused(self) -> list[Lane]:
        """Return lanes whose sessions have left."""
        if not (self.left or self._unused):
            return []
        with self._mutex:
            while self.left:
                for log in [*self.left.popleft()]:
                    lane = self._lanes[log]  # it is there until its last user has left
                    lane.users -= 1
                    self._unused.add(lane)
            return [*self._unused]

    def forget(self, lane: Lane) -> None:
        """Drop a lane, unless a session uses it again."""
        with self._mutex:
            self._unused.discard(lane)
            if not lane.users and self._lanes.get(lane.log) is lane:
                del self._lanes[lane.log]
