"""The benchmark ``bench append``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

import click

import zlog
from bench.echo import ask_sequencer
from bench.measure import Candidate, Slice, one_after_the_other
from bench.options import (
    Bench,
    compression_option,
    log_options,
    size_option,
    tags_option,
)
from bench.results import Report
from bench.testbed import Testbed
from bench.writers import Traffic, Workload, Writers
from zlog.cli.command import Command
from zlog.cli.output import note
from zlog.cli.parameters import number_option
from zlog.cli.units import human_bytes

_KEY_BYTES_MAX = 32 << 10
"""Data of at least this size is written as an object's data, smaller data as a key. This is the
fastest way in RADOS, and the object class does the same."""

_ONE_BY_ONE_DEPTH = 64
"""Appends in flight in the comparison in which each append is an operation of its own."""


@click.command(
    cls=Command,
    examples="""
    python -m bench append                              # one entry after the other
    python -m bench append --batch 1024                 # batches
    python -m bench append --depth 4096                 # many concurrent appends of one program
    python -m bench append --depth 64 --through threads  # compared with tasks
    python -m bench append --exclusive                  # beside a log that any client appends to
    python -m bench append --conditional                # at an object that checks a condition
    python -m bench append --batch 1024 --compression zstd
    python -m bench --store ceph://logs append --size 16K --batch 256 --writers 4 --seconds 20
    """,
)
@size_option("100")
@number_option("--batch", 1, 1, 16384, "Entries per call.")
@tags_option
@number_option("--depth", 1, 1, 65536, "Calls in flight per writer.")
@number_option("--writers", 1, 1, 64, "Processes that append.")
@click.option(
    "--through",
    type=click.Choice(["tasks", "threads", "submit"]),
    default="tasks",
    show_default=True,
    help="Keep --depth entries in flight by tasks of an event loop, by threads, or by one task that"
    " calls submit. The latter two are compared with tasks.",
)
@click.option(
    "--exclusive",
    is_flag=True,
    help="Append as the log's exclusive writer, without a sequencer, compared with a shared log.",
)
@click.option(
    "--conditional",
    is_flag=True,
    help="Append to a log that is ordered by its object, each time with a condition that holds.",
)
@compression_option
@log_options
def append(
    bench: Bench,
    size: int,
    batch: int,
    tags: int,
    depth: int,
    writers: int,
    through: str,
    exclusive: bool,
    conditional: bool,
    compression: str,
    width: int,
    stripe_unit: int,
) -> Report:
    """Measure how fast entries are appended durably.

    Beside it stand the raw limits of the same store, measured in turns with it and with as much in
    flight: the same operations of the object class sent by a C++ program; calls of the class that
    write nothing; plain librados writes of the same bytes, or LMDB alone. RATIO is the part of each
    limit that was reached. Where entries travel together, what they would reach each on its own
    stands there too. The limits compress nothing.
    """
    if exclusive and writers > 1:
        raise click.UsageError("--exclusive excludes more than one of --writers")
    if conditional and (exclusive or batch > 1 or tags or through == "submit"):
        raise click.UsageError(
            "--conditional excludes --exclusive, --batch, --tags and --through submit"
        )
    if conditional:
        width = 1
    if through != "tasks" and (batch > 1 or tags):
        raise click.UsageError(f"--through {through} excludes --batch and --tags")
    words = compression != "none"
    load = Workload(
        size,
        batch,
        writers,
        depth,
        width,
        stripe_unit,
        exclusive=exclusive,
        tags=tags,
        compression=compression,
        words=words,
        through=through,
        conditional=conditional,
    )
    title = (
        f"append of {human_bytes(size)}, batch {batch}, depth {depth}"
        f"{f', one of {tags:,} tags' if tags else ''}{', conditional' if conditional else ''}"
        f", {'exclusive, ' if exclusive else ''}writers {writers},"
        f" width {width}, stripe unit {stripe_unit}"
        f"{'' if compression == 'none' else f', {compression}'}"
    )
    with bench.testbed() as testbed:
        if writers > 1 and testbed.kind == "mem":
            raise click.UsageError(
                "a store in memory belongs to one process, so it has only one writer"
            )
        note(f"warming up in {testbed.url}")
        running = testbed.enter(Writers(testbed, load))
        bench.warm_up(running.run)
        traffic = running.traffic
        if load.words:
            plain = testbed.enter(Writers(testbed, replace(load, compression="none")))
            bench.warm_up(plain.run)
            traffic = plain.traffic  # a compressed write may have several records
        how = _how(load, traffic)
        candidate = testbed.load("append", how, running.run)
        limits = [*bench.with_class(testbed, lambda other: other.enter(Writers(other, load)).run)]
        if exclusive:
            limits.append(_beside(bench, testbed, "shared", replace(load, exclusive=False)))
        if through != "tasks":
            limits.append(_beside(bench, testbed, "tasks", replace(load, through="tasks")))
        if load.words:
            limits.append(testbed.load("uncompressed", f"without compression: {how}", plain.run))
        if tags:
            limits.append(_beside(bench, testbed, "without tags", replace(load, tags=0)))
        limits += _limits(testbed, load, traffic)
        if traffic.batch > 1:
            one_by_one = Workload(size, 1, 1, _ONE_BY_ONE_DEPTH, width, stripe_unit, alone=True)
            limits.append(_beside(bench, testbed, "one by one", one_by_one))
        return bench.measure(candidate, limits, title, size, **asdict(load))


def _beside(bench: Bench, testbed: Testbed, name: str, load: Workload) -> Candidate:
    """Add another load of the same log, which is measured in turns with the first."""
    running = testbed.enter(Writers(testbed, load))
    bench.warm_up(running.run)
    return testbed.load(name, f"the same log with {_how(load, running.traffic)}", running.run)


def _how(load: Workload, traffic: Traffic) -> str:
    if load.depth == 1:
        call = "append, one after the other" if load.batch == 1 else "append_many, one by one"
    elif load.through != "tasks":
        by = "threads" if load.through == "threads" else "submitted by one task"
        call = f"{load.depth} concurrent appends, {by}"
    elif load.batch == 1 and not load.alone:
        call = f"{load.depth} concurrent appends of one event loop"
    else:
        call = f"{load.depth} concurrent append_many of one event loop"
    return f"{call}; {traffic.per_operation:.1f} entries per write to a stripe object"


def _limits(testbed: Testbed, load: Workload, traffic: Traffic) -> Iterator[Candidate]:
    """Add the limits that apply to this kind of store and load."""
    if testbed.has_class:
        yield from _class_limits(testbed, load, traffic)
    if testbed.kind == "ceph":
        yield _librados(testbed, load, traffic)
    if testbed.kind == "file":
        yield _lmdb(testbed, load)


def _class_limits(testbed: Testbed, load: Workload, traffic: Traffic) -> Iterator[Candidate]:
    class_writes = testbed.limit(
        "class writes",
        f"a C++ program that sends the same operations, for batches of {traffic.batch},"
        f" {traffic.lanes} in flight, at positions of its own",
        "class_writes",
        traffic.batch,
        objects=traffic.width,
        stripe_unit=traffic.stripe_unit,
        size=load.size,
        batch=traffic.batch,
        in_flight=traffic.lanes,
    )
    yield class_writes
    if load.in_flight == 1 and testbed.kind == "ceph" and not load.exclusive:
        yield from _with_round_trip(testbed, class_writes)
    yield testbed.limit(
        "class calls",
        f"a class method that writes nothing, {traffic.operations} in flight, counted as"
        f" {traffic.per_operation:.1f} entries each",
        "class_calls",
        traffic.per_operation,
        objects=traffic.width,
        stripe_unit=traffic.stripe_unit,
        in_flight=traffic.operations,
    )


def _with_round_trip(testbed: Testbed, class_writes: Candidate) -> Iterator[Candidate]:
    """Add single writes in sequence from C++, each after a request to the sequencer."""
    log = testbed.enter(testbed.new_log(1))
    with zlog.Log.open(testbed.store, log, timeout=testbed.timeout) as opened:
        opened.append(b"")  # after this, the view names the sequencer
        address = opened.view.sequencer
    greeting = ask_sequencer(testbed.store, log, address)
    round_trip = testbed.limit("", "", "frames", connections=1, depth=1, **greeting)

    def run(seconds: float) -> Slice:
        return one_after_the_other(class_writes.run(seconds * 0.75), round_trip.run(seconds * 0.25))

    how = "a class write and a round trip to the sequencer, from C++, one after the other"
    yield Candidate("position + write", how, run)


def _librados(testbed: Testbed, load: Workload, traffic: Traffic) -> Candidate:
    size = max(1, round(load.size * traffic.per_operation))
    keys = size < _KEY_BYTES_MAX
    what = "a new key" if keys else "data at the end of an object"
    return testbed.limit(
        "plain librados",
        f"{size} bytes as {what}, {traffic.operations} in flight, counted as"
        f" {traffic.per_operation:.1f} entries each",
        "rados_keys" if keys else "rados_appends",
        traffic.per_operation,
        objects=traffic.width,
        size=size,
        in_flight=traffic.operations,
    )


def _lmdb(testbed: Testbed, load: Workload) -> Candidate:
    entries = load.in_flight
    return testbed.limit(
        "LMDB, entries",
        f"LMDB alone in C++, {entries} keys per synced transaction, an entry each",
        "lmdb_puts",
        entries,
        keys=entries,
        size=load.size,
    )
