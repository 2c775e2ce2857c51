"""Calls over an interrupted call of the same thread, as in a signal handler: none waits for itself.

The public API is enumerated, as in test_forks.py.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog import objects

from ..support.local_sequencer import LocalSequencer
from .faulty import FaultyStore, WithoutSequencer
from .test_forks import blocking_handles, calls_of

Call = Callable[[], Any]

SOON = 3.0
"""Seconds. A call that waits for itself takes the time-out of its handle, or never ends."""


class Interrupting:
    """Runs calls over whatever is interrupted, and takes down what became of them."""

    def __init__(self, inner: dict[str, Call]) -> None:
        self.complaints: list[str] = []
        self.refused = self.done = 0
        self._inner = itertools.cycle(inner.items())
        self._busy = False

    def __call__(self, over: str) -> None:
        if self._busy:
            return
        self._busy = True
        name, call = next(self._inner)
        began = time.monotonic()
        try:
            call()
            self.done += 1
        except zlog.ReentrantCall:
            self.refused += 1
        except Exception as error:  # noqa: BLE001
            self.complaints.append(f"{name} over {over}: {error!r}")
        took = time.monotonic() - began
        if took > SOON:
            self.complaints.append(f"{name} over {over} took {took} s")
        self._busy = False


def inner_calls(log: zlog.Log, space: objects.Space, writer: zlog.Writer) -> dict[str, Call]:
    numbers = space.map("numbers")
    stream = log.stream("tag")
    return {
        "append": lambda: log.append(b"inner"),
        "get": lambda: numbers.get("x"),
        "put": lambda: numbers.put("x", 1),
        "tail": log.tail,
        "append of a stream": lambda: stream.append(b"inner"),
        "append of a writer": lambda: writer.append(b"inner"),
        "flush": writer.flush,
        "append_many": lambda: log.append_many([b"inner"] * 3),
        "local": lambda: space.local.map("numbers").get("x"),
        "add_and_get": space.counter("count").add_and_get,
        "read_range": lambda: next(log.read_range(0, 1), None),
    }


def test_call_does_not_wait_for_interrupted_call(memory: zlog.Store) -> None:
    """At the requests of each call of the API, as those are what calls wait for."""
    over = ""
    interrupting: Interrupting | None = None

    def interrupt(_number: int, _method: str) -> None:
        if interrupting is not None:
            interrupting(over)

    handles = blocking_handles(FaultyStore(memory, interrupt))
    (log,) = (each for each in handles if type(each) is zlog.Log)
    (space,) = (each for each in handles if type(each) is objects.Space)
    (writer,) = (each for each in handles if type(each) is zlog.Writer)
    inner = inner_calls(log, space, writer)
    outer = inner | dict(call for handle in handles for call in calls_of(handle))
    interrupting = Interrupting(inner)
    for over, call in outer.items():
        if not over.endswith(EXCEPT):
            with contextlib.suppress(Exception):
                call()
    assert not interrupting.complaints


EXCEPT = (
    ".__next__",
    ".campaign",
    "Lock.acquire",
    "Watch.call",
    "Writer.release",
    "Log.read_only",
    "Log.roll",
    "Log.writer",
)
"""Calls that wait by design, that appends defeat, or after which no other one appends."""


@pytest.fixture(params=["shared", "served"])
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, ...]]:
    """A log, a space and a writer, with the store's own sequencer or with one by TCP."""
    with contextlib.ExitStack() as stack:
        store: zlog.Store = stack.enter_context(zlog.connect(tmp_path))
        if request.param == "served":
            store = WithoutSequencer(store)
            stack.callback(LocalSequencer(store).stop)
        log = zlog.Log.create(store, "log", timeout=None)
        writer = zlog.Log.create(store, "exclusive", timeout=None).writer()
        yield log, objects.Space.open(log, "space"), writer


def test_signals_may_arrive_at_any_step(parts: tuple[Any, ...]) -> None:
    """Without time-outs: what waits for itself never ends."""
    calls = inner_calls(*parts)
    interrupting = Interrupting(dict([*calls.items()][:-1]))
    over = ""
    before = signal.signal(signal.SIGALRM, lambda *_: interrupting(over))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
    try:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            for over, call in calls.items():  # noqa: B007
                call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not interrupting.complaints
    assert interrupting.refused
    assert interrupting.done
