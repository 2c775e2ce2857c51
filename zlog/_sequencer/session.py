"""The logic of a TCP sequencer client, for threads and for asyncio.

A dialer makes links, which are connections that have exchanged HELLO. A session sends its requests
over a link. It opens a log when the log is first used on the link, and again if the sequencer has
forgotten it. It replaces a lost link once per call, and raises errors for codes.

Each handle on a log has a session. The sessions of a process share a connection to each sequencer,
so a session must not end the connection because of a problem with its own log.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary, finalize

from zlog._base.deadline import Deadline
from zlog._base.sequencer import Asking, Grant, LogAddress, OtherStore, check_count
from zlog._native.mutex import Mutex
from zlog._sequencer.credentials import Credentials
from zlog._sequencer.dialing import Dialer
from zlog._sequencer.frames import Code, Kind, Reply
from zlog._sequencer.link import Handle, Lane, Link, LinkLost
from zlog.errors import (
    LogNotFound,
    NotLeader,
    SequencerBusy,
    SequencerTimeout,
    SequencerUnavailable,
    StaleEpoch,
    ZlogError,
)

_TRIES = 4
"""How many OPENs, and how many lost connections, a call may have."""

_SILENCE_SECONDS = 0.9
"""A link is lost if a quick request gets no answer, and nothing else arrives, for this long."""

_NO_HANDLE = 2**16 - 1
"""A handle that belongs to no log. The sequencer answers a request with this handle at once."""

_AT_ONCE: Final = Deadline(0)
"""A deadline to take a lock only if it is free, or to send a request without waiting."""

_WAIT_SECONDS_MAX = 1.0
"""The duration of a WAIT. Longer ones are repeated, so that a frozen sequencer is noticed."""

_WAIT_SLACK_SECONDS = 1.0
"""How late the answer to a WAIT may be."""

_MEANINGS: dict[int, tuple[type[ZlogError], str]] = {
    Code.BAD_REQUEST: (SequencerUnavailable, "refused the request as malformed"),
    Code.UNAVAILABLE: (SequencerUnavailable, "can't take over the log now"),
    Code.LOG_NOT_FOUND: (LogNotFound, "does not find the log in its store"),
    Code.NOT_LEADER: (NotLeader, "is a standby; another sequencer leads"),
    Code.OTHER_STORE: (OtherStore, "serves the original store, not this copy of it"),
    Code.LIMIT: (SequencerBusy, "has reached one of its limits"),
}


class Session:
    """A TCP client of a sequencer; see :class:`zlog._base.sequencer.SequencerClient`.

    Args:
        leave: a function that is called when this session is closed. It returns whether the dialer
            has no other session.
    """

    def __init__(
        self,
        address: str,
        dialer: Dialer,
        leave: Callable[[Session], bool] = lambda _: True,
    ) -> None:
        self._address = address
        self._dialer = dialer
        self._leave = leave
        self._lanes: dict[LogAddress, Lane] = {}
        # The finalizer must not refer to lanes, which would keep the link and its loop alive.
        self._logs: set[LogAddress] = set()
        self._end = finalize(self, dialer.left.append, self._logs)
        self._closed = False

    def ask(self, log: LogAddress, count: int, epoch: int, asking: Asking) -> bool:
        """Send a request for ``count`` positions, whose reply ``asking`` takes.

        Returns False if the log is not open, or if the connection is lost.
        """
        lane = self._lanes.get(log)
        handle = None if lane is None or self._closed else lane.handle
        return handle is not None and self._dialer.post(handle, Kind.NEXT, count, epoch, asking)

    async def open(self, log: LogAddress, dead_epoch: int, deadline: Deadline) -> Grant:
        """Open the log in an epoch above ``dead_epoch``. The grant's position is the tail."""
        lane = await self._lane(log)
        link = await self._link(deadline)
        try:
            return (await self._open(link, log, lane, dead_epoch, deadline))[1]
        except LinkLost:
            link = await self._link(deadline)
            return (await self._open(link, log, lane, dead_epoch, deadline))[1]

    async def next(self, log: LogAddress, count: int, epoch: int, deadline: Deadline) -> Grant:
        """Take ``count`` consecutive positions. Raises ValueError if it is not 1 to 65536."""
        check_count(count)
        reply = await self._ask(Kind.NEXT, log, count, epoch, deadline)
        return Grant(reply.b, reply.a)

    async def tail(self, log: LogAddress, epoch: int, deadline: Deadline) -> Grant:
        """Return the next position that will be granted."""
        reply = await self._ask(Kind.TAIL, log, 0, epoch, deadline)
        return Grant(reply.b, reply.a)

    async def wait(
        self, log: LogAddress, epoch: int, position: int, timeout: float, deadline: Deadline
    ) -> Grant | None:
        """Wait until the tail is above ``position``. Returns None after ``timeout`` seconds.

        Raises StaleEpoch if the sequencer's epoch is lower than ``epoch``. Waiting would be
        useless, because the sequencer learns the newer epoch only from a client that appends.
        """
        patience = deadline.sooner(timeout)
        while True:
            left = patience.within(_WAIT_SECONDS_MAX)
            answer = deadline.sooner(left + _WAIT_SLACK_SECONDS)
            try:
                reply = await self._ask(Kind.WAIT, log, position, math.ceil(left * 1000), answer)
            except SequencerTimeout:
                if deadline.expired:
                    return None
                raise
            if reply.b < epoch:
                where = f"log {log}: {self._address}"
                stale = StaleEpoch(f"{where} is in epoch {reply.b}, the view in {epoch}")
                stale.epoch = reply.b
                raise stale
            if reply.code == Code.OK:
                return Grant(reply.b, reply.a)
            if patience.expired:
                return None

    async def status(self, deadline: Deadline) -> dict[str, object]:
        """Return the sequencer's STATUS, for operators."""
        link = await self._link(deadline)
        reply = await link.call(Kind.STATUS, 0, 0, 0, b"", deadline)
        if reply.code != Code.OK:
            raise self._error(reply.code)
        with suppress(ValueError):
            status = json.loads(reply.payload)
            if isinstance(status, dict):
                return status
        raise SequencerUnavailable(f"{self._address} sent a malformed STATUS")

    async def close(self) -> None:
        """Stop using the connection.

        The last session closes the connection, which ends all waiting calls. Any other session
        closes the logs that only it uses. Calls that wait for these logs end in about a second.
        """
        if self._closed:
            return
        self._closed = True
        if self._leave(self):
            await self._dialer.close()
            return
        self._end()
        await self._close_unused()

    def _check_open(self) -> None:
        if self._closed:
            raise SequencerUnavailable(f"the client of {self._address} is closed")

    async def _link(self, deadline: Deadline) -> Link:
        self._check_open()
        return await self._dialer.link(deadline)

    async def _ask(self, kind: Kind, log: LogAddress, a: int, b: int, deadline: Deadline) -> Reply:
        """Send a request about a log. Open the log first if necessary.

        If the sequencer's epoch is lower than the view's, this opens the log again and reports that
        the sequencer's epoch has ended. The sequencer then takes over the log.
        """
        lost: LinkLost | None = None
        dead_epoch = 0
        lane = self._lanes.get(log) or await self._lane(log)
        for _ in range(_TRIES):
            link = await self._link(deadline)
            try:
                handle = lane.handle
                if handle is None or handle.link is not link:
                    handle = await self._handle(link, log, lane, dead_epoch, deadline)
                reply = await self._quickly(link, kind, handle.number, a, b, deadline)
            except LinkLost as error:
                if lost is not None:
                    raise
                lost = error
                continue
            if reply.code in (Code.OK, Code.TIMEOUT):
                return reply
            if reply.code not in (Code.NOT_OPEN, Code.STALE_EPOCH):
                raise self._error(reply.code, log)
            if reply.code == Code.STALE_EPOCH:
                dead_epoch = reply.a
            if lane.handle is handle:
                lane.handle = None
        raise SequencerUnavailable(f"log {log}: {self._address} closes the log after each OPEN")

    async def _quickly(
        self, link: Link, kind: Kind, handle: int, a: int, b: int, deadline: Deadline
    ) -> Reply:
        """Send a request that a working sequencer answers at once, or after its WAIT."""
        began = self._dialer.monotonic()
        due = began + b / 1000 if kind == Kind.WAIT else began
        try:
            return await link.call(kind, handle, a, b, b"", deadline)
        except SequencerTimeout:
            if link.heard < began and due <= self._dialer.monotonic() - _SILENCE_SECONDS:
                # The network may have lost the connection, so let the next call make another one.
                link.drop(f"{self._address} does not respond")
            raise

    # Opening and closing logs.

    async def _lane(self, log: LogAddress) -> Lane:
        """Start using a log."""
        self._check_open()
        lane = self._dialer.lane(log, self._lanes, self._logs)
        await self._close_unused()
        return lane

    async def _close_unused(self) -> None:
        """Close logs that no session uses any more.

        The sequencer may then give their handles to other logs. A session that wants to use such a
        log waits for its ``guard`` until the log is closed, and then opens it again.
        """
        for lane in self._dialer.unused():
            if await lane.guard.acquire(_AT_ONCE):  # if not, a closed session is opening it
                try:
                    handle = lane.handle
                    if not lane.users and handle is not None:
                        lane.handle = None
                        with suppress(SequencerUnavailable):
                            await handle.link.call(Kind.CLOSE, handle.number, 0, 0, b"", _AT_ONCE)
                finally:
                    lane.guard.release()
                self._dialer.forget(lane)

    async def _handle(
        self, link: Link, log: LogAddress, lane: Lane, dead_epoch: int, deadline: Deadline
    ) -> Handle:
        """Open the log on the link if no other call does."""
        if not await lane.guard.acquire(deadline):
            raise SequencerTimeout(f"log {log}: {self._address} did not open the log in time")
        try:
            handle = lane.handle
            if handle is not None and handle.link is link:
                return handle
            return (await self._open(link, log, lane, dead_epoch, deadline))[0]
        finally:
            lane.guard.release()

    async def _open(
        self, link: Link, log: LogAddress, lane: Lane, dead_epoch: int, deadline: Deadline
    ) -> tuple[Handle, Grant]:
        if self._dialer.monotonic() - link.heard > _SILENCE_SECONDS:
            # An OPEN may take a long time, so it would not show that the connection is dead.
            await self._quickly(link, Kind.TAIL, _NO_HANDLE, 0, 0, deadline)
        payload = log.encode()
        reply = await link.call(Kind.OPEN, 0, len(payload), dead_epoch, payload, deadline)
        if reply.code != Code.OK:
            raise self._error(reply.code, log)
        handle = lane.handle = Handle(link, reply.handle)
        return handle, Grant(reply.a, reply.b)

    def _error(self, code: int, log: LogAddress | None = None) -> ZlogError:
        about = f"log {log}: " if log else ""
        refused = (
            SequencerUnavailable,
            "refused" if code in set(Code) else f"answered with code {code}",
        )
        kind, meaning = _MEANINGS.get(code, refused)
        return kind(f"{about}{self._address} {meaning}")


class Dialers:
    """The dialers that sessions share: one for each combination of sequencer and credentials.

    A dialer exists while a session uses it. Sessions that were garbage-collected do not count.
    """

    def __init__(self, new: Callable[[str, Credentials], Dialer]) -> None:
        self._new = new
        self._dialers = WeakValueDictionary[tuple[str, Credentials], Dialer]()
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
