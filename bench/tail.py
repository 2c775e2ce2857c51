"""The benchmark ``bench tail``."""

from __future__ import annotations

import os
import time
from array import array
from functools import partial
from itertools import islice

import click

import zlog
from bench.measure import Ratio, Slice
from bench.options import Bench, log_options, size_option
from bench.read import ReadLoad, raw_reads
from bench.results import Report
from bench.testbed import Testbed
from bench.usage import own_cpu_seconds, own_memory_peak
from bench.workers import Begin, Worker
from zlog.cli.command import Command
from zlog.cli.units import human_bytes

_SETTLE_SECONDS = 0.05
"""The time for the follower to reach the tail and wait there before the first append."""

_ENTRIES = 1000
"""The number of entries from which the raw reads read."""


@click.command(
    cls=Command,
    examples="""
    python -m bench tail
    python -m bench --store ceph://logs tail --rate 1000 --size 1K
    """,
)
@size_option("100")
@click.option(
    "--rate",
    type=click.FloatRange(min=0.1),
    default=200.0,
    show_default=True,
    metavar="N",
    help="Entries that are appended per second, one after the other.",
)
@log_options
def tail(bench: Bench, size: int, rate: float, width: int, stripe_unit: int) -> Report:
    """Measure how soon a follower receives appended entries.

    The time runs from the acknowledgement of the append in the writer's process until the reader in
    another process has the entry. It is 0 if the reader was faster. It is compared with single raw
    reads of an entry from the same store, measured in turns. RATIO is the number of such reads that
    take the same time at p50.
    """
    load = f"{human_bytes(size)} entries, {rate:g} appended per second"
    title = f"{load}, width {width}, stripe unit {stripe_unit}"
    with bench.testbed() as testbed:
        if testbed.kind == "mem":
            raise click.UsageError(
                "a store in memory belongs to one process, so no other can follow"
            )
        log = testbed.enter(testbed.new_log(width, stripe_unit))
        followed = Followed(testbed, log, size, rate)
        bench.warm_up(followed.run)
        how = "from an append's acknowledgement to the entry in a follower's hands"
        candidate = testbed.load("follow", how, followed.run)
        latency = Ratio.LATENCY
        single = ReadLoad(size, _ENTRIES, 1, width, stripe_unit)
        limits = [
            *bench.with_class(testbed, lambda other: Followed(other, log, size, rate).run, latency),
            *raw_reads(testbed, single, 1, 1, 1, latency),
        ]
        return bench.measure(
            candidate,
            limits,
            title,
            size,
            size=size,
            rate=rate,
            width=width,
            stripe_unit=stripe_unit,
        )


class Followed:
    """Appends in this process, and has a reader in another process follow, in turns."""

    def __init__(self, testbed: Testbed, log: str, size: int, rate: float) -> None:
        self._rate = rate
        self._data = os.urandom(size)
        self._log = testbed.enter(zlog.Log.open(testbed.store, log, timeout=testbed.timeout))
        self._follower = testbed.enter(Worker(testbed.url, partial(Follower, log)))

    def run(self, seconds: float) -> Slice:
        """Append a few entries at regular intervals."""
        count = max(1, round(seconds * self._rate))
        before = own_cpu_seconds()
        self._follower.send((self._log.tail(), count))
        self._follower.wait_until_ready()
        self._follower.begin()
        time.sleep(_SETTLE_SECONDS)
        began = due = time.perf_counter()
        acknowledged = array("d")
        for _ in range(count):
            time.sleep(max(0.0, due - time.perf_counter()))
            self._log.append(self._data)
            acknowledged.append(time.perf_counter())
            due += 1 / self._rate
        took = time.perf_counter() - began
        seen = self._follower.result(seconds)
        latencies = (max(0.0, s - a) for s, a in zip(seen.latencies, acknowledged, strict=True))
        cpu = {"client": seen.cpu["client"] + own_cpu_seconds() - before}
        memory = seen.memory + own_memory_peak()
        return Slice(count, count, took, array("d", latencies), cpu, memory)


class Follower:
    """Follows a log in its own process.

    The latencies of its slices are the moments at which entries arrived, on ``time.perf_counter``.
    """

    def __init__(self, name: str, store: zlog.Store) -> None:
        self._log = zlog.Log.open(store, name)

    def __call__(self, begin: Begin, start: int, count: int) -> Slice:
        """Follow ``count`` entries from a position on."""
        began = begin()
        seen = array("d", (time.perf_counter() for _ in islice(self._log.follow(start), count)))
        return Slice(count, count, time.perf_counter() - began, seen)
