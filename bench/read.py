"""The benchmark ``bench read``."""

from __future__ import annotations

import random
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
    python -m bench read --tags 1000                    # those with one of a thousand tags
    python -m bench --store ceph://logs read --size 16K --entries 16384 --json
    """,
)
@size_option("100")
@number_option("--entries", 262144, 1, 1 << 27, "Entries to write before the measurement.")
@number_option("--batch", 1024, 1, 16384, "Entries per append.")
@tags_option
@compression_option
@log_options
def read(
    bench: Bench,
    size: int,
    entries: int,
    batch: int,
    tags: int,
    compression: str,
    width: int,
    stripe_unit: int,
) -> Report:
    """Measure how fast entries are read.

    Beside it stand the raw limits of the same store, measured in turns with it: plain librados
    reads of the same bytes from as many objects, or LMDB alone. RATIO is the
    part of each limit that was reached. The limits compress nothing. With --tags the same log
    stands beside it, read from its beginning to its end; both are counted as the entries that they
    go by, so RATIO says how many times as fast it is.
    """
    words = compression != "none"
    load = ReadLoad(size, entries, batch, width, stripe_unit, tags, compression, words)
    title = (
        f"range read of {human_bytes(size)}{f', one of {tags:,} tags' if tags else ''},"
        f" entries {entries}, batch {batch}, width {width}, stripe unit {stripe_unit}"
        f"{'' if compression == 'none' else f', {compression}'}"
    )
    with bench.testbed() as testbed:

        def reader_of(other: Testbed, load: ReadLoad) -> Reader:
            log = other.enter(other.new_log(width, stripe_unit, load.compression))
            return Reader(other, log, load)

        note(f"writing {entries} entries in {testbed.url}")
        reader = reader_of(testbed, load)
        bench.warm_up(reader.run)
        candidate = testbed.load("tagged read" if tags else "range read", reader.how, reader.run)
        limits = [*bench.with_class(testbed, lambda other: reader_of(other, load).run)]
        if load.words:
            plain = reader_of(testbed, replace(load, compression="none"))
            bench.warm_up(plain.run)
            limits.append(testbed.load("uncompressed", f"the same: {plain.how}", plain.run))
        if tags:
            limits.append(testbed.load("whole log", "read_range of the same log", reader.whole))
        else:
            window = min(max(width, round(reader.per_operation * width)), entries)
            limits += raw_reads(
                testbed, load, reader.per_operation, window, _RAW_READS_PER_OBJECT * width
            )
        return bench.measure(candidate, limits, title, size, **asdict(load))


@dataclass(frozen=True)
class ReadLoad:
    """A load of reads.

    Attributes:
        size: bytes of one entry.
        entries: that the log has.
        batch: entries that one append wrote.
        width: stripe objects of the log.
        stripe_unit: positions in a row in one of them.
        tags: of how many each entry has one; 0: none has any, and all entries are read.
        compression: of the log.
        words: whether entries are made of words, which compress.
    """

    size: int
    entries: int
    batch: int
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
        else:
            self.run = self._range
            self.per_operation = self._learn()
            self.how = (
                f"read_range; {self.per_operation:.0f} entries per read of a stripe object; a call"
                f" is {_STEP} entries"
            )

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
    testbed: Testbed,
    load: ReadLoad,
    per_operation: float,
    window: int,
    in_flight: int,
    compare: Ratio = Ratio.RATE,
) -> Iterator[Candidate]:
    """Give the limit that this kind of store has, with operations as large as the load's.

    Args:
        testbed, load: the load's.
        per_operation: entries that one read of an object brings.
        window: entries that one transaction of LMDB reads.
        in_flight: reads of objects at the same time.
        compare: how they are compared.
    """
    if testbed.kind == "ceph":
        size = max(1, round(per_operation * load.size))
        yield testbed.limit(
            "plain librados",
            f"reads of {size} bytes from {load.width} objects, {in_flight} in flight, counted as"
            f" {per_operation:.0f} entries each",
            "rados_reads",
            per_operation,
            compare,
            objects=load.width,
            size=size,
            bytes=load.size * load.entries,
            in_flight=in_flight,
        )
    if testbed.kind == "file":
        yield testbed.limit(
            "LMDB",
            f"LMDB alone in C++: {window} values after each other, copied out, in a transaction",
            "lmdb_scans",
            window,
            compare,
            size=load.size,
            entries=load.entries,
            window=window,
        )
