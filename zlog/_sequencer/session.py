"""What a TCP sequencer client does, once for threads and once for asyncio.

A dialer makes links (live connections that have said HELLO), a link carries one request and its
answer. Everything else is here: logs are opened when they are first used on a link and again when
the sequencer has forgotten them, a lost link is replaced once per call, codes become exceptions.

A handle on a log has a session of its own. The sessions of a process share its dialers, and so one
connection for each sequencer: what one of them does must not cost the others that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary, finalize

from zlog._base.deadline import Deadline
from zlog._base.sequencer import Grant, LogAddress, OtherStore
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
from zlog.limits import GRANT_COUNT_MAX

D = TypeVar("D", bound=Dialer[Any, Any])

_TRIES = 4
"""How often one call opens its log, at most, and loses its connection."""

_SILENCE_SECONDS = 0.9
"""A link that leaves a quick request unanswered for so long, and says nothing, is given up."""

_NO_HANDLE = 2**16 - 1
"""No log has it: what is asked with it is answered at once."""

_AT_ONCE: Final = Deadline(0)
"""For a lock that is taken only if it is free, and for a request whose answer is not waited for."""

_WAIT_SECONDS_MAX = 1.0
"""How long one WAIT lasts; longer ones are repeated, so that a frozen sequencer is noticed."""

_WAIT_SLACK_SECONDS = 1.0
"""How much later than asked the answer to a WAIT may come."""

_MEANING = {
    Code.BAD_REQUEST: "refused the request as malformed",
    Code.UNAVAILABLE: "can't take the log over now",
}


class Session:
    """A sequencer client over TCP: see :class:`zlog._base.sequencer.SequencerClient`.

    Args:
        address: of the sequencer.
        dialer: connects to it.
        leave: called when this session is closed; returns whether no other uses the dialer.
    """

    def __init__(
        self,
        address: str,
        dialer: Dialer[Any, Any],
        leave: Callable[[Session], bool] = lambda _: True,
    ) -> None:
        self._address = address
        self._dialer = dialer
        self._leave = leave
        self._lanes: dict[LogAddress, Lane] = {}
        # Not the lanes: they lead to the link and its loop, which a finalizer would keep.
        self._logs: set[LogAddress] = set()
        self._end = finalize(self, dialer.left.append, self._logs)
        self._closed = False

    async def open(self, log: LogAddress, dead_epoch: int, deadline: Deadline) -> Grant:
        """Have the log open in an epoch above ``dead_epoch``; the position is the tail."""
        lane = await self._lane(log)
        link = await self._link(deadline)
        try:
            return (await self._open(link, log, lane, dead_epoch, deadline))[1]
        except LinkLost:
            link = await self._link(deadline)
            return (await self._open(link, log, lane, dead_epoch, deadline))[1]

    async def next(self, log: LogAddress, count: int, epoch: int, deadline: Deadline) -> Grant:
        """Take ``count`` positions, granted as one range from the first on.

        Raises:
            ValueError: ``count`` is not from 1 to 65536.
        """
        if not 0 < count <= GRANT_COUNT_MAX:
            raise ValueError(f"{count} is no valid number of positions for one grant")
        reply = await self._ask(Kind.NEXT, log, count, epoch, deadline)
        return Grant(reply.b, reply.a)

    async def tail(self, log: LogAddress, epoch: int, deadline: Deadline) -> Grant:
        """Ask for the next position that will be handed out."""
        reply = await self._ask(Kind.TAIL, log, 0, epoch, deadline)
        return Grant(reply.b, reply.a)

    async def wait(
        self, log: LogAddress, epoch: int, position: int, timeout: float, deadline: Deadline
    ) -> Grant | None:
        """Wait until the tail has passed ``position``; None when the time goes first.

        The sequencer is not told the caller's epoch. If its own is lower, either no client appends,
        and there is nothing to wait for, or one does and it learns the higher one. One that
        can't tell raises NotLeader.
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
                raise StaleEpoch(
                    f"log {log}: {self._address} is in epoch {reply.b}, the view in {epoch}",
                    epoch=reply.b,
                )
            if reply.code == Code.OK:
                return Grant(reply.b, reply.a)
            if patience.expired:
                return None

    async def status(self, deadline: Deadline) -> dict[str, object]:
        """Ask for what an operator wants to see."""
        link = await self._link(deadline)
        reply = await link.call(Kind.STATUS, 0, 0, 0, b"", deadline)
        if reply.code != Code.OK:
            raise self._error(reply.code)
        try:
            status = json.loads(reply.payload)
        except ValueError as error:
            raise SequencerUnavailable(f"{self._address} gave a broken STATUS") from error
        if not isinstance(status, dict):
            raise SequencerUnavailable(f"{self._address} gave a broken STATUS")
        return status

    async def close(self) -> None:
        """Let go of the connection.

        The last session drops it, failing calls that wait on it. Others have it end at the
        sequencer what no session uses any more; a call that waits ends within about a second.
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
        link: Link = await self._dialer.link(deadline)
        return link

    async def _ask(self, kind: Kind, log: LogAddress, a: int, b: int, deadline: Deadline) -> Reply:
        """Send a request about a log that may first have to be opened.

        Where the caller's view has a higher epoch than the sequencer, the log is opened again. That
        tells the sequencer that its epoch is over: it looks, and takes the log over in a new one.
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
        raise SequencerUnavailable(f"log {log}: {self._address} keeps closing it")

    async def _quickly(
        self, link: Link, kind: Kind, handle: int, a: int, b: int, deadline: Deadline
    ) -> Reply:
        """Ask for what is answered at once, or in its own time, by a sequencer that lives."""
        began = self._dialer.monotonic()
        due = began + b / 1000 if kind == Kind.WAIT else began
        try:
            return await link.call(kind, handle, a, b, b"", deadline)
        except SequencerTimeout:
            if link.heard < began and due <= self._dialer.monotonic() - _SILENCE_SECONDS:
                # Perhaps the network swallowed the connection; the next call tries another.
                link.drop(f"{self._address} was silent")
            raise

    # Logs, opened and closed.

    async def _lane(self, log: LogAddress) -> Lane:
        """Begin to use a log."""
        self._check_open()
        lane = self._dialer.lane(log, self._lanes, self._logs)
        await self._close_unused()
        return lane

    async def _close_unused(self) -> None:
        """Close at the sequencer what no session uses any more.

        Its number may mean another log then. So a session that begins to use the log meanwhile
        waits: its OPEN follows.
        """
        for lane in self._dialer.unused():
            if await lane.guard.acquire(_AT_ONCE):  # else a call of a closed session is opening it
                try:
                    handle = lane.handle
                    if not lane.users and handle is not None:
                        lane.handle = None
                        with suppress(SequencerUnavailable):
                            await handle.link.call(Kind.CLOSE, handle.number, 0, 0, b"", _AT_ONCE)
                finally:
                    lane.guard.release()
                self._dialer.forget(lane)

    async def _acquire(self, lane: Lane, log: LogAddress, deadline: Deadline) -> None:
        if not await lane.guard.acquire(deadline):
            raise SequencerTimeout(f"log {log}: {self._address} did not open it in time")

    async def _handle(
        self, link: Link, log: LogAddress, lane: Lane, dead_epoch: int, deadline: Deadline
    ) -> Handle:
        """Open the log on the link, unless another call is just doing so."""
        await self._acquire(lane, log, deadline)
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
            # How long an OPEN takes would not tell whether the connection lives.
            await self._quickly(link, Kind.TAIL, _NO_HANDLE, 0, 0, deadline)
        payload = log.encode()
        reply = await link.call(Kind.OPEN, 0, len(payload), dead_epoch, payload, deadline)
        if reply.code == Code.BAD_REQUEST and log.store:  # it is from before stores had names
            return await self._open(link, log._replace(store=""), lane, dead_epoch, deadline)
        if reply.code != Code.OK:
            raise self._error(reply.code, log)
        handle = lane.handle = Handle(link, reply.handle)
        return handle, Grant(reply.a, reply.b)

    def _error(self, code: int, log: LogAddress | None = None) -> ZlogError:
        about = f"log {log}: " if log else ""
        if code == Code.LOG_NOT_FOUND:
            return LogNotFound(f"{about}{self._address} finds no such log in its store")
        if code == Code.NOT_LEADER:
            return NotLeader(f"{about}another sequencer than {self._address} serves it")
        if code == Code.OTHER_STORE:
            return OtherStore(f"{about}{self._address} serves another store, not this copy of it")
        if code == Code.LIMIT:
            return SequencerBusy(f"{about}{self._address} has reached one of its limits")
        meaning = _MEANING.get(Code(code), "refused") if code in set(Code) else f"said {code}"
        return SequencerUnavailable(f"{about}{self._address} {meaning}")


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
