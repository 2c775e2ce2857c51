"""What all clients of a run share: the signals that they heed, and how much they put up with."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path

import zlog
from tests.history import RecordedLog

from .journal import write_whole

PATIENCE = 60.0
TIMEOUTS = (0.5, 2.0, 10.0, None)
SEQUENCER_TIMEOUT = 1.0

_REFUSALS = (
    zlog.AlreadyWritten,
    zlog.AppendRefused,
    zlog.BeyondTail,
    zlog.Conflict,
    zlog.CursorAhead,
    zlog.Fenced,
    zlog.Invalidated,
    zlog.NotWritten,
)


class Told:
    """What the process was told by signals."""

    def __init__(self) -> None:
        self.over = self.done = False
        signal.signal(signal.SIGUSR1, self._hear)
        signal.signal(signal.SIGTERM, self._hear)

    def _hear(self, number: int, _: object) -> None:
        if number == signal.SIGUSR1:
            self.over = True
        else:
            self.done = True


@dataclass
class Client(ABC):
    """What all roles share.

    Attributes:
        log: that is used.
        store: that has it.
        told: what the process was told.
        chance: decides what comes next.
        think: seconds between two operations, at most.
        over: the file in which it is noted when the client became patient.
    """

    log: RecordedLog
    store: zlog.Store
    told: Told
    chance: random.Random
    think: float
    over: Path
    _patient: bool = False
    _entries: int = 0

    async def run(self) -> None:
        """Do one thing after the other until told to end."""
        await self.begin()
        while not self.told.done:
            if self.told.over and not self._patient:
                self._patient = True
                write_whole(self.over, str(time.monotonic_ns()))
            await self.pause()
            await self._try(self.next())
        await self.end()

    async def pause(self) -> None:
        """Think before the next operation."""
        await asyncio.sleep(self.chance.uniform(0, self.think))

    async def begin(self) -> None:  # noqa: B027 - not every role has something to do first
        """Do what comes first."""

    @abstractmethod
    def next(self) -> Awaitable[object]:
        """Do what comes next."""

    async def end(self) -> None:  # noqa: B027 - or last
        """Do what comes last."""

    def entry(self) -> bytes:
        """Return an entry that no other client appends."""
        self._entries += 1
        size = self.chance.choice((0, 0, 100, 4000))
        return f"{self.log.process}.{self._entries}.".encode() + self.chance.randbytes(size)

    def timeout(self) -> float | None:
        """The time-out of an operation; None: the log's own, which is long."""
        return None if self._patient else self.chance.choice(TIMEOUTS)

    async def _try(self, operation: Awaitable[object]) -> None:
        try:
            await operation
        except _REFUSALS:
            pass
        except zlog.CorruptEntry:
            raise  # nothing was damaged
        except zlog.ZlogError:
            if self._patient:
                raise
