"""A log with a certain number of entries, and what can be measured at it."""

from __future__ import annotations

import os
import time
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice

import zlog
from zlog._base.deadline import Deadline
from zlog._base.io import BlockingIo, drive
from zlog._layout.views import change_view
from zlog.cli.bench.measure import Slice
from zlog.cli.bench.place import Place, cpu_between

BATCH = 1024

_NOBODY = "tcp://nobody.invalid:1"

_GROWTH_MAX = 2
"""By how much a log may grow while it is measured, before a new one takes its place."""

_APPEND_BATCHES_MIN = 4


class SizedLog:
    """A log of ``count`` entries. Use it as a context manager."""

    def __init__(self, place: Place, count: int, size: int, width: int) -> None:
        self.count = count
        self._place = place
        self._width = width
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
        """Log.open, by a handle that knows nothing yet."""

        def call() -> int:
            zlog.Log.open(self._place.store, self._name, timeout=self._place.timeout).close()
            return 1

        return self._repeat(seconds, call)

    def take_over(self, seconds: float) -> Slice:
        """What a sequencer does at its start: new epoch, every object sealed, new view."""
        io = BlockingIo(self._place.store)

        def edit(view: zlog.View) -> zlog.View:
            return replace(view, sequencer=_NOBODY)

        def call() -> int:
            drive(change_view(io, self._name, edit, Deadline(self._place.timeout)))
            return 1

        return self._repeat(seconds, call)

    def append(self, seconds: float) -> Slice:
        """append_many of 1024 entries, one by one."""
        if self._tail > _GROWTH_MAX * self.count + _APPEND_BATCHES_MIN * BATCH:
            self._make()
        with zlog.Log.open(self._place.store, self._name, timeout=self._place.timeout) as log:

            def call() -> int:
                self._tail = log.append_many(self._batch)[-1] + 1
                return BATCH

            call()  # the view may have to be looked up first
            return self._repeat(seconds, call)

    def read(self, seconds: float) -> Slice:
        """read_range over the whole log; a call is 1024 entries."""
        with zlog.Log.open(self._place.store, self._name, timeout=self._place.timeout) as log:
            items = log.read_range(0, self.count)

            def call() -> int:
                nonlocal items
                step = len(deque(islice(items, BATCH)))
                if step < BATCH:
                    items = log.read_range(0, self.count)
                return step

            return self._repeat(seconds, call)

    def _make(self) -> None:
        """Make the log anew.

        The one before stays until the end: in the room of a removed log, an embedded store writes
        faster than where it has to grow.
        """
        self._name = self._stack.enter_context(self._place.new_log(self._width))
        with zlog.Log.open(self._place.store, self._name, timeout=self._place.timeout) as log:
            for left in range(self.count, 0, -BATCH):
                log.append_many(self._batch[:left])
        self._tail = self.count

    def _repeat(self, seconds: float, call: Callable[[], int]) -> Slice:
        latencies = array("d")
        entries = 0
        before = self._place.cpu()
        now = began = time.perf_counter()
        while now < began + seconds:
            entries += call()
            then, now = now, time.perf_counter()
            latencies.append(now - then)
        used = cpu_between(before, self._place.cpu())
        return Slice(len(latencies), entries, now - began, latencies, used)
