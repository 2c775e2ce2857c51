"""Running a load of appends: one or more processes, each with one or more calls in flight."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from array import array
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

import zlog
from zlog import aio
from zlog._native import messages
from zlog.cli.verbs.bench.measure import Slice
from zlog.cli.verbs.bench.testbed import Testbed, cpu_between
from zlog.cli.verbs.bench.usage import own_cpu_seconds, own_memory_peak
from zlog.cli.verbs.bench.workload import Traffic, Workload

T = TypeVar("T")

_START_SECONDS = 60.0
"""How long writers may take to start and connect, and after their time to come to an end."""

_LATENCY_TASKS = 64
"""Of how many concurrent calls the latency is taken."""


class Writers:
    """Appends to a log in turns. Use it as a context manager.

    With one writer this process appends, so that a profiler sees it; several are processes.
    """

    def __init__(self, testbed: Testbed, load: Workload) -> None:
        self.traffic = Traffic(1, 1, load.width)
        self._testbed = testbed
        self._load = load
        self._crew: _Crew | None = None
        self._writer: _Writer | None = None
        if load.writers == 1:
            self._writer = _Writer(testbed.store, load, testbed.timeout)
        else:
            self._crew = _Crew(testbed, load)

    def run(self, seconds: float) -> Slice:
        """Append to a new log for a while; also learns how the entries travel."""
        with self._testbed.new_log(self._load.width) as log:
            done = self._append(log, seconds)
            self._learn(log)
        return done

    def _append(self, log: str, seconds: float) -> Slice:
        if self._crew is not None:
            return self._crew.append(log, seconds)
        assert self._writer is not None
        before = self._testbed.cpu()
        done = self._writer.append(log, seconds)
        done.cpu = cpu_between(before, self._testbed.cpu())
        return done

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._crew is not None:
            self._crew.close()
        if self._writer is not None:
            self._writer.close()

    def _learn(self, name: str) -> None:
        """Ask the stripe objects how many entries they got in how many writes."""
        store = self._testbed.store
        with zlog.Log.open(store, name, timeout=self._testbed.timeout) as log:
            request = messages.stat(log.view.epoch)
            replies = [store.execute(ref.name, "stat", request) for ref in log.view.objects()]
        stats = [messages.stat_reply(payload) for code, payload in replies if code == 0]
        writes = sum(stat.records for stat in stats)
        per_operation = sum(stat.entries for stat in stats) / max(1, writes)
        operations = max(1, round(self._load.in_flight / per_operation))
        self.traffic = Traffic(per_operation, operations, self._load.width)


class _Crew:
    """Several writers, each a process."""

    def __init__(self, testbed: Testbed, load: Workload) -> None:
        context = multiprocessing.get_context("spawn")
        self._testbed = testbed
        self._load = load
        self._pipes: list[Connection] = []
        self._processes = []
        # Kept, as the writers open it by name when they start.
        self._barrier = barrier = context.Barrier(load.writers)
        for _ in range(load.writers):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_be_writer,
                args=(testbed.url, load, testbed.timeout, barrier, theirs),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)

    def append(self, log: str, seconds: float) -> Slice:
        """Have all of them append to one log at the same time."""
        before = self._testbed.cpu()
        for pipe in self._pipes:
            pipe.send((log, seconds))
        results = [self._result(pipe, seconds) for pipe in self._pipes]
        used = cpu_between(before, self._testbed.cpu())
        used["client"] = sum(each.cpu["client"] for each in results)
        whole = max(each.seconds for each in results)
        latencies = array("d")
        for each in results:
            latencies.extend(each.latencies)
        calls = sum(each.calls for each in results)
        memory = sum(each.memory for each in results)
        return Slice(calls, calls * self._load.batch, whole, latencies, used, memory)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.terminate()
            process.join()

    def _result(self, pipe: Connection, seconds: float) -> Slice:
        if not pipe.poll(2 * _START_SECONDS + seconds):
            raise zlog.StoreTimeout("a writer of the benchmark did not come to an end")
        try:
            result = pipe.recv()
        except (EOFError, ConnectionError):
            raise zlog.ZlogError("a writer of the benchmark died") from None
        if isinstance(result, Exception):
            raise result
        assert isinstance(result, Slice)  # what _be_writer sends
        return result


def _be_writer(
    url: str, load: Workload, timeout: float | None, barrier: Barrier, pipe: Connection
) -> None:
    """Be one of several writers: turn after turn, begin when all are ready, send the result."""
    try:
        with zlog.connect(url) as store:
            writer = _Writer(store, load, timeout, barrier)
            while True:
                log, seconds = pipe.recv()
                before = own_cpu_seconds()
                done = writer.append(log, seconds)
                done.cpu = {"client": own_cpu_seconds() - before}
                pipe.send(done)
    except threading.BrokenBarrierError:
        pipe.send(zlog.ZlogError("another writer of the benchmark failed"))
    except zlog.ZlogError as error:
        barrier.abort()
        pipe.send(error)
    except (EOFError, KeyboardInterrupt):
        pass  # the benchmark is over


class _Writer:
    """One process's part of the load."""

    def __init__(
        self,
        store: zlog.Store,
        load: Workload,
        timeout: float | None,
        barrier: Barrier | None = None,
    ) -> None:
        self._store = store
        self._load = load
        self._timeout = timeout
        self._barrier = barrier
        self._entries = [os.urandom(load.size) for _ in range(load.batch)]
        self._loop: asyncio.AbstractEventLoop | None = None
        if load.depth > 1:
            self._loop = asyncio.new_event_loop()

    def append(self, log: str, seconds: float) -> Slice:
        """Append to a log for a while."""
        if self._loop is None:
            done = self._append_blocking(log, seconds)
        else:
            done = self._drive(self._append_concurrently(log, seconds))
        done.memory = own_memory_peak()
        return done

    def close(self) -> None:
        """Let go of the event loop."""
        if self._loop is not None:
            self._loop.close()

    def _drive(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        task = self._loop.create_task(work)
        try:
            return self._loop.run_until_complete(task)
        except BaseException:  # Ctrl-C too: the coroutine still has a log to close
            task.cancel()
            self._loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            raise

    def _begin(self) -> float:
        if self._barrier is not None:
            self._barrier.wait(_START_SECONDS)
        return time.perf_counter()

    def _append_blocking(self, name: str, seconds: float) -> Slice:
        entries, latencies = self._entries, array("d")
        with zlog.Log.open(self._store, name, timeout=self._timeout) as log:
            log.append_many(entries)  # takes the log over, which is not what is measured
            left = self._load.calls_max
            now = began = self._begin()
            while now < began + seconds and left > 0:
                if len(entries) == 1:
                    log.append(entries[0])
                else:
                    log.append_many(entries)
                before, now = now, time.perf_counter()
                latencies.append(now - before)
                left -= 1
        calls = len(latencies)
        return Slice(calls, calls * len(entries), now - began, latencies)

    async def _append_concurrently(self, name: str, seconds: float) -> Slice:
        load, latencies = self._load, array("d")
        every = max(1, load.depth // _LATENCY_TASKS)
        async with await aio.Log.open(self._store, name, timeout=self._timeout) as log:
            await log.append_many(self._entries)
            turn = _Turn(self._begin(), seconds, max(1, load.calls_max // load.depth))
            calls = await asyncio.gather(
                *(
                    self._repeat(log, turn) if number % every else self._time(log, turn, latencies)
                    for number in range(load.depth)
                )
            )
            took = time.perf_counter() - turn.began
        return Slice(sum(calls), sum(calls) * load.batch, took, latencies)

    def _call(self, log: aio.Log) -> tuple[Callable[[Any], Coroutine[Any, Any, object]], Any]:
        """Return what to call again and again, and with what."""
        if self._load.alone or len(self._entries) > 1:
            return log.append_many, self._entries
        return log.append, self._entries[0]

    async def _repeat(self, log: aio.Log, turn: _Turn) -> int:
        """Make one call after the other; returns how many."""
        append, data = self._call(log)
        calls = 0
        while calls < turn.calls_max and not turn.over:
            await append(data)
            calls += 1
        return calls

    async def _time(self, log: aio.Log, turn: _Turn, latencies: array[float]) -> int:
        """Do the same, and look at the clock."""
        append, data = self._call(log)
        calls = 0
        now = time.perf_counter()
        while calls < turn.calls_max and not turn.over:
            await append(data)
            calls += 1
            before, now = now, time.perf_counter()
            latencies.append(now - before)
        return calls


class _Turn:
    """For how long calls are made, told by the event loop: looking at the clock costs time.

    Attributes:
        began: when it began, on ``time.perf_counter``.
        calls_max: what one task calls at most.
        over: whether its time is up.
    """

    def __init__(self, began: float, seconds: float, calls_max: int) -> None:
        self.began = began
        self.calls_max = calls_max
        self.over = False
        asyncio.get_running_loop().call_later(seconds, self._end)

    def _end(self) -> None:
        self.over = True
