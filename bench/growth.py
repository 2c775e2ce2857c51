"""Does a log get slower as it grows? ``python -m bench.growth --store URL``.

The benchmark measures a small and a large log in turns: the time to open the log, the time in which
a sequencer takes it over (new epoch, seal of all stripe objects, new view), and the rates of
appends at the end and of range reads. A ratio compares the large log with the small one, and with
single calls of the object class from C++.
"""

from __future__ import annotations

import argparse
import os
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice

import zlog
from bench.measure import Ratio, Slice, in_turns, repeat
from bench.results import Report, show
from bench.testbed import Testbed, new_testbed
from zlog._base.deadline import Deadline
from zlog._io import BlockingIo, drive
from zlog._layout.views import change_view
from zlog.cli.session import Session

BATCH = 1024
WIDTH = 8

_NOBODY = "tcp://nobody.invalid:1"

_GROWTH_MAX = 2
"""The growth after which a log is replaced by a new one during the measurement."""

_APPEND_BATCHES_MIN = 4


class SizedLog:
    """A log of ``count`` entries, as a context manager."""

    def __init__(self, testbed: Testbed, count: int, size: int) -> None:
        self.count = count
        self._testbed = testbed
        self._batch = [os.urandom(size) for _ in range(BATCH)]
        self._stack = ExitStack()
        self._name = ""
        self._tail = 0

    def __enter__(self) -> SizedLog:
        self._make()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def open(self, seconds: float) -> Slice:
        """Open the log with a handle that has nothing cached."""

        def call() -> int:
            self._open().close()
            return 1

        return repeat(call, seconds)

    def take_over(self, seconds: float) -> Slice:
        """Take the log over as a sequencer does: new epoch, seal of every object, new view."""
        io = BlockingIo(self._testbed.store)

        def edit(view: zlog.View) -> zlog.View:
            return replace(view, sequencer=_NOBODY)

        def call() -> int:
            drive(change_view(io, self._name, edit, Deadline(self._testbed.timeout)))
            return 1

        return repeat(call, seconds)

    def append(self, seconds: float) -> Slice:
        """Append with append_many, 1024 entries per call, one call after another."""
        if self._tail > _GROWTH_MAX * self.count + _APPEND_BATCHES_MIN * BATCH:
            self._make()
        with self._open() as log:

            def call() -> int:
                self._tail = log.append_many(self._batch)[-1] + 1
                return BATCH

            call()  # the first call may have to read the view
            return repeat(call, seconds)

    def read(self, seconds: float) -> Slice:
        """Read the whole log with read_range, and count 1024 entries as a call."""
        with self._open() as log:
            items = log.read_range(0, self.count)

            def call() -> int:
                nonlocal items
                step = len(deque(islice(items, BATCH)))
                if step < BATCH:
                    items = log.read_range(0, self.count)
                return step

            return repeat(call, seconds)

    def _open(self) -> zlog.Log:
        return zlog.Log.open(self._testbed.store, self._name, timeout=self._testbed.timeout)

    def _make(self) -> None:
        """Create the log again.

        The previous log is kept until the end, because an embedded store writes faster into the
        space of a removed log than into new space.
        """
        self._name = self._stack.enter_context(self._testbed.new_log(WIDTH))
        with self._open() as log:
            for left in range(self.count, 0, -BATCH):
                log.append_many(self._batch[:left])
        self._tail = self.count


_MEASURES = (
    ("open", SizedLog.open, Ratio.LATENCY),
    ("append", SizedLog.append, Ratio.RATE),
    ("read", SizedLog.read, Ratio.RATE),
    ("take over", SizedLog.take_over, Ratio.LATENCY),
)
"""The order matters: a log that was taken over for an absent sequencer accepts no appends."""


def measure(url: str, small: int, large: int, size: int, seconds: float) -> Iterator[Report]:
    """Measure both logs in a store, for the given number of seconds per kind of call."""
    workload = {"small": small, "large": large, "size": size, "width": WIDTH, "store": url}
    title = f"a log of {large} entries of {size} B against one of {small}, on {url}"
    with ExitStack() as stack:
        testbed = stack.enter_context(new_testbed(Session(url)))
        logs = [stack.enter_context(SizedLog(testbed, count, size)) for count in (large, small)]
        class_call = testbed.limit(
            "class call",
            "a call of a class method that writes nothing, one after the other, from C++",
            "class_calls",
            compare=Ratio.LATENCY,
            objects=WIDTH,
            in_flight=1,
        )
        for what, run, compare in _MEASURES:
            timed = compare is Ratio.LATENCY
            load, *limits = (
                testbed.load(f"{what}, {log.count}", run.__doc__ or "", partial(run, log), compare)
                for log in logs
            )
            if timed:
                limits.append(class_call)
            measured = in_turns(load, limits, seconds, 0 if timed else size)
            yield Report("growth", f"{what}: {title}", workload, measured)


def main() -> None:
    """Measure a store, and print a table or a JSON object for each kind of call."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--store", required=True, help="URL of the store")
    parser.add_argument("--small", type=int, default=1000, help="entries (%(default)s)")
    parser.add_argument("--large", type=int, default=100_000, help="entries (%(default)s)")
    parser.add_argument("--size", type=int, default=100, help="bytes of an entry (%(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="time per load (%(default)g)")
    parser.add_argument("--json", action="store_true", help="print JSON objects")
    given = parser.parse_args()
    reports = measure(given.store, given.small, given.large, given.size, given.seconds)
    show([*reports], as_json=given.json)


if __name__ == "__main__":
    main()
