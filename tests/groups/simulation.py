"""A group in virtual time: members come, pause, leave and die, the store fails, the log changes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import zlib
from collections.abc import Callable, Coroutine
from typing import Any
from unittest import mock

import zlog
from zlog.aio import Log
from zlog.errors import ZlogError
from zlog.groups import SlotsLost, _member
from zlog.groups.aio import Group, Groups, Queue
from zlog.testing import FaultyStore, Process, SeededPlan, StoreFaults, run_virtually

from . import history
from .history import Event, History, check_ordered, check_queue

LEASE, ATTEMPTS, SLOTS = 3.0, 4, 8
MEMBERS = 4
_SECONDS = 20.0
_TROUBLE = StoreFaults(
    latency=(0.0005, 0.003), silent=0.005, late=0.01, late_seconds=1.0, refused=0.01
)
"""RADOS executes no operation again whose record was trimmed meanwhile, so nothing comes twice."""


class Simulation:
    """One run of a seed."""

    def __init__(self, seed: int, mode: str) -> None:
        self.chance = random.Random(f"{seed}.{mode}")
        self.mode = mode
        self.calm = self.chance.random() < 0.5
        self.seed = seed
        self.events: list[Event] = []
        self.over = False
        self.memory = zlog.connect("mem://")
        self.entries: dict[int, int] = {}
        self.audited = 0
        self.processes: dict[str, Process] = {}
        self.wrong: list[str] = []

    def note(self, kind: str, who: str, *what: object) -> None:
        """Note an event."""
        self.events.append([kind, asyncio.get_running_loop().time(), who, *what])

    def store(self) -> FaultyStore:
        """Return the store as a process reaches it."""
        faults = StoreFaults(latency=(0.0005, 0.003)) if self.calm else _TROUBLE
        plan = SeededPlan(self.chance.randrange(1 << 32), faults)
        return FaultyStore(self.memory, plan, share_sequencer=False)

    async def run(self) -> list[str]:
        """Run, and return what is wrong."""
        await Log.create(self.memory, "log", width=2)
        async with Log.open(self.memory, "log") as log:
            work = self._queue if self.mode == "queue" else self._ordered
            await work(log, "m.0", lambda: False)  # creates the group
            produced = self._start("producer", self._produce())
            await self._trouble(log)
            self.over = True
            await produced
            while (await Groups(log).stat("g")).lag:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.5)
            await self._audit(log)
            for process in self.processes.values():
                process.kill()
            return await self._check()

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.processes[name] = process = Process(name)
        return process.start(work)

    async def _produce(self) -> None:
        async with Log.open(self.memory, "log") as log:
            while not self.over:
                count = self.chance.randint(1, 8)
                tags = [[f"key{self.chance.randrange(30)}"] for _ in range(count)]
                with contextlib.suppress(ZlogError):
                    await log.append_many([b"x"] * count, tags_each=tags)
                await asyncio.sleep(self.chance.uniform(0, 0.1))

    async def _trouble(self, log: Log) -> None:
        """Start members, let some of them die, pause and leave, and change and trim the log."""
        chance, loop, number = self.chance, asyncio.get_running_loop(), 10
        members: list[str] = []
        until = loop.time() + _SECONDS
        while loop.time() < until or len(members) < MEMBERS:
            while len(members) < MEMBERS:
                number += 1
                members.append(f"m.{number}")
                self._start(members[-1], self._member(members[-1]))
            await asyncio.sleep(chance.uniform(0, 0.8))
            name, what = chance.choice(members), chance.random()
            if what < 0.3:
                self.note(history.FAULT, name)
                self.processes[name].kill()
                members.remove(name)
            elif what < 0.5:
                self.note(history.FAULT, name)
                self.processes[name].pause()
                await asyncio.sleep(chance.uniform(0.5, 6.0))
                self.note(history.RESUMED, name)
                self.processes[name].resume()
            elif what < 0.6:
                await log.reconfigure(width=chance.randint(1, 4))
            elif what < 0.8:
                await self._audit(log)
                try:
                    await log.trim_to(self.audited)
                except zlog.HeldByCursor as held:
                    await log.trim_to(held.position)

    async def _audit(self, log: Log) -> None:
        """Note the entries of the log."""
        async for item in log.read_range(self.audited):
            if isinstance(item, zlog.Entry):
                self.entries[item.position] = zlib.crc32(item.tags[0].encode()) % SLOTS
            self.audited = item.end

    async def _member(self, name: str) -> None:
        while True:
            seconds = 1e9 if self.over else self.chance.uniform(0.5, 8.0)
            with contextlib.suppress(ZlogError):
                await self._member_once(name, seconds)

    async def _member_once(self, name: str, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        async with Log.open(self.store(), "log", timeout=5.0) as log:
            work = self._queue if self.mode == "queue" else self._ordered
            await work(log, name, lambda: asyncio.get_running_loop().time() < until)

    async def _queue(self, log: Log, name: str, more: Callable[[], bool]) -> None:
        chance = self.chance
        queue = Queue(log, "g", lease=LEASE, attempts=ATTEMPTS, dead_letters="dead", worker=name)
        async with queue:
            acked: list[int] = []
            refused = 0
            while more():
                jobs = await queue.take(chance.randint(1, 10), wait=0.3)
                for job in jobs:
                    self.note(history.GOT, name, job.position, job.attempt)
                for job in jobs:
                    await asyncio.sleep(chance.uniform(0, 0.02))
                    if chance.random() < 0.1:
                        delay = chance.choice((0.0, 0.7))
                        self.note(history.NACKED, name, job.position, job.attempt, delay)
                        await job.nack(delay=delay, error="by chance")
                    else:
                        self.note(history.DONE, name, job.position)
                        await job.ack()
                        acked.append(job.position)
                if chance.random() < 0.5:
                    await queue.flush()
                    if queue.refused == refused:
                        self.note(history.ACKED, name, acked)
                    acked, refused = [], queue.refused
            self.note(history.FAULT, name)

    async def _ordered(self, log: Log, name: str, more: Callable[[], bool]) -> None:
        chance, loop = self.chance, asyncio.get_running_loop()
        named = name if chance.random() < 0.3 else ""
        group = Group(log, "g", slots=SLOTS, lease=LEASE, entries_max=chance.randint(1, 20))
        async with group.join(named) as member:
            while more():
                batch = await member.next(wait=0.3)
                if batch is None:
                    continue
                pairs = [(n, i.position) for n, items in batch.by_slot().items() for i in items]
                self.note(history.BATCH, name, [*batch.slots.items()], sorted(pairs, key=_second))
                await asyncio.sleep(chance.uniform(0, 0.05))
                began, lost = loop.time(), tuple[int, ...]()
                try:
                    await member.commit(batch)
                except SlotsLost as error:
                    lost = error.slots
                kept = [(n, token) for n, token in batch.slots.items() if n not in lost]
                self.note(history.COMMITTED, name, began, kept, batch.end)
            self.note(history.FAULT, name)

    async def _check(self) -> list[str]:
        played = History(self.events)
        if self.mode == "ordered":
            return check_ordered(played, self.entries)
        dead = set[int]()
        with contextlib.suppress(zlog.LogNotFound):
            async with Log.open(self.memory, "dead") as letters:
                async for letter in letters.read_range():
                    for tag in letter.tags if isinstance(letter, zlog.Entry) else ():
                        if tag.startswith("dead-position:"):
                            dead.add(int(tag[14:]))
        return check_queue(played, {*self.entries}, dead, ATTEMPTS, lease=LEASE, calm=self.calm)


def _second(pair: tuple[int, int]) -> int:
    return pair[1]


def simulate(seed: int, mode: str) -> Simulation:
    """Run a seed. What is wrong with it is in ``wrong``."""
    simulation = Simulation(seed, mode)
    gc.collect()
    gc.disable()  # what it finalizes, and when, is no part of the seed
    try:
        with mock.patch.object(_member, "CHECKPOINT_ENTRIES", 40):
            simulation.wrong = run_virtually(simulation.run(), seed, 200)
    except TimeoutError:
        simulation.wrong = ["it did not end"]
    finally:
        gc.enable()
    return simulation
