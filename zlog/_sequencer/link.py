"""A connection to a sequencer, and the logs that are open on it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Protocol

from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._sequencer.frames import Kind, Reply
from zlog.errors import SequencerUnavailable

_IDLE_SECONDS = 10
_INTERVAL_SECONDS = 5
_PROBES = 3


class LinkLost(SequencerUnavailable):
    """The connection ended before the answer came."""


class Link(Protocol):
    """A connection to a sequencer.

    Attributes:
        heard: when the link last received anything, on its dialer's clock.
        lost: why the link ended; empty while it is open.
    """

    heard: float
    lost: str

    async def call(
        self, kind: Kind, handle: int, a: int, b: int, payload: bytes, deadline: Deadline
    ) -> Reply:
        """Send a request and return its answer. Raises LinkLost or SequencerTimeout."""

    def drop(self, reason: str) -> None:
        """End the connection. Calls that are waiting for it raise LinkLost."""

    async def close(self) -> None:
        """End the connection because its user closes it, and wait until it has ended."""


class Guard(Protocol):
    """A lock that can be taken with a deadline."""

    async def acquire(self, deadline: Deadline) -> bool:
        """Take the lock. Returns False if the deadline passes first."""

    def release(self) -> None:
        """Release the lock."""


@dataclass(eq=False, slots=True)
class Handle:
    """The result of an OPEN on a link. Handles are compared by identity."""

    link: Link
    number: int


@dataclass(eq=False, slots=True)
class Lane:
    """A log, shared by all sessions of a dialer that use it.

    Attributes:
        guard: held while the log is opened or closed.
        handle: the result of the log's last OPEN; None while the log is closed.
        users: the number of sessions that use the log. The dialer counts them.
    """

    log: LogAddress
    guard: Guard
    handle: Handle | None = None
    users: int = 0


def keep_alive(connected: socket.socket) -> None:
    """Make TCP send small frames at once, and notice a vanished peer within about 25 seconds.

    A client that waits at the tail of a quiet log sends nothing. Without TCP's keepalive probes, it
    would not notice that the sequencer's machine has lost power.
    """
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _INTERVAL_SECONDS)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
