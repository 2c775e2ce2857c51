"""The benchmark ``bench read``."""

from __future__ import annotations

import asyncio
import random
import time
from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count, islice
from typing import Any

import click

import zlog
from bench.entries import entries_of
from bench.measure import Candidate, Ratio, Slice, repeat
from bench.options import (
    Bench,
    compression_option,
    log_options,
    size_option,
    tags_option,
)
from bench.results import Report
from bench.testbed import Testbed
from zlog import aio
from zlog.cli.command import Command
from zlog.cli.output import note
from zlog.cli.parameters import number_option
from zlog.cli.units import human_bytes

_STEP = 1024
"""The number of entries that a range reader counts as one call."""

_RAW_READS_PER_OBJECT = 2
"""Plain reads in flight per object during a range read: one arriving, and one on its way."""


@click.command(
    cls=Command,
    examples="""
    python -m bench read                                # a range, from its beginning to its end
    python -m bench read --order random --depth 64
    python -m bench read --tags 1000                    # those with one of a thousand tags
    python -m bench --store ceph://logs read --size 16K --entries 16384 --json
    """,
)
@click.option(
    "--order",
    type=click.Choice(["range", "random"]),
    default="range",
    show_default=True,
    help="Read a range, or single positions at random.",
)
@size_option("100")
@number_option("--entries", 262144, 1, 1 << 27, "Entries to write before the measurement.")
@number_option("--batch", 1024, 1, 16384, "Entries per append.")
@number_option("--depth", 1, 1, 4096, "Random reads in flight.")
@tags_option
@compression_option
@log_options
def read(
    bench: Bench,
    order: str,
    size: int,
    entries: int,
    batch: int,
    depth: int,
    tags: int,
    compression: str,
    width: int,
    stripe_unit: int,
) -> Report:
    """Measure how fast entries are read.

    The benchmark compares the load with raw limits of the same store, measured in turns: plain
    librados reads of the same bytes from as many objects, or LMDB alone, and the same operations of
    the object class sent by a C++ program. RATIO is the part of each limit that the load reaches.
    The limits compress nothing. With --tags, the load is compared with a read of the whole log. For
    both, all entries in the range that they cover are counted, so RATIO is the speedup.
    """
    if order == "range" and depth > 1:
        raise click.UsageError(
            "--depth needs --order random, because a range has its own read-ahead"
        )
    if tags and order != "range":
        raise click.UsageError("--tags cannot be combined with --order random")
    words = compression != "none"
    load = ReadLoad(
        order, size, entries, batch, depth, width, stripe_unit, tags, compression, words
    )
    title = (
        f"{order} read of {human_bytes(size)}{f', one of {tags:,} tags' if tags else ''},"
        f" entries {entries}, batch {batch}, depth {depth},"
        f" width {width}, stripe unit {stripe_unit}"
        f"{'' if compression == 'none' else f', {compression}'}"
    )
    with bench.testbed() as testbed:

        def reader_of(other: Testbed, load: ReadLoad) -> Reader:
            log = other.enter(other.new_log(width, stripe_unit, load.compression))
            return Reader(other, log, load)

        note(f"writing {entries} entries in {testbed.url}")
        reader = reader_of(testbed, load)
        bench.warm_up(reader.run)
        candidate = testbed.load("tagged read" if tags else f"{order} read", reader.how, reader.run)
        limits = [*bench.with_class(testbed, lambda other: reader_of(other, load))]
        if load.words:
            plain = reader_of(testbed, replace(load, compression="none"))
            bench.warm_up(plain.run)
            limits.append(testbed.load("uncompressed", f"the same: {plain.how}", plain.run))
        if tags:
            limits.append(testbed.load("whole log", "read_range of the same log", reader.whole))
        else:
            limits += raw_reads(testbed, load, reader.per_operation)
        return bench.measure(candidate, limits, title, size, **asdict(load))


@dataclass(frozen=True)
class ReadLoad:
    """A load of reads.

    Attributes:
        order: ``range`` or ``random``.
        size: the size of an entry in bytes.
        entries: the number of entries in the log.
        batch: the number of entries per append.
        depth: the number of random reads in flight.
        width: the number of stripe objects of the log.
        stripe_unit: the stripe unit of the log.
        tags: the number of tags from which each entry has one. With 0, entries have no tags, and
            all are read.
        compression: the compression of the log.
        words: whether entries consist of words, which compress.
    """

    order: str
    size: int
    entries: int
    batch: int
    depth: int
    width: int
    stripe_unit: int
    tags: int = 0
    compression: str = "none"
    words: bool = False


