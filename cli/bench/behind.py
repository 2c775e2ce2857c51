"""Appending beside somebody who reads what is long written, as fast as it comes."""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection

import zlog
from zlog._read.iterate import WINDOW_BYTES, WINDOW_POSITIONS_MAX
from zlog.cli.bench.measure import Contender, Slice
from zlog.cli.bench.place import Place
from zlog.cli.bench.workload import Workload
from zlog.cli.bench.writers import Writers

BESIDE_READER = "beside a reader"
BESIDE_PLAIN_READS = "beside plain reads"

_STEP = 4096
"""Entries that the reader takes before it looks whether it is to stop."""

_NOTHING_YET_SECONDS = 0.001
_ANSWER_SECONDS = 60.0

_RAW_BYTES = 256 << 20
"""Data that is there for plain reads; whole objects of it, again and again."""


class Behind:
    """A process that goes through a log from its beginning, again and again, while it is told to.

    Use it as a context manager.

    Attributes:
        rates: entries per second that were read in each turn, by the contender's name; of plain
            reads as many as their bytes are.
    """

    def __init__(self, place: Place) -> None:
        self.rates: dict[str, list[float]] = {}
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_be_reader, args=(place.url, place.timeout, theirs), daemon=True
        )
        self._process.start()
        theirs.close()

    @contextmanager
    def reading(self, log: str) -> Iterator[None]:
        """Have it read a log for the length of a ``with`` block."""
        self._pipe.send(log)
        began = time.perf_counter()
        yield
        took = time.perf_counter() - began
        self._pipe.send(None)
        try:
            if not self._pipe.poll(_ANSWER_SECONDS):
                raise zlog.StoreTimeout("the benchmark's reader did not come to an end")
            entries = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise zlog.ZlogError("the benchmark's reader died") from None
        if isinstance(entries, zlog.ZlogError):
            raise entries
        self.rates.setdefault(BESIDE_READER, []).append(entries / took)

    def summary(self) -> str:
        """Return what was read beside the appends, in one line."""
        rates = ", ".join(
            f"{statistics.median(each):,.0f} entries/s {name}" for name, each in self.rates.items()
        )
        return f"read meanwhile: {rates}"

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        self._process.join()


def _be_reader(url: str, timeout: float | None, pipe: Connection) -> None:
    """Read one log after the other, each until told to stop; send how many entries, or an error."""
    try:
        with zlog.connect(url) as store:
            while True:
                try:
                    pipe.send(_read_until_told(store, pipe.recv(), timeout, pipe))
                except zlog.ZlogError as error:
                    pipe.send(error)
    except (EOFError, KeyboardInterrupt):
        pass  # the benchmark is over


def _read_until_told(store: zlog.Store, name: str, timeout: float | None, pipe: Connection) -> int:
    entries = 0
    with zlog.Log.open(store, name, timeout=timeout) as log:
        items = log.read_range()
        while not pipe.poll():
            taken = len(deque(islice(items, _STEP)))
            entries += taken
            if not taken:
                time.sleep(_NOTHING_YET_SECONDS)
            if taken < _STEP:
                items = log.read_range()
    pipe.recv()
    return entries


def beside_readers(
    place: Place, load: Workload, writers: Writers, behind: Behind
) -> Iterator[Contender]:
    """The same load beside a reader of the log, and beside plain reads of as large pieces."""

    def beside_log_reader(seconds: float) -> Slice:
        return writers.run(seconds, behind.reading)

    yield Contender(
        BESIDE_READER,
        "the same load, while another process goes through the log from its beginning, again and"
        " again",
        beside_log_reader,
    )
    if place.kind != "ceph":
        return
    size = min(WINDOW_BYTES, WINDOW_POSITIONS_MAX * load.size) // load.width
    in_flight = 2 * load.width

    def read(seconds: float) -> None:
        done = place.limits.measure(
            "rados_reads",
            size / load.size,
            seconds=seconds,
            order="range",
            objects=load.width,
            size=size,
            bytes=_RAW_BYTES,
            in_flight=in_flight,
        )
        behind.rates.setdefault(BESIDE_PLAIN_READS, []).append(done.rate)

    @contextmanager
    def reading(_: str) -> Iterator[None]:
        thread = threading.Thread(target=read, args=(turn,))
        thread.start()
        try:
            yield
        finally:
            thread.join()

    turn = 0.01

    def beside_plain_reader(seconds: float) -> Slice:
        nonlocal turn
        turn = seconds
        return writers.run(seconds, reading)

    read(turn)  # makes what is read
    behind.rates.clear()
    yield Contender(
        BESIDE_PLAIN_READS,
        f"the same load, while a C++ program reads {size} bytes at a time from {load.width} other"
        f" objects with plain librados, {in_flight} in flight",
        beside_plain_reader,
    )
