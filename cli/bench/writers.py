"""Running a load: one or more processes, each with one or more appends in flight."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from array import array
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

import zlog
from zlog import aio
from zlog.cli.bench.workload import Sample, Workload

_START_SECONDS = 60.0
"""How long writers may take to start and connect."""

_GRACE_SECONDS = 60.0
"""How long after the end of the load a writer may take to tell its result."""


def run(load: Workload, store: zlog.Store) -> list[Sample]:
    """Run the load: a single writer in this process, on ``store``, and several in their own.

    Raises:
        ZlogError: an append failed.
    """
    if load.writers == 1:
        return [_write(load, store)]
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(load.writers)
    processes = []
    pipes: list[Connection] = []
    try:
        for _ in range(load.writers):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_writer, args=(load, barrier, theirs), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            pipes.append(ours)
        return [_result(pipe, load) for pipe in pipes]
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _result(pipe: Connection, load: Workload) -> Sample:
    if not pipe.poll(_START_SECONDS + load.seconds + _GRACE_SECONDS):
        raise zlog.StoreTimeout("a writer of the benchmark did not come to an end")
    try:
        result = pipe.recv()
    except EOFError:
        raise zlog.ZlogError("a writer of the benchmark died") from None
    if isinstance(result, Exception):
        raise result
    assert isinstance(result, Sample)  # what _writer sends
    return result


def _writer(load: Workload, barrier: Barrier, pipe: Connection) -> None:
    """Be one of several writers: begin when all are ready, and send the result."""
    try:
        with zlog.connect(load.url) as store:
            pipe.send(_write(load, store, barrier))
    except threading.BrokenBarrierError:
        pipe.send(zlog.ZlogError("another writer of the benchmark did not start"))
    except zlog.ZlogError as error:
        barrier.abort()
        pipe.send(error)


def _write(load: Workload, store: zlog.Store, barrier: Barrier | None = None) -> Sample:
    if load.depth == 1:
        return _write_blocking(load, store, barrier)
    return asyncio.run(_write_async(load, store, barrier))


def _entries(load: Workload) -> list[bytes]:
    return [os.urandom(load.size) for _ in range(load.batch)]


def _begin(barrier: Barrier | None) -> float:
    if barrier is not None:
        barrier.wait(_START_SECONDS)
    return time.perf_counter()


def _write_blocking(load: Workload, store: zlog.Store, barrier: Barrier | None) -> Sample:
    entries = _entries(load)
    latencies = array("d")
    with zlog.Log.open(store, load.log, timeout=load.timeout) as log:
        log.append_many(entries)  # opens connections, which is not what is measured
        now = began = _begin(barrier)
        while now < began + load.seconds:
            log.append_many(entries)
            before, now = now, time.perf_counter()
            latencies.append(now - before)
    return Sample(len(latencies), now - began, latencies)


async def _write_async(load: Workload, store: zlog.Store, barrier: Barrier | None) -> Sample:
    entries = _entries(load)
    latencies = array("d")

    async def repeat(log: aio.Log, until: float) -> None:
        now = time.perf_counter()
        while now < until:
            await log.append_many(entries)
            before, now = now, time.perf_counter()
            latencies.append(now - before)

    async with await aio.Log.open(store, load.log, timeout=load.timeout) as log:
        await log.append_many(entries)
        began = _begin(barrier)
        await asyncio.gather(*(repeat(log, began + load.seconds) for _ in range(load.depth)))
        return Sample(len(latencies), time.perf_counter() - began, latencies)
