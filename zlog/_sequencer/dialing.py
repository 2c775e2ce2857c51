"""Connects to a sequencer, with one link for all handles of a process or an event loop.

The first caller that finds no link makes it, while others wait.
"""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections import deque
from typing import ClassVar
from weakref import WeakSet

from zlog._base.deadline import Deadline
from zlog._base.sequencer import Asking, Endpoint, LogAddress, parse_address
from zlog._native.mutex import Mutex
from zlog._sequencer.credentials import Credentials
from zlog._sequencer.frames import Kind
from zlog._sequencer.greeting import CONNECT_SECONDS_MAX, connect_error, greet
from zlog._sequencer.link import Guard, Handle, Lane, Link
from zlog.errors import SequencerBusy, SequencerRefused, SequencerTimeout, SequencerUnavailable

_REFUSED_SECONDS = 5.0
"""For how long callers get the last refusal again without a new attempt."""

_BUSY_SECONDS = 1.0
"""The same if the sequencer refused because it has too many connections."""


class Dialer(ABC):
    """Connects to a sequencer, and shares the connection, which is called the link.

    Attributes:
        sessions: the sessions that share the link.
        left: the logs of closed and garbage-collected sessions. A session only appends to this
            queue, because it may be collected while any lock is held.
    """

    _new_guard: ClassVar[type[Guard]]

    def __init__(self, address: str, credentials: Credentials) -> None:
        self._address = address
        self._credentials = credentials
        self._refusal: SequencerRefused | None = None
        self._refused_until = 0.0
        self._closed = False
        self.sessions = WeakSet[object]()
        self.left = deque[set[LogAddress]]()
        self._lanes: dict[LogAddress, Lane] = {}
        self._unused: set[Lane] = set()
        self._link: Link | None = None
        self._dialing = self._new_guard()
        self._mutex = Mutex()

    @abstractmethod
    def monotonic(self) -> float:
        """Return the time in seconds, on the clock of ``Link.heard``."""

    @abstractmethod
    async def _connect(
        self, endpoint: Endpoint, context: ssl.SSLContext | None, deadline: Deadline
    ) -> Link:
        """Connect. If a context is given, use TLS."""

    def post(self, handle: Handle, kind: Kind, a: int, b: int, asking: Asking) -> bool:
        """Send a request for a log on the link, without waiting. Returns False if it can't."""
        return False

    async def link(self, deadline: Deadline) -> Link:
        """Return the link. Connect first if there is no link.

        Raises:
            SequencerUnavailable: the connection cannot be made.
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
                refusal = self._refusal
                if refusal is not None and self.monotonic() < self._refused_until:
                    raise type(refusal)(str(refusal), hint=refusal.hint)
                self._link = await self._dial(deadline)
            return self._link
        finally:
            self._dialing.release()

    async def close(self) -> None:
        """End the link, and never make another one."""
        self._closed = True
        if self._link is not None:
            await self._link.close()

    async def _dial(self, deadline: Deadline) -> Link:
        """Connect and exchange HELLO."""
        step = deadline.sooner(CONNECT_SECONDS_MAX)
        try:
            endpoint = parse_address(self._address)
            token = self._credentials.token()
            context = self._credentials.context() if endpoint.tls else None
            link = await self._connect(endpoint, context, step)
            try:
                await greet(link, self._address, token, step)
            except BaseException:
                link.drop("not connected")
                raise
        except (OSError, ValueError, asyncio.TimeoutError) as cause:
            error = connect_error(self._address, cause, deadline)
            self._note(error)
            raise error from cause
        except SequencerRefused as error:
            self._note(error)
            raise
        if self._closed:
            link.drop("closed by its user")
        return link

    def _note(self, error: SequencerUnavailable) -> None:
        if isinstance(error, SequencerRefused):
            busy = isinstance(error, SequencerBusy)
            self._refusal = error
            self._refused_until = self.monotonic() + (_BUSY_SECONDS if busy else _REFUSED_SECONDS)

    def lane(self, log: LogAddress, lanes: dict[LogAddress, Lane], logs: set[LogAddress]) -> Lane:
        """Return the lane of a log, and add it to the lanes and logs of a session."""
        with self._mutex:
            if log not in lanes:
                lane = lanes[log] = self._lanes.get(log) or Lane(log, self._new_guard())
                self._lanes[log] = lane
                logs.add(log)
                lane.users += 1
            return lanes[log]

    def unused(self) -> list[Lane]:
        """Return the lanes that no session uses any more."""
        if not (self.left or self._unused):
            return []
        with self._mutex:
            while self.left:
                for log in [*self.left.popleft()]:
                    lane = self._lanes[log]  # the lane stays until its last user has left
                    lane.users -= 1
                    self._unused.add(lane)
            return [*self._unused]

    def forget(self, lane: Lane) -> None:
        """Drop a lane if no session uses it again."""
        with self._mutex:
            self._unused.discard(lane)
            if not lane.users and self._lanes.get(lane.log) is lane:
                del self._lanes[lane.log]
