"""A producer that appends exactly once, in parts, and repeats each part until it is complete."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

from tests.history import RecordedLog
from zlog.errors import SequenceDiffers, SequenceSuperseded

from .clients import Client

PRODUCER = "job"
PARTS_MAX = 3
ENTRIES_MAX = 16
OLD_KEPT = 6
"""Parts that are done, and still tried again by a client that has not heard of it."""


@contextmanager
def small_rounds() -> Iterator[None]:
    """Rounds of five entries, and windows of four positions: so that a part takes several."""
    limits = {"APPEND_ENTRIES_MAX": 5, "_WINDOW_POSITIONS": 4}
    with mock.patch.multiple("zlog._append.exactly_once", **limits):
        yield


@dataclass
class Part:
    """A part of a sequence.

    Attributes:
        sequence: of which.
        number: in it.
        entries: what is to be appended.
        shuffled: whether each attempt has them in an order of its own.
        done: whether an attempt has succeeded, and lived to tell.
    """

    sequence: int
    number: int
    entries: list[bytes]
    shuffled: bool
    done: bool = False


class Producer:
    """What a job remembers whatever dies: its sequences, and which parts are complete.

    Args:
        chance: decides what is in a sequence.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._old: list[Part] = []
        self.sequence = -1
        self.parts: list[Part] = []
        self.advance()

    def advance(self) -> None:
        """Go on to the next sequence if this one is done."""
        if not all(part.done for part in self.parts):
            return
        chance = self._chance
        self._old = [*self._old, *self.parts][-OLD_KEPT:]
        self.sequence += 1
        self.parts = []
        for number in range(chance.randint(1, PARTS_MAX)):
            name = f"{PRODUCER}.{self.sequence}.{number}"
            entries = [f"{name}.{n}".encode() for n in range(chance.randint(1, ENTRIES_MAX))]
            self.parts.append(Part(self.sequence, number, entries, chance.random() < 0.3))

    def choose(self, chance: random.Random) -> Part:
        """Return what is to be tried next: mostly what is not done."""
        if self._old and chance.random() < 0.1:
            return chance.choice(self._old)
        open_ = [part for part in self.parts if not part.done]
        return chance.choice(open_ or self.parts)


class Attempter(Client):
    """A process that tries to append parts, and gives up, and is doubled, as tasks of a job are."""

    producer: Producer

    async def run(self) -> None:
        """Try one part after the other until ``done``."""
        log = await self._open()
        while not self.done:
            await asyncio.sleep(self.chance.uniform(0, self.think))
            part = self.producer.choose(self.chance)
            await self._try(self._attempts(log, part))
            self.producer.advance()
            if self.chance.random() < 0.1:
                await self._try(log.log.complete_sequences(PRODUCER, before=self.producer.sequence))

    async def _attempts(self, log: RecordedLog, part: Part) -> object:
        """One attempt, or two at once, each of which may be given up at any await."""
        delays = self.chance.choice(((0.0,), (0.0,), (0.0, self.chance.uniform(0, 0.1))))
        return await asyncio.gather(*(self._attempt(log, part, delay) for delay in delays))

    async def _attempt(self, log: RecordedLog, part: Part, delay: float) -> str:
        await asyncio.sleep(delay)
        if self.chance.random() < 0.3:
            steps = ("delivery_begin", "delivery_grant", "delivery_grant", "write")
            self._freeze(self.chance.choice(steps))
        patience = self.chance.choice((None, None, None, 0.01, 0.05, 0.3))
        what = f"{PRODUCER} {part.sequence}.{part.number}"
        self.trace(self.process.name, f"appends {what} once")
        try:
            appended = await asyncio.wait_for(append_part(log, part, self.chance), patience)
        except asyncio.TimeoutError:
            return f"gave up {what}"
        except SequenceSuperseded as error:
            return f"superseded: {error}"
        except SequenceDiffers as error:
            self.complain(f"P15: {self.process.name}: no other part has this key: {error}")
            raise
        part.done = True
        return f"completed {what}: appended {appended} of {len(part.entries)}"


async def append_part(log: RecordedLog, part: Part, chance: random.Random) -> int:
    """Append a part once; returns how many entries that took."""
    entries = list(part.entries)
    if part.shuffled:
        chance.shuffle(entries)
    return await log.append_once(
        entries, producer=PRODUCER, sequence=part.sequence, part=part.number
    )
