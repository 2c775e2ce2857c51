"""A connection to a sequencer, and the logs that are open on it."""

from __future__ import annotations

from typing import Protocol

from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._sequencer.frames import Kind, Reply
from zlog.errors import SequencerUnavailable


class LinkLost(SequencerUnavailable):
    """The connection ended before the answer came."""


class Link(Protocol):
    """One live connection to a sequencer.

    Attributes:
        heard: when it last brought anything, by its dialer's clock.
        lost: why it ended; empty while it lives.
    """

    heard: float
    lost: str

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


class Handle:
    """What one OPEN gave, on one link: compared by identity, so that a later OPEN is told apart."""

    __slots__ = ("link", "number")

    def __init__(self, link: Link, number: int) -> None:
        self.link = link
        self.number = number


class Lane:
    """One log, for all sessions of a dialer that use it.

    Attributes:
        guard: held while the log is opened or closed.
        handle: what it was last opened as; None: it is closed.
        users: sessions that use it; counted by the dialer.
    """

    __slots__ = ("guard", "handle", "log", "users")

    def __init__(self, log: LogAddress, guard: Guard) -> None:
        self.log = log
        self.guard = guard
        self.handle: Handle | None = None
        self.users = 0
