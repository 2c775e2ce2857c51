"""What a TCP sequencer client does, once for threads and once for asyncio.

A dialer brings links (live connections that have said HELLO), a link carries one request and its
answer. Everything else is here: logs are opened when they are first used on a link and again when
the sequencer has forgotten them, a lost link is replaced once per call, codes become exceptions.
"""

from __future__ import annotations

import json
import math
from typing import Protocol

from zlog._base.deadline import Deadline
from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import Code, Kind, Reply
from zlog.errors import (
    LogNotFound,
    NotLeader,
    SequencerTimeout,
    SequencerUnavailable,
    StaleEpoch,
    ZlogError,
)
from zlog.limits import GRANT_COUNT_MAX

_TRIES = 4
"""How often one call opens its log, at most, and loses its connection."""

_SILENCE_SECONDS = 0.9
"""A link that leaves a quick request unanswered for so long, and says nothing, is given up."""

_WAIT_SECONDS_MAX = 1.0
"""How long one WAIT lasts; longer ones are repeated, so that a frozen sequencer is noticed."""

_WAIT_SLACK_SECONDS = 1.0
"""How much later than asked the answer to a WAIT may come."""

_MEANING = {
    Code.BAD_REQUEST: "refused the request as malformed",
    Code.LIMIT: "has reached one of its limits",
    Code.UNAVAILABLE: "can't take the log over now",
}


class LinkLost(SequencerUnavailable):
    """The connection ended before the answer came."""


class Handle:
    """What one OPEN on one link gave: compared by identity, so that a later OPEN is told apart."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Link(Protocol):
    """One live connection to a sequencer.

    Attributes:
        handles: the logs that are open on it.
        heard: when it last brought anything, by its dialer's clock.
    """

    handles: dict[LogAddress, Handle]
    heard: float

    async def call(
        self, kind: Kind, handle: int, a: int, b: int, payload: bytes, deadline: Deadline
    ) -> Reply:
        """Send one request and return its answer. Raises LinkLost or SequencerTimeout."""
        ...

    def drop(self, reason: str) -> None:
        """End the connection; every call that waits on it raises LinkLost."""
        ...


class Guard(Protocol):
    """A lock that is waited for until a deadline."""

    async def acquire(self, deadline: Deadline) -> bool:
        """Take the lock; False when the deadline passes first."""
        ...

    def release(self) -> None:
        """Give the lock back."""
        ...


class Dialer(Protocol):
    """Connects to one sequencer."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    async def link(self, deadline: Deadline) -> Link:
        """Return the live link, made if there is none. Raises SequencerUnavailable."""
        ...

    def guard(self, log: LogAddress) -> Guard:
        """Return the lock under which ``log`` is opened."""
        ...

    async def close(self) -> None:
        """End the link and make no other."""
        ...


class Session:
    """A sequencer client over TCP: see :class:`zlog._sequencer.SequencerClient`."""

    def __init__(self, address: str, dialer: Dialer) -> None:
        self._address = address
        self._dialer = dialer

    async def open(self, log: LogAddress, dead_epoch: int, deadline: Deadline) -> Grant:
        """Have the log open in an epoch above ``dead_epoch``; the position is the tail."""
        link = await self._dialer.link(deadline)
        try:
            return (await self._open(link, log, dead_epoch, deadline))[1]
        except LinkLost:
            link = await self._dialer.link(deadline)
            return (await self._open(link, log, dead_epoch, deadline))[1]

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
        link = await self._dialer.link(deadline)
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
        """Drop the connection, failing calls that wait on it."""
        await self._dialer.close()

    async def _ask(self, kind: Kind, log: LogAddress, a: int, b: int, deadline: Deadline) -> Reply:
        """Send a request about a log that may first have to be opened.

        A sequencer that learns from the request that its epoch is dead stops granting; the log is
        then opened again, which makes it take the log over in a new epoch.
        """
        lost: LinkLost | None = None
        for _ in range(_TRIES):
            link = await self._dialer.link(deadline)
            began = self._dialer.monotonic()
            try:
                handle = link.handles.get(log) or await self._handle(link, log, deadline)
                began = self._dialer.monotonic()
                reply = await link.call(kind, handle.number, a, b, b"", deadline)
            except LinkLost as error:
                if lost is not None:
                    raise
                lost = error
                continue
            except SequencerTimeout:
                if link.heard < began <= self._dialer.monotonic() - _SILENCE_SECONDS:
                    # Perhaps the network swallowed the connection; the next call tries another.
                    link.drop(f"{self._address} was silent")
                raise
            if reply.code in (Code.OK, Code.TIMEOUT):
                return reply
            if reply.code not in (Code.NOT_OPEN, Code.STALE_EPOCH):
                raise self._error(reply.code, log)
            if link.handles.get(log) is handle:
                link.handles.pop(log, None)
        raise SequencerUnavailable(f"log {log}: {self._address} keeps closing it")

    async def _handle(self, link: Link, log: LogAddress, deadline: Deadline) -> Handle:
        """Open the log on the link, unless another call is just doing so."""
        guard = self._dialer.guard(log)
        if not await guard.acquire(deadline):
            raise SequencerTimeout(f"log {log}: {self._address} did not open it in time")
        try:
            return link.handles.get(log) or (await self._open(link, log, 0, deadline))[0]
        finally:
            guard.release()

    async def _open(
        self, link: Link, log: LogAddress, dead_epoch: int, deadline: Deadline
    ) -> tuple[Handle, Grant]:
        payload = log.encode()
        reply = await link.call(Kind.OPEN, 0, len(payload), dead_epoch, payload, deadline)
        if reply.code != Code.OK:
            raise self._error(reply.code, log)
        handle = link.handles[log] = Handle(reply.handle)
        return handle, Grant(reply.a, reply.b)

    def _error(self, code: int, log: LogAddress | None = None) -> ZlogError:
        about = f"log {log}: " if log else ""
        if code == Code.LOG_NOT_FOUND:
            return LogNotFound(f"{about}{self._address} finds no such log in its store")
        if code == Code.NOT_LEADER:
            return NotLeader(f"{about}another sequencer than {self._address} serves it")
        meaning = _MEANING.get(Code(code), "refused") if code in set(Code) else f"said {code}"
        return SequencerUnavailable(f"{about}{self._address} {meaning}")
