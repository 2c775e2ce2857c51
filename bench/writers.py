"""Runs a load of appends: one or more processes, each with one or more calls in flight."""

from __future__ import annotations

import asyncio
import random
import time
from array import array
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial

import zlog
from bench.entries import entries_of
from bench.measure import Slice, repeat, together
from bench.testbed import Testbed
from bench.workers import Begin, Worker, do
from zlog import aio
from zlog._native import messages

_OBJECT_BYTES_MAX = 48 << 20
"""The fullness of stripe objects at which a turn ends, so that the next one takes a new log."""

_TAGGED = 65536
"""The number of entries whose tags are drawn in advance. They are used repeatedly."""

_UNLESS = [("absent",)]
"""The condition of a conditional append."""

_LATENCY_TASKS = 64
"""The number of concurrent calls whose latency is measured."""


@dataclass(frozen=True)
class Workload:
    """A load of appends.

    Attributes:
        size: the size of an entry in bytes.
        batch: the number of entries per call.
        writers: the number of processes that append at the same time.
        depth: the number of calls in flight per writer.
        width: the number of stripe objects of the log.
        stripe_unit: the stripe unit of the log.
        alone: whether each operation has the entries of one call only.
        exclusive: whether the writer is the log's exclusive writer, which needs no sequencer.
        tags: the number of tags from which each entry has one; 0 means no tags.
        compression: the compression of the log.
        words: whether entries consist of words, which compress.
        through: how the calls in flight are made: by ``tasks`` of an event loop, by ``threads``, or
            by one task that calls ``submit`` and keeps as many entries in flight.
        conditional: whether the log is ordered by its object, and each append has a condition that
            holds: that no entry with a certain tag came after the last append of the same writer.
    """

    size: int
    batch: int
    writers: int
    depth: int
    width: int
    stripe_unit: int
    alone: bool = False
    exclusive: bool = False
    tags: int = 0
    compression: str = "none"
    words: bool = False
    through: str = "tasks"
    conditional: bool = False

    @property
    def in_flight(self) -> int:
        """The total number of entries in flight."""
        return self.writers * self.depth * self.batch

    @property
    def together(self) -> int:
        """The maximum number of entries that are sent together: of one list, or of one writer."""
        return self.batch if self.alone or self.batch > 1 else self.depth

    @property
    def calls_max(self) -> int:
        """The maximum number of calls of a writer in a turn, for which the objects have space."""
        entry_bytes = self.batch * (self.size + 1)
        return max(1, _OBJECT_BYTES_MAX * self.width // entry_bytes // self.writers)


@dataclass(frozen=True)
class Traffic:
    """How a load's entries were sent.

    Attributes:
        per_operation: the average number of entries in one write to a stripe object.
        operations: the number of such writes in flight.
        width: the number of stripe objects.
        stripe_unit: the stripe unit.
        together: the maximum number of entries sent together to all stripe objects.
    """

    per_operation: float
    operations: int
    width: int
    stripe_unit: int
    together: int

    @property
    def batch(self) -> int:
        """The number of entries that are sent together to all stripe objects."""
        if self.per_operation < 1.5:
            return 1
        most = min(self.per_operation * self.width, self.together)
        # A batch that does not reach all objects covers batch / stripe_unit stripe units, and one
        # more with a probability of 1 - 1 / stripe_unit.
        few = 1 / self.per_operation - 1 / self.stripe_unit
        return round(min(most, 1 / few) if few > 0 else most)

    @property
    def lanes(self) -> int:
        """The number of such batches in flight."""
        return max(1, round(self.operations * self.per_operation / self.batch))


class Writers:
    """Appends to a log in turns, as a context manager.

    A single writer runs in this process, so that a profiler sees it. Several writers are processes.
    """

    def __init__(self, testbed: Testbed, load: Workload) -> None:
        self.traffic = Traffic(1, 1, load.width, load.stripe_unit, 1)
        self._testbed = testbed
        self._load = load
        self._stack = ExitStack()
        make = partial(Writer, load, testbed.timeout)
        self._own = make(testbed.store) if load.writers == 1 else None
        self._workers = (
            []
            if self._own
            else [self._stack.enter_context(Worker(testbed.url, make)) for _ in range(load.writers)]
        )

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def run(self, seconds: float) -> Slice:
        """Append to a new log for a while, and find out how the entries are sent."""
        load = self._load
        ordering = "object" if load.conditional else "sequencer"
        with self._testbed.new_log(load.width, load.stripe_unit, load.compression, ordering) as log:
            if self._own:
                done = do(self._own, time.perf_counter, log, seconds)
            else:
                done = self._run_workers(log, seconds)
            self._learn(log)
        return done

    def _run_workers(self, log: str, seconds: float) -> Slice:
        for worker in self._workers:
            worker.send((log, seconds))
        for worker in self._workers:
            worker.wait_until_ready()
        for worker in self._workers:
            worker.begin()
        results = [worker.result(seconds) for worker in self._workers]
        done = together(results)
        done.cpu = {"client": sum(each.cpu["client"] for each in results)}
        done.memory = sum(each.memory for each in results)
        return done

    def _learn(self, name: str) -> None:
        """Ask the stripe objects how many entries they received in how many writes."""
        store = self._testbed.store
        with zlog.Log.open(store, name, timeout=self._testbed.timeout) as log:
            request = messages.stat(log.view.epoch)
            replies = [store.execute(ref.name, "stat", request) for ref in log.view.objects()]
        stats = [messages.stat_reply(payload) for code, payload in replies if code == 0]
        writes = sum(stat.records for stat in stats)
        per_operation = sum(stat.entries for stat in stats) / max(1, writes)
        load = self._load
        operations = max(1, round(load.in_flight / per_operation))
        self.traffic = Traffic(
            per_operation, operations, load.width, load.stripe_unit, load.together
        )


class Writer:
    """The part of the load that one process does."""

    def __init__(self, load: Workload, timeout: float | None, store: zlog.Store) -> None:
        self._load = load
        self._timeout = timeout
        self._store = store
        self._entries = entries_of(load.size, load.batch, words=load.words)
        self._tags: list[tuple[str, ...]]
        self._tags = [(f"tag-{number}",) for number in range(load.tags)] or [()]
        self._lots = [self._lot() for _ in range(max(1, _TAGGED // load.batch) if load.tags else 1)]
        self._calls = 0
        self._last = 0  # the position of an append

    def _lot(self) -> list[tuple[str, ...]] | None:
        """Return random tags for a batch's entries."""
        return random.choices(self._tags, k=self._load.batch) if self._load.tags else None

    def _next(self) -> list[tuple[str, ...]] | None:
        self._calls += 1
        return self._lots[self._calls % len(self._lots)]

    def __call__(self, begin: Begin, log: str, seconds: float) -> Slice:
        """Append to a log for a while."""
        if self._load.depth > 1 and self._load.through != "threads":
            return asyncio.run(self._append_concurrently(begin, log, seconds))
        return self._append_blocking(begin, log, seconds)

    def _append_blocking(self, begin: Begin, name: str, seconds: float) -> Slice:
        entries, depth = self._entries, self._load.depth
        with ExitStack() as stack:
            log = stack.enter_context(zlog.Log.open(self._store, name, timeout=self._timeout))
            to = stack.enter_context(log.writer()) if self._load.exclusive else log

            def call() -> int:
                lot = self._next()
                if self._load.conditional:
                    self._last = log.append(entries[0], unless=_UNLESS, after=self._last)
                elif len(entries) > 1:
                    to.append_many(entries, tags_each=lot)
                elif lot is None:
                    to.append(entries[0])
                else:
                    to.append(entries[0], tags=lot[0])
                return len(entries)

            self._last = to.append_many(entries)[-1]  # takes the log over, which is not measured
            calls_max = max(1, self._load.calls_max // depth)
            begin()
            if depth == 1:
                return repeat(call, seconds, calls_max)
            pool = stack.enter_context(ThreadPoolExecutor(depth))
            threads = [pool.submit(repeat, call, seconds, calls_max) for _ in range(depth)]
            return together([thread.result() for thread in threads])

    async def _append_if(self, log: aio.Log, data: bytes) -> None:
        self._last = await log.append(data, unless=_UNLESS, after=self._last)

    def _call_tagged(
        self, call: Callable[..., Awaitable[object]], data: bytes | list[bytes]
    ) -> Awaitable[object]:
        lot = self._next() or [()]
        return call(data, tags=lot[0]) if isinstance(data, bytes) else call(data, tags_each=lot)

    async def _append_concurrently(self, begin: Begin, name: str, seconds: float) -> Slice:
        load, latencies = self._load, array("d")
        every = max(1, load.depth // _LATENCY_TASKS)
        calls_max = max(1, load.calls_max // load.depth)  # of one task
        over = False

        def end() -> None:
            nonlocal over
            over = True

        async def append_again(*, timed: bool) -> int:
            call: Callable[..., Awaitable[object]] = to.append
            data: bytes | list[bytes] = self._entries[0]
            if load.alone or load.batch > 1:
                call, data = to.append_many, self._entries
            if load.conditional:
                call = partial(self._append_if, log)
            if load.tags:
                call = partial(self._call_tagged, call)
            calls = 0
            now = time.perf_counter()
            # The event loop reports the end of the time, because reading the clock takes time.
            while calls < calls_max and not over:
                await call(data)
                calls += 1
                if timed:
                    before, now = now, time.perf_counter()
                    latencies.append(now - before)
            return calls

        async def submit_again() -> int:
            waiting: deque[asyncio.Future[int]] = deque()
            calls = 0
            while calls < load.calls_max and not over:
                before = time.perf_counter()
                while len(waiting) < load.depth:
                    waiting.append(await to.submit(self._entries[0]))
                await waiting[0]
                latencies.append(time.perf_counter() - before)
                while waiting and waiting[0].done():
                    waiting.popleft().result()
                    calls += 1
            return calls + len(await asyncio.gather(*waiting))

        async with AsyncExitStack() as stack:
            opening = aio.Log.open(self._store, name, timeout=self._timeout)
            log = await stack.enter_async_context(opening)
            to: aio.Log | aio.Writer = log
            if load.exclusive:
                to = await stack.enter_async_context(log.writer())
            self._last = (await to.append_many(self._entries))[-1]
            began = begin()
            asyncio.get_running_loop().call_later(seconds, end)
            if load.through == "submit":
                calls = await submit_again()
            else:
                tasks = (append_again(timed=number % every == 0) for number in range(load.depth))
                calls = sum(await asyncio.gather(*tasks))
            took = time.perf_counter() - began
        return Slice(calls, calls * load.batch, took, latencies)
