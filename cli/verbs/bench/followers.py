"""A follower in a process of its own, and a writer in this one."""

from __future__ import annotations

import multiprocessing
import os
import time
from array import array
from itertools import islice
from multiprocessing.connection import Connection

import zlog
from zlog.cli.verbs.bench.measure import Slice
from zlog.cli.verbs.bench.testbed import Testbed, cpu_between
from zlog.cli.verbs.bench.usage import own_cpu_seconds, own_memory_peak

_SETTLE_SECONDS = 0.05
"""Time for the follower to reach the tail and wait there, before anything is appended."""

_ANSWER_SECONDS = 60.0


class Followed:
    """Appends, and has a reader follow, in turns. Use it as a context manager.

    Attributes:
        how: what it does, one sentence.
    """

    def __init__(self, testbed: Testbed, log: str, size: int, rate: float) -> None:
        self.how = "from an append's acknowledgement to the entry in a follower's hands"
        self._testbed = testbed
        self._rate = rate
        self._data = os.urandom(size)
        self._log = zlog.Log.open(testbed.store, log, timeout=testbed.timeout)
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._follower = context.Process(
            target=_be_follower, args=(testbed.url, log, theirs), daemon=True
        )
        self._follower.start()
        theirs.close()

    def run(self, seconds: float) -> Slice:
        """Append a few entries, evenly in time."""
        count = max(1, round(seconds * self._rate))
        before = self._testbed.cpu()
        self._pipe.send((self._log.tail(), count))
        self._answer()  # it is about to follow
        time.sleep(_SETTLE_SECONDS)
        began = due = time.perf_counter()
        acknowledged = array("d")
        for _ in range(count):
            time.sleep(max(0.0, due - time.perf_counter()))
            self._log.append(self._data)
            acknowledged.append(time.perf_counter())
            due += 1 / self._rate
        took = time.perf_counter() - began
        seen, cpu, memory = self._answer()
        used = cpu_between(before, self._testbed.cpu())
        used["client"] += cpu
        latencies = array("d", (max(0.0, s - a) for s, a in zip(seen, acknowledged, strict=True)))
        return Slice(count, count, took, latencies, used, memory + own_memory_peak())

    def _answer(self) -> tuple[array[float], float, int]:
        try:
            if not self._pipe.poll(_ANSWER_SECONDS):
                raise zlog.StoreTimeout("the benchmark's follower did not get its entries")
            result = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise zlog.ZlogError("the benchmark's follower died") from None
        if isinstance(result, Exception):
            raise result
        answer: tuple[array[float], float, int] = result
        return answer

    def __enter__(self) -> Followed:
        return self

    def __exit__(self, *exception: object) -> None:
        self._follower.terminate()
        self._follower.join()
        self._log.close()


def _be_follower(url: str, name: str, pipe: Connection) -> None:
    """Follow as many entries as one is told; send when each came, and what it took."""
    nothing: array[float] = array("d")
    try:
        with zlog.connect(url) as store, zlog.Log.open(store, name) as log:
            while True:
                start, count = pipe.recv()
                before = own_cpu_seconds()
                pipe.send((nothing, 0.0, 0))
                seen = array("d", (time.perf_counter() for _ in islice(log.follow(start), count)))
                pipe.send((seen, own_cpu_seconds() - before, own_memory_peak()))
    except zlog.ZlogError as error:
        pipe.send(error)
    except (EOFError, KeyboardInterrupt):
        pass  # the benchmark is over
