"""One link to a sequencer for all callers: who finds none makes it, and the others wait.

The handles of a process share it, or, with asyncio, those of an event loop.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar
from weakref import WeakSet, WeakValueDictionary

from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._native.core import Mutex
from zlog._sequencer.credentials import Credentials
from zlog._sequencer.greeting import Refusal
from zlog._sequencer.session import Dialer, Guard, Lane, Link, Session
from zlog.errors import SequencerRefused, SequencerTimeout, SequencerUnavailable


class LosableLink(Link, Protocol):
    """A link that knows its end.

    Attributes:
        lost: why it ended; empty while it lives.
    """

    lost: str


L = TypeVar("L", bound=LosableLink)
G = TypeVar("G", bound=Guard)
D = TypeVar("D", bound="SharedDialer")


class SharedDialer(Dialer, Protocol):
    """A dialer of several sessions, which it knows for as long as they are there."""

    sessions: WeakSet[Session]


class OneLink(ABC, Generic[L, G]):
    """Holds the link, and the locks under which it is made and logs are opened on it.

    Args:
        address: of the sequencer.
        credentials: for it.
        new_guard: makes a lock.
        clock: tells seconds, and never goes back.

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
        clock: Callable[[], float],
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._new_guard = new_guard
        self._refusal = Refusal(clock)
        self._closed = False
        self.sessions = WeakSet[Session]()
        self.left = deque[set[LogAddress]]()
        self._lanes: dict[LogAddress, Lane] = {}
        self._unused: set[Lane] = set()
        self._link: L | None = None
        self._dialing = self._new_guard()
        self._mutex = Mutex()

    async def _link_made(self, deadline: Deadline) -> L:
        """Return the live link, made if there is none."""
        if not await self._dialing.acquire(deadline):
            raise SequencerTimeout(f"could not connect to {self._address} in time")
        try:
            if self._closed:
                raise SequencerUnavailable(f"the client of {self._address} is closed")
            if self._link is None or self._link.lost:
                self._refusal.check()
                self._link = await self._dialed(deadline)
            return self._link
        finally:
            self._dialing.release()

    async def _dialed(self, deadline: Deadline) -> L:
        try:
            return await self._dial(deadline)
        except SequencerRefused as error:
            self._refusal.note(error)
            raise

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


class Dialers(Generic[D]):
    """Dialers that sessions share: one for each sequencer and what is shown to it.

    One is there for as long as a session has it; a session that is forgotten without being closed
    counts no more.

    Args:
        new: makes a dialer.
    """

    def __init__(self, new: Callable[[str, Credentials], D]) -> None:
        self._new = new
        self._dialers = WeakValueDictionary[tuple[str, Credentials], D]()
        self._lock = Mutex()

    def session(self, address: str, credentials: Credentials) -> Session:
        """Return a new session."""
        key = (address, credentials)

        def leave(session: Session) -> bool:
            with self._lock:
                dialer.sessions.discard(session)
                if dialer.sessions:
                    return False
                self._dialers.pop(key, None)
                return True

        with self._lock:
            dialer = self._dialers.get(key) or self._dialers.setdefault(
                key, self._new(address, credentials)
            )
            session = Session(address, dialer, leave)
            dialer.sessions.add(session)
            return session
