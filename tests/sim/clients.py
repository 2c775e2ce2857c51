"""What clients do in a run: everything that a log can do, at random."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import ClassVar

from tests.history import History, RecordedLog
from zlog._append.conditions import Condition
from zlog._base.wanted import Match
from zlog.aio import Log
from zlog.errors import AlreadyWritten, Conflict, CorruptEntry, Invalidated, ZlogError
from zlog.testing import Process

from ..support.logs import TAGS, UNITS, all_of, tags_of
from .cluster import ProcessStore
from .trace import Trace

LOG = "orders"
TIMEOUT = 3.0
SEQUENCER_TIMEOUT = 1.0
MATCHES: tuple[Match, Match] = ("any", "all")


KINDS = TAGS[1:]


@dataclass
class Client:
    """One client process, from its start to its death.

    Attributes:
        process: in which it runs.
        store: as that reaches it.
        history: where its operations go.
        trace: what it does, for readers.
        chance: decides what it does next.
        think: seconds between two operations, at most.
        complain: called with what must never happen to a client.
        trims: whether it may trim.
        hole_timeout: seconds after which a reader fills a hole.
        timeout: of its operations.
    """

    process: Process
    store: ProcessStore
    history: History
    trace: Trace
    chance: random.Random
    think: float
    complain: Callable[[str], None]
    trims: bool
    hole_timeout: float
    done: bool = field(default=False, init=False)
    timeout: ClassVar[float] = TIMEOUT

    def __post_init__(self) -> None:
        self._actions = {n: w for n, w in _ACTIONS.items() if self.trims or n not in _TRIMS}
        self._entries = 0
        self._name = f"{self.process.name}.{self.chance.randrange(16**6):06x}"

    async def run(self) -> None:
        """Do things until ``done``."""
        log = await self._open()
        while not self.done:
            await asyncio.sleep(self.chance.uniform(0, self.think))
            await self._try(self._next(log))

    async def follow(self, tags: Collection[str] | None = None) -> None:
        """Read everything in order, or what has one of some tags, and wait for more."""
        log = await self._open()
        while not self.done:
            await self._try(self._follow(log, tags))

    async def _open(self) -> RecordedLog:
        while True:
            try:
                log = await Log.open(
                    self.store,
                    LOG,
                    timeout=self.timeout,
                    hole_timeout=self.chance.choice((0.02, 0.1, 0.3)),
                    sequencer_timeout=SEQUENCER_TIMEOUT,
                )
            except CorruptEntry:
                raise
            except ZlogError as error:
                self.trace(self.process.name, f"could not open the log: {error}")
                await asyncio.sleep(0.1)
            else:
                return self.history.watch(log, self.process.name)

    async def _try(self, operation: Awaitable[object]) -> None:
        name = self.process.name
        try:
            result = await operation
        except CorruptEntry as error:
            self.complain(f"{name}: nothing was damaged, and it says: {error}")
        except ZlogError as error:
            self.trace(name, f"-> {type(error).__name__}: {error}")
        else:
            if result is not None:
                self.trace(name, f"-> {result}")

    def _freeze(self, step: str) -> None:
        """Stop for a while once the store has taken a step, before this process hears of it."""
        seconds = self.chance.uniform(0.1, 1.0)

        def effect(method: str) -> None:
            if method == step and self.process.running:
                self.store.effect = None
                self.trace(self.process.name, f"is frozen in {step} for {seconds:.2f} s")
                self.process.pause()
                loop = asyncio.get_running_loop()
                loop.call_later(seconds, self.process.resume, context=contextvars.Context())

        self.store.effect = effect

    def _next(self, log: RecordedLog) -> Awaitable[object]:
        actions, weights = zip(*self._actions.items(), strict=True)
        (action,) = self.chance.choices(actions, weights)
        self.trace(self.process.name, action.__name__.removeprefix("_"))
        return action(self, log)

    def _entry(self) -> bytes:
        self._entries += 1
        return f"{self._name}.{self._entries}".encode()

    def _some_position(self) -> int:
        """A position that probably lies below the tail, and rather close to it."""
        most = max((each.position or 0 for each in self.history.operations[-50:]), default=0)
        return max(0, most - int(self.chance.expovariate(0.2)))

    async def _append(self, log: RecordedLog) -> object:
        entry = self._entry()
        return await log.append(entry, tags=tags_of(entry))

    async def _append_at_once(self, log: RecordedLog) -> object:
        """Several at once, which travel together."""
        entries = [self._entry() for _ in range(self.chance.randint(2, 8))]
        return await all_of(log.append(entry, tags=tags_of(entry)) for entry in entries)

    async def _append_many(self, log: RecordedLog) -> object:
        entries = [self._entry() for _ in range(self.chance.randint(2, 12))]
        return await log.append_many(entries, tags=tags_of(entries[0]))

    async def _reserve(self, log: RecordedLog) -> object:
        """Reserve some positions, and write to some of these, in any order, after a while."""
        reserved = list(await log.reserve(self.chance.randint(1, 4)))
        self.chance.shuffle(reserved)
        written = []
        for position in reserved[: self.chance.randint(0, len(reserved))]:
            await asyncio.sleep(self.chance.expovariate(20))
            try:
                entry = self._entry()
                await log.write(position, entry, tags=tags_of(entry))
                written.append(position)
            except Invalidated as error:
                self.trace(self.process.name, f"-> {error}")
            except AlreadyWritten as error:
                self.complain(f"P16: {self.process.name} had reserved it: {error}")
        return written

    async def _read(self, log: RecordedLog) -> object:
        return await log.read(self._some_position())

    async def _read_range(self, log: RecordedLog) -> object:
        end = self._some_position() + 1
        start = max(0, end - self.chance.randint(1, 30))
        async with aclosing(
            log.read_range(start, end, hole_timeout=self.hole_timeout / 2)
        ) as items:
            return len([item async for item in items])

    async def _select(self, log: RecordedLog) -> object:
        """Read a range by tags, or backwards, or both."""
        tail = await log.tail()
        start = max(0, tail - self.chance.randint(1, 60))
        end = self.chance.choice((None, max(start, tail - self.chance.randint(0, 5))))
        reverse = self.chance.random() < 0.4
        tags = [self.chance.choice(KINDS), *self.chance.choices((*KINDS, "even"), k=1)]
        wanted = None if reverse and self.chance.random() < 0.2 else tags
        items = log.read_range(
            start,
            end,
            tags=wanted,
            match=self.chance.choice(MATCHES),
            reverse=reverse,
            hole_timeout=self.hole_timeout / 2,
        )
        async with aclosing(items):
            return f"{len([item async for item in items])} items by tags"

    async def _last(self, log: RecordedLog) -> object:
        await log.tail()
        return await log.last(self.chance.choice(KINDS))

    async def _follow(self, log: RecordedLog, tags: Collection[str] | None) -> object:
        async with aclosing(log.follow(tags=tags, hole_timeout=self.hole_timeout)) as items:
            async for item in items:
                self.trace(self.process.name, f"-> {item}")
                if self.done:
                    break

    async def _tail(self, log: RecordedLog) -> object:
        return await log.tail()

    async def _fill(self, log: RecordedLog) -> object:
        return await log.fill(self._some_position() + self.chance.randint(0, 3))

    async def _trim(self, log: RecordedLog) -> object:
        return await log.trim(self._some_position())

    async def _trim_to(self, log: RecordedLog) -> object:
        return await log.trim_to(self._some_position() // 2)

    async def _reconfigure(self, log: RecordedLog) -> object:
        if log.log.view.ordered:
            return (await log.log.roll()).epoch
        width, stripe_unit = self.chance.randint(1, 5), self.chance.choice(UNITS)
        return (await log.log.reconfigure(width=width, stripe_unit=stripe_unit)).epoch

    async def _stat(self, log: RecordedLog) -> object:
        return await log.log.stat()


class Compactor(Client):
    """A process that enforces the log's retention again and again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.think = 0.6

    def _next(self, log: RecordedLog) -> Awaitable[object]:
        return compact(log)


