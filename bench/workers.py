"""Processes that do a load's work, each with its own connection to the store."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import zlog
from bench.measure import Slice
from bench.usage import own_cpu_seconds, own_memory_peak

_ANSWER_SECONDS = 120.0
"""The time in which a worker must start and connect, or end after its turn."""

Begin = Callable[[], float]
"""Waits until all workers are ready. Returns their start time on ``time.perf_counter``."""


Work = Callable[..., Slice]
"""Does the work of one turn as ``work(begin, *turn)``. It calls :data:`Begin` once it is ready."""

Make = Callable[[zlog.Store], Work]
"""Makes a worker's work. It and its arguments must be importable by name."""


def do(work: Work, begin: Begin, *turn: Any) -> Slice:
    """Do one turn's work in this process. The slice includes its CPU time and memory."""
    before = own_cpu_seconds()
    done = work(begin, *turn)
    done.cpu["client"] = own_cpu_seconds() - before
    done.memory = own_memory_peak()
    return done


class Worker:
    """A process that does one turn after another, as a context manager."""

    def __init__(self, url: str, make: Make) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_be_worker, args=(url, make, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        self._process.join()

    def send(self, turn: Sequence[Any]) -> None:
        """Send the worker its work, for which it gets ready."""
        self._pipe.send(turn)

    def wait_until_ready(self) -> None:
        """Wait until the worker is ready.

        Raises:
            ZlogError: it failed, died or took too long.
        """
        self._answer(0)

    def begin(self) -> None:
        """Let the worker begin."""
        self._pipe.send(None)

    def result(self, seconds: float) -> Slice:
        """Return the worker's result. ``seconds`` is the duration of its turn.

        Raises:
            ZlogError: it failed, died or took too long.
        """
        found = self._answer(seconds)
        assert isinstance(found, Slice)  # _be_worker sends this
        return found

    def _answer(self, seconds: float) -> Slice | None:
        try:
            if not self._pipe.poll(_ANSWER_SECONDS + seconds):
                raise zlog.StoreTimeout("a process of the benchmark did not come to an end")
            found = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise zlog.ZlogError("a process of the benchmark died") from None
        if isinstance(found, Exception):
            raise found
        answer: Slice | None = found
        return answer


def _be_worker(url: str, make: Make, pipe: Connection) -> None:
    def begin() -> float:
        pipe.send(None)
        pipe.recv()
        return time.perf_counter()

    try:
        with zlog.connect(url) as store:
            work = make(store)
            while True:
                pipe.send(do(work, begin, *pipe.recv()))
    except zlog.ZlogError as error:
        pipe.send(error)
    except (EOFError, KeyboardInterrupt):
        pass  # the benchmark is over
