"""Running a load of reads."""

from __future__ import annotations

import asyncio
import os
import random
import time
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import zlog
from zlog import aio
from zlog.cli.verbs.bench.measure import Slice
from zlog.cli.verbs.bench.testbed import Testbed, cpu_between
from zlog.cli.verbs.bench.usage import own_memory_peak

_STEP = 1024
"""Entries that a range reader takes between two looks at the clock: one call, as it is counted."""


@dataclass(frozen=True)
class ReadLoad:
    """A load of reads.

    Attributes:
        size: bytes of one entry.
        entries: that the log has.
        batch: entries that one append wrote.
        depth: random reads in flight.
        width: stripe objects of the log.
    """

    size: int
    entries: int
    batch: int
    depth: int
    width: int


def prepare(testbed: Testbed, log: str, load: ReadLoad) -> None:
    """Write what is to be read."""
    batch = [os.urandom(load.size) for _ in range(load.batch)]
    with zlog.Log.open(testbed.store, log, timeout=testbed.timeout) as opened:
        for left in range(load.entries, 0, -load.batch):
            opened.append_many(batch[:left])


class _Counting:
    """A store that counts the operations on their way to another one."""

    def __init__(self, store: zlog.Store) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def execute(self, object: str, method: str, *rest: Any, **others: Any) -> Any:
        self.reads += method == "read"
        return self._store.execute(object, method, *rest, **others)

    def submit(self, queue: Any, token: int, calls: Any) -> Any:
        self.reads += sum(method == "read" for _, method, _ in calls)
        return self._store.submit(queue, token, calls)


class Reader(ABC):
    """What both kinds of readers share: the testbed, and what a turn used there.

    Attributes:
        how: what it does, one sentence.
        per_operation: entries that one read of an object brings, on average.
    """

    how: str
    per_operation: float

    def __init__(self, testbed: Testbed, log: str, load: ReadLoad) -> None:
        self._testbed = testbed
        self._log = log
        self._load = load

    def run(self, seconds: float) -> Slice:
        """Read for a while."""
        before = self._testbed.cpu()
        done = self._read(seconds)
        done.cpu = cpu_between(before, self._testbed.cpu())
        done.memory = own_memory_peak()
        return done

    @abstractmethod
    def close(self) -> None:
        """Let go of what the reader holds."""

    @abstractmethod
    def _read(self, seconds: float) -> Slice:
        """Read for a while, and count."""


class RangeReader(Reader):
    """Goes through the whole log with ``read_range``, again and again."""

    def __init__(self, testbed: Testbed, log: str, load: ReadLoad) -> None:
        super().__init__(testbed, log, load)
        counting: Any = _Counting(testbed.store)
        with zlog.Log.open(counting, log, timeout=testbed.timeout) as opened:
            found = sum(1 for _ in opened.read_range(0, load.entries))
        self.per_operation = found / max(1, counting.reads)
        self.how = (
            f"read_range; {self.per_operation:.0f} entries per read of a stripe object; a call is"
            f" {_STEP} entries"
        )
        self._opened = zlog.Log.open(testbed.store, log, timeout=testbed.timeout)

    def _read(self, seconds: float) -> Slice:
        latencies = array("d")
        entries = 0
        items = self._opened.read_range(0, self._load.entries)
        now = began = time.perf_counter()
        while now < began + seconds:
            taken, last = _take(items, _STEP)
            if taken and not isinstance(last, zlog.Entry):
                raise zlog.CorruptEntry(f"the log has a gap: {last}")
            entries += taken
            if taken < _STEP:
                items = self._opened.read_range(0, self._load.entries)
            before, now = now, time.perf_counter()
            latencies.append(now - before)
        return Slice(len(latencies), entries, now - began, latencies)

    def close(self) -> None:
        """Close the log."""
        self._opened.close()


def _take(items: Iterator[zlog.Entry | zlog.Gap], most: int) -> tuple[int, object]:
    """Take some entries one after the other, and keep none; tells how many, and the last one."""
    for number, item in deque(zip(count(1), islice(items, most)), maxlen=1):
        return number, item
    return 0, None


class RandomReader(Reader):
    """Reads one position here and one there, some of them at the same time."""

    def __init__(self, testbed: Testbed, log: str, load: ReadLoad) -> None:
        super().__init__(testbed, log, load)
        self.per_operation = 1.0
        self.how = "read, one position after the other, anywhere"
        self._random = random.Random(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        if load.depth > 1:
            self.how = f"{load.depth} concurrent reads of one event loop, anywhere"
            self._loop = asyncio.new_event_loop()

    def _read(self, seconds: float) -> Slice:
        if self._loop is not None:
            return self._loop.run_until_complete(self._read_concurrently(seconds))
        latencies = array("d")
        with zlog.Log.open(self._testbed.store, self._log, timeout=self._testbed.timeout) as log:
            now = began = time.perf_counter()
            while now < began + seconds:
                log.read(self._random.randrange(self._load.entries))
                before, now = now, time.perf_counter()
                latencies.append(now - before)
        return Slice(len(latencies), len(latencies), now - began, latencies)

    async def _read_concurrently(self, seconds: float) -> Slice:
        latencies = array("d")

        async def repeat(log: aio.Log, until: float) -> None:
            now = time.perf_counter()
            while now < until:
                await log.read(self._random.randrange(self._load.entries))
                before, now = now, time.perf_counter()
                latencies.append(now - before)

        testbed = self._testbed
        async with await aio.Log.open(testbed.store, self._log, timeout=testbed.timeout) as log:
            began = time.perf_counter()
            await asyncio.gather(*(repeat(log, began + seconds) for _ in range(self._load.depth)))
            took = time.perf_counter() - began
        return Slice(len(latencies), len(latencies), took, latencies)

    def close(self) -> None:
        """Close the event loop."""
        if self._loop is not None:
            self._loop.close()