class Reader:
    """Writes a log and reads it.

    Attributes:
        how: what it does, in one sentence.
        per_operation: the average number of entries that one read of an object returns.
        run: reads for a while.
        whole: reads all entries for a while, whatever the load is.
    """

    def __init__(self, testbed: Testbed, log: str, load: ReadLoad) -> None:
        self._testbed = testbed
        self._name = log
        self._load = load
        self._random = random.Random(1)
        self._log = testbed.enter(zlog.Log.open(testbed.store, log, timeout=testbed.timeout))
        batch = entries_of(load.size, load.batch, words=load.words)
        for left in range(load.entries, 0, -load.batch):
            each = [self._tag() for _ in batch[:left]] if load.tags else None
            self._log.append_many(batch[:left], tags_each=each)
        self.per_operation = 1.0
        self.whole = self._range
        if load.tags:
            self.run = self._tagged
            self.how = (
                f"read_range of one tag; about {load.entries / load.tags:.0f} of {load.entries}"
                " entries have it, and all of them are counted, since it goes by the others"
            )
        elif load.order == "range":
            self.run = self._range
            self.per_operation = self._learn()
            self.how = (
                f"read_range; {self.per_operation:.0f} entries per read of a stripe object; a call"
                f" is {_STEP} entries"
            )
        elif load.depth == 1:
            self.run = lambda seconds: repeat(self._one, seconds)
            self.how = "read, one position after the other, anywhere"
        else:
            self.run = lambda seconds: asyncio.run(self._concurrently(seconds))
            self.how = f"{load.depth} concurrent reads of one event loop, anywhere"

    def _learn(self) -> float:
        """Read everything once, and count the entries per read of an object."""
        counting: Any = _Counting(self._testbed.store)
        with zlog.Log.open(counting, self._name, timeout=self._testbed.timeout) as log:
            found = sum(1 for _ in log.read_range(0, self._load.entries))
        return found / max(1, int(counting.reads))

    def _range(self, seconds: float) -> Slice:
        """Read the whole log repeatedly."""
        items = self._log.read_range(0, self._load.entries)

        def call() -> int:
            nonlocal items
            taken, last = _take(items, _STEP)
            if taken and not isinstance(last, zlog.Entry):
                raise zlog.CorruptEntry(f"the log has a gap: {last}")
            if taken < _STEP:
                items = self._log.read_range(0, self._load.entries)
            return taken

        return repeat(call, seconds)

    def _tag(self) -> tuple[str]:
        return (f"tag-{self._random.randrange(self._load.tags)}",)

    def _tagged(self, seconds: float) -> Slice:
        """Read the entries of one tag after another."""

        def call() -> int:
            deque(self._log.read_range(0, self._load.entries, tags=self._tag()), maxlen=0)
            return self._load.entries

        return repeat(call, seconds)

    def _anywhere(self) -> int:
        return self._random.randrange(self._load.entries)

    def _one(self) -> int:
        self._log.read(self._anywhere())
        return 1

    async def _concurrently(self, seconds: float) -> Slice:
        latencies = array("d")

        async def reads(log: aio.Log, until: float) -> None:
            now = time.perf_counter()
            while now < until:
                await log.read(self._anywhere())
                before, now = now, time.perf_counter()
                latencies.append(now - before)

        testbed = self._testbed
        async with await aio.Log.open(testbed.store, self._name, timeout=testbed.timeout) as log:
            began = time.perf_counter()
            await asyncio.gather(*(reads(log, began + seconds) for _ in range(self._load.depth)))
            took = time.perf_counter() - began
        return Slice(len(latencies), len(latencies), took, latencies)


class _Counting:
    """A store that counts the operations that it passes on to another one."""

    def __init__(self, store: zlog.Store) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def execute(self, object: str, method: str, *rest: Any, **others: Any) -> Any:
        self.reads += method == "read"
        return self._store.execute(object, method, *rest, **others)

    def submit(self, queue: Any, token: int, calls: Any) -> Any:
        self.reads += sum(method == "read" for _, method, _ in calls)
        return self._store.submit(queue, token, calls)


def _take(items: Iterator[zlog.Entry | zlog.Gap], most: int) -> tuple[int, object]:
    """Take some entries and drop them. Returns their number, and the last one."""
    for number, item in deque(zip(count(1), islice(items, most)), maxlen=1):
        return number, item
    return 0, None


def raw_reads(
    testbed: Testbed, load: ReadLoad, per_operation: float, compare: Ratio = Ratio.RATE
) -> Iterator[Candidate]:
    """Add the limits for this kind of store, with operations of the same size as the load's."""
    ranges = load.order == "range"
    window = min(max(load.width, round(per_operation * load.width)), load.entries) if ranges else 1
    if testbed.kind == "ceph":
        size = max(1, round(per_operation * load.size))
        in_flight = _RAW_READS_PER_OBJECT * load.width if ranges else load.depth
        yield testbed.limit(
            "plain librados",
            f"reads of {size} bytes from {load.width} objects, {in_flight} in flight, counted as"
            f" {per_operation:.0f} entries each",
            "rados_reads",
            per_operation,
            compare,
            order=load.order,
            objects=load.width,
            size=size,
            bytes=load.size * load.entries,
            in_flight=in_flight,
        )
    if testbed.kind == "file":
        values = f"{window} values after each other" if ranges else "one value anywhere"
        yield testbed.limit(
            "LMDB",
            f"LMDB alone in C++: {values}, copied out, in a transaction of its own",
            "lmdb_scans" if ranges else "lmdb_gets",
            window,
            compare,
            size=load.size,
            entries=load.entries,
            window=window,
        )
    if not testbed.has_class:
        return
    in_flight = _RAW_READS_PER_OBJECT if ranges else load.depth
    yield testbed.limit(
        "class reads",
        f"a C++ program that sends the same operations, for batches of {window},"
        f" {in_flight} in flight, and checks every entry",
        "class_reads",
        window,
        compare,
        objects=load.width,
        stripe_unit=load.stripe_unit,
        size=load.size,
        batch=load.batch,
        entries=load.entries,
        window=window,
        in_flight=in_flight,
    )
