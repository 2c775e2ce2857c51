"""The benchmark ``bench append``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial

import click

import zlog
from zlog.cli.output import note
from zlog.cli.units import human_bytes
from zlog.cli.verb import Verb
from zlog.cli.verbs.bench import frames
from zlog.cli.verbs.bench.measure import ROUNDS, Contender, Slice, contest, one_after_the_other
from zlog.cli.verbs.bench.options import Bench, bench_options, count_option, size_option
from zlog.cli.verbs.bench.results import Report
from zlog.cli.verbs.bench.testbed import Testbed
from zlog.cli.verbs.bench.workload import Traffic, Workload
from zlog.cli.verbs.bench.writers import Writers

_KEY_BYTES_MAX = 32 << 10
"""Below this an operation's bytes are written as a key, from it on as data: what RADOS does best,
and what the object class does."""

_ONE_BY_ONE_DEPTH = 64
"""Appends in flight where each has an operation of its own, beside a load where they have not."""


@click.command(
    cls=Verb,
    examples="""
    zlog bench append                              # one entry after the other
    zlog bench append --batch 1024                 # batches
    zlog bench append --depth 4096                 # many concurrent appends of one program
    zlog bench append --depth 64 --alone           # each of them an operation of its own
    zlog --store ceph://logs bench append --size 16K --batch 256 --writers 4 --seconds 20
    """,
)
@size_option("100")
@count_option("--batch", 1, 16384, "Entries that one call appends.")
@count_option("--depth", 1, 65536, "Calls that each writer has in flight.")
@count_option("--writers", 1, 64, "Processes that append at the same time.")
@click.option(
    "--alone",
    is_flag=True,
    help="Calls in flight don't travel together: each has operations of its own.",
)
@bench_options(5.0)
def append(bench: Bench, size: int, batch: int, depth: int, writers: int, alone: bool) -> None:
    """Measure how fast entries are appended, durably.

    Beside it stand the raw limits of the same store, measured in turns with it and with as much in
    flight: the same operations of the object class sent by a C++ program; calls of the class that
    write nothing; plain librados writes of the same bytes, or LMDB alone, or a plain file that is
    appended to and synced. RATIO is the part of each limit that was reached. Where entries travel
    together, what they would reach each on its own stands there too.
    """
    load = Workload(size, batch, writers, depth, bench.width, alone)
    with ExitStack() as stack:
        testbed = stack.enter_context(bench.testbed())
        if writers > 1 and testbed.kind == "mem":
            raise click.UsageError("mem:// is one process's memory: it has only one writer")
        running = stack.enter_context(Writers(testbed, load))
        note(f"warming up in {testbed.url}")
        running.run(bench.seconds / ROUNDS / 2)
        note(f"appending and measuring the limits, {bench.seconds:g} s each")
        contender = Contender("append", _how(load, running.traffic), running.run)
        limits = [*stack.enter_context(_Limits(testbed, load, running.traffic)).contenders()]
        if running.traffic.batch > 1:
            one_by_one = Workload(size, 1, 1, _ONE_BY_ONE_DEPTH, bench.width, alone=True)
            others = stack.enter_context(Writers(testbed, one_by_one))
            others.run(bench.seconds / ROUNDS / 2)
            how = f"the same log with {_how(one_by_one, others.traffic)}"
            limits.append(Contender("one by one", how, others.run))
        measured = contest(contender, limits, bench.seconds, size)
        title = (
            f"append of {human_bytes(size)}, batch {batch}, depth {depth}"
            f"{', alone' if alone else ''}, writers {writers}, width {bench.width}, on {bench.url}"
        )
        workload = bench.workload(**asdict(load))
    bench.show(Report("append", title, workload, measured))


def _how(load: Workload, traffic: Traffic) -> str:
    if load.depth == 1:
        call = "append, one after the other" if load.batch == 1 else "append_many, one by one"
    elif load.batch == 1 and not load.alone:
        call = f"{load.depth} concurrent appends of one event loop"
    else:
        call = f"{load.depth} concurrent append_many of one event loop"
    return f"{call}; {traffic.per_operation:.1f} entries per write to a stripe object"


class _Limits:
    """The limits of appending, as traffic of the load's kind meets them."""

    def __init__(self, testbed: Testbed, load: Workload, traffic: Traffic) -> None:
        self._testbed = testbed
        self._load = load
        self._traffic = traffic
        self._limit = testbed.limits.contender
        self._stack = ExitStack()

    def __enter__(self) -> _Limits:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def contenders(self) -> Iterator[Contender]:
        """Give the limits that this kind of store has."""
        yield self._class_writes()
        if self._load.in_flight == 1 and self._testbed.kind == "ceph":
            yield from self._with_round_trip()
        yield self._class_calls()
        if self._testbed.kind == "ceph":
            yield self._librados()
        if self._testbed.kind == "file":
            yield from self._lmdb()
            yield self._file()

    def _class_writes(self) -> Contender:
        traffic = self._traffic
        return self._limit(
            "class writes",
            f"a C++ program that sends the same operations, for batches of {traffic.batch},"
            f" {traffic.lanes} in flight, at positions of its own",
            "class_writes",
            traffic.batch,
            objects=traffic.width,
            size=self._load.size,
            batch=traffic.batch,
            in_flight=traffic.lanes,
        )

    def _class_calls(self) -> Contender:
        traffic = self._traffic
        return self._limit(
            "class calls",
            f"a class method that writes nothing, {traffic.operations} in flight, counted as"
            f" {traffic.per_operation:.1f} entries each",
            "class_calls",
            traffic.per_operation,
            objects=traffic.width,
            in_flight=traffic.operations,
        )

    def _with_round_trip(self) -> Iterator[Contender]:
        """One write after the other, each with a round trip to the sequencer, from C++."""
        testbed = self._testbed
        log = self._stack.enter_context(testbed.new_log(self._load.width))
        with zlog.Log.open(testbed.store, log) as opened:
            opened.append(b"")  # now the view names the sequencer
            address = opened.view.sequencer
        if not address:
            return
        write = self._class_writes()
        greeting = frames.to_sequencer(testbed.store, log, address)

        def run(seconds: float) -> Slice:
            ask = partial(testbed.limits.measure, "frames", 1, connections=1, depth=1, **greeting)
            return one_after_the_other(write.run(seconds * 0.75), ask(seconds=seconds * 0.25))

        how = "a class write and a round trip to the sequencer, from C++, one after the other"
        yield Contender("position + write", how, run)

    def _librados(self) -> Contender:
        traffic = self._traffic
        size = max(1, round(self._load.size * traffic.per_operation))
        keys = size < _KEY_BYTES_MAX
        what = "a new key" if keys else "data at the end of an object"
        return self._limit(
            "plain librados",
            f"{size} bytes as {what}, {traffic.operations} in flight, counted as"
            f" {traffic.per_operation:.1f} entries each",
            "rados_keys" if keys else "rados_appends",
            traffic.per_operation,
            objects=traffic.width,
            size=size,
            in_flight=traffic.operations,
        )

    def _lmdb(self) -> Iterator[Contender]:
        load, traffic = self._load, self._traffic
        yield self._limit(
            "LMDB, entries",
            f"LMDB alone in C++, {load.in_flight} keys per synced transaction, an entry each",
            "lmdb_puts",
            load.in_flight,
            keys=load.in_flight,
            size=load.size,
        )
        if traffic.per_operation < 1.5:
            return
        size = max(1, round(load.size * load.in_flight / traffic.operations))
        yield self._limit(
            "LMDB, records",
            f"LMDB alone in C++, {traffic.operations} keys per synced transaction,"
            f" {load.in_flight / traffic.operations:.1f} entries each",
            "lmdb_puts",
            load.in_flight,
            keys=traffic.operations,
            size=size,
        )

    def _file(self) -> Contender:
        entries = self._load.in_flight
        return self._limit(
            "plain file",
            f"write and fdatasync on a plain file, {entries} entries at a time",
            "file_syncs",
            entries,
            size=self._load.size * entries,
        )