class Decider(Client):
    """A process whose appends have conditions, some of which do not hold."""

    def _next(self, log: RecordedLog) -> Awaitable[object]:
        return self._append_if(log) if self.chance.random() < 0.6 else super()._next(log)

    async def _append_if(self, log: RecordedLog) -> object:
        """Look at the tail, think, and append if nothing has come that matters."""
        tail = await log.tail() - self.chance.choice((0, 0, 0, 1, 5))
        await asyncio.sleep(self.chance.choice((0, self.chance.uniform(0, self.think))))
        sets = [
            tuple(self.chance.sample(TAGS, self.chance.randint(1, 2)))
            for _ in range(self.chance.randint(1, 3))
        ]
        condition = self.chance.choice(
            (
                Condition(expect=max(0, tail)),
                Condition(unless=tuple(sets), start=max(0, tail)),
                Condition(unless=(("even", f"no-{tail}"),)),
            )
        )
        entries = [self._entry() for _ in range(self.chance.randint(1, 4))]
        tags = tags_of(entries[0])
        try:
            return await log.append_many(entries, tags=tags, condition=condition)
        except Conflict as conflict:
            return f"conflict with {conflict.position}"


async def compact(log: RecordedLog) -> str:
    """Have what is superseded trimmed; returns what is said of that."""
    await log.log.apply_retention()
    report = await log.log.retention_report()
    return f"compacted up to {report.compacted}" if report.compacted else "too early to compact"


_ACTIONS: dict[Callable[[Client, RecordedLog], Awaitable[object]], int] = {
    Client._append: 40,
    Client._append_at_once: 10,
    Client._append_many: 8,
    Client._reserve: 4,
    Client._read: 16,
    Client._read_range: 5,
    Client._select: 3,
    Client._last: 1,
    Client._tail: 6,
    Client._fill: 6,
    Client._trim: 2,
    Client._trim_to: 1,
    Client._reconfigure: 2,
    Client._stat: 1,
}
_TRIMS = (Client._trim, Client._trim_to)
