"""The benchmark ``bench growth``."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import click

import zlog
from bench.measure import Ratio, Slice, repeat
from bench.options import Bench, bench_options, size_option
from bench.results import Report
from bench.testbed import Testbed
from zlog._base.deadline import Deadline
from zlog._io import BlockingIo, drive
from zlog._layout.views import change_view
from zlog.cli.command import Command
from zlog.cli.parameters import number_option

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
    ("take over", SizedLog.take_over, Ratio.LATENCY),
)
"""The order matters: a log that was taken over for an absent sequencer accepts no appends."""


@click.command(
    cls=Command,
    examples="""
    python -m bench growth
    python -m bench --store ceph://logs growth --small 10000 --large 10000000
    """,
)
@number_option("--small", 1000, 1, 1 << 27, "Entries of the small log.")
@number_option("--large", 100_000, 1, 1 << 27, "Entries of the large log.")
@size_option("100")
@bench_options
def growth(bench: Bench, small: int, large: int, size: int) -> list[Report]:
    """Measure whether a log gets slower as it grows.

    A large log is compared with a small one, in turns: opening it, appending at its end, and a
    sequencer's take-over (a new epoch, all stripe objects sealed, a new view).
    """
    workload = {"small": small, "large": large, "size": size, "width": WIDTH}
    reports = []
    with bench.testbed() as testbed:
        logs = [testbed.enter(SizedLog(testbed, count, size)) for count in (large, small)]
        for what, run, compare in _MEASURES:
            timed = compare is Ratio.LATENCY
            load, *limits = (
                testbed.load(f"{what}, {log.count}", run.__doc__ or "", partial(run, log), compare)
                for log in logs
            )
            title = f"{what}: a log of {large} entries of {size} B against one of {small}"
            reports.append(bench.measure(load, limits, title, 0 if timed else size, **workload))
    return reports
