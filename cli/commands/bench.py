"""The command bench: puts load on a store and prints rates and latencies, as `rados bench` does."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

import zlog
from zlog import aio
from zlog.cli.command import CommandGroup
from zlog.cli.output import Output, note
from zlog.cli.parameters import FiniteRange, entry_size, json_option, number_option, seconds_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.signals import terminable
from zlog.cli.tables import details
from zlog.limits import WIDTH_DEFAULT, WIDTH_MAX

F = TypeVar("F", bound=Callable[..., Any])

_BATCH = 1024
"""The number of entries per append for `bench read`, and between two readings of the clock."""

_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


@click.group(
    cls=CommandGroup,
    examples="""
    zlog bench append --depth 64
    zlog --store ceph://logs bench read --size 16K
    """,
)
def bench() -> None:
    """Put load on a store, and print its rate and latencies.

    Each benchmark creates a log of its own in the store, and removes it at the end. It uses the
    store's sequencer if there is one.
    """


def _common(command: F) -> F:
    options = (
        click.option(
            "--size",
            type=entry_size,
            default="100",
            show_default=True,
            metavar="SIZE",
            help="Size of an entry. The data is random.",
        ),
        number_option("--width", WIDTH_DEFAULT, 1, WIDTH_MAX, "Stripe objects of the log."),
        seconds_option("--seconds", 5.0, 0.001, 86400, "Duration of the load."),
        json_option("Print one JSON object."),
        pass_session,
    )
    for option in reversed(options):
        command = option(command)
    return command


@bench.command(
    examples="""
    zlog bench append                       # one entry at a time
    zlog bench append --batch 1024          # one batch at a time
    zlog bench append --depth 4096          # many concurrent appends of one program
    zlog bench append --exclusive
    """,
)
@number_option("--batch", 1, 1, 16384, "Entries per call.")
@number_option("--depth", 1, 1, 65536, "Calls in flight.")
@click.option("--exclusive", is_flag=True, help="Append as the log's exclusive writer.")
@_common
def append(
    session: Session,
    size: int,
    batch: int,
    depth: int,
    exclusive: bool,
    width: int,
    seconds: float,
    as_json: bool,
) -> None:
    """Append entries durably, and measure each call."""
    entries = [os.urandom(size) for _ in range(batch)]
    with _new_log(session, width) as (store, name):
        opening = aio.Log.open(store, name, timeout=session.timeout)
        latencies, took = asyncio.run(_append(opening, entries, depth, exclusive, seconds))
    _print(latencies, len(latencies) * batch, size, took, as_json=as_json)


async def _append(
    opening: AbstractAsyncContextManager[aio.Log],
    entries: list[bytes],
    depth: int,
    exclusive: bool,
    seconds: float,
) -> tuple[array[float], float]:
    latencies = array("d")
    async with opening as log:
        writer = await log.writer() if exclusive else None
        try:
            target = writer or log
            await target.append_many(entries)  # not measured: finds the view, takes the log
            began = time.perf_counter()

            async def append_repeatedly() -> None:
                now = time.perf_counter()
                while now < began + seconds:
                    if len(entries) == 1:
                        await target.append(entries[0])
                    else:
                        await target.append_many(entries)
                    before, now = now, time.perf_counter()
                    latencies.append(now - before)

            await asyncio.gather(*(append_repeatedly() for _ in range(depth)))
            return latencies, time.perf_counter() - began
        finally:
            if writer is not None:
                await writer.close()


@bench.command(
    examples="""
    zlog bench read                         # a range, from its first to its last entry
    zlog bench read --random                # one entry at a time, at random positions
    """,
)
@number_option("--entries", 262144, 1, 1 << 27, "Entries to write before the measurement.")
@click.option(
    "--random", "at_random", is_flag=True, help="Read single entries at random positions."
)
@_common
def read(
    session: Session,
    size: int,
    entries: int,
    at_random: bool,
    width: int,
    seconds: float,
    as_json: bool,
) -> None:
    """Read appended entries, and measure each call.

    Without --random, each call reads 1,024 consecutive entries.
    """
    latencies, count = array("d"), 0
    with (
        _new_log(session, width) as (store, name),
        zlog.Log.open(store, name, timeout=session.timeout) as log,
    ):
        note(f"writing {entries:,} entries")
        batch = [os.urandom(size) for _ in range(_BATCH)]
        for left in range(entries, 0, -_BATCH):
            log.append_many(batch[:left])
        items = log.read_range(0, entries)
        began = now = time.perf_counter()
        while now < began + seconds:
            if at_random:
                log.read(random.randrange(entries))
                count += 1
            else:
                taken = sum(1 for _ in islice(items, _BATCH))
                if taken < _BATCH:
                    items = log.read_range(0, entries)
                count += taken
            before, now = now, time.perf_counter()
            latencies.append(now - before)
    _print(latencies, count, size, now - began, as_json=as_json)


@bench.command(
    examples="""
    zlog bench tail
    zlog --store ceph://logs bench tail --rate 1000 --size 1K
    """,
)
@click.option(
    "--rate",
    type=FiniteRange(min=0.1, max=1e5),
    default=200.0,
    show_default=True,
    metavar="N",
    help="Appends per second, one at a time.",
)
@_common
def tail(
    session: Session, size: int, rate: float, width: int, seconds: float, as_json: bool
) -> None:
    """Append entries while a second thread follows the log.

    The latency of an entry is the time from the start of its append until the follower receives it.
    """
    count = max(1, round(rate * seconds))
    data = os.urandom(size)
    began, seen = array("d"), array("d")
    with (
        _new_log(session, width) as (store, name),
        zlog.Log.open(store, name, timeout=session.timeout) as log,
        zlog.Log.open(store, name, timeout=session.timeout) as followed,
    ):
        entries = followed.follow(0)

        def follow() -> None:
            with suppress(zlog.ZlogError):  # the log is closed or removed: the benchmark failed
                seen.extend(time.perf_counter() for _ in islice(entries, count))

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        due = time.perf_counter()
        for _ in range(count):
            time.sleep(max(0.0, due - time.perf_counter()))
            began.append(time.perf_counter())
            log.append(data)
            due += 1 / rate
        follower.join(session.timeout)
    if len(seen) < count:
        raise zlog.StoreTimeout(f"the follower received only {len(seen)} of {count} entries")
    latencies = array("d", (after - before for before, after in zip(began, seen, strict=True)))
    _print(latencies, count, size, seen[-1] - began[0], as_json=as_json)


@contextmanager
def _new_log(session: Session, width: int) -> Iterator[tuple[zlog.Store, str]]:
    if urlsplit(session.url).scheme == "mem":
        note("a store in memory shows only the speed of this machine's processor")
    name = f"bench-{os.urandom(8).hex()}"
    with terminable(), session.connect(create=True) as store:
        try:
            zlog.Log.create(store, name, width=width, timeout=session.timeout).close()
            yield store, name
        finally:
            with suppress(zlog.LogNotFound):  # interrupted before it was created
                zlog.Log.remove(store, name, timeout=session.timeout)


def _print(
    latencies: array[float], entries: int, size: int, seconds: float, *, as_json: bool
) -> None:
    ascending = sorted(latencies)
    last = len(ascending) - 1
    milliseconds = {
        name: round(1000 * ascending[min(last, int(share * len(ascending)))], 3)
        for name, share in _QUANTILES.items()
    }
    fields: dict[str, Any] = {
        "entries": entries,
        "seconds": round(seconds, 3),
        "entries_per_second": round(entries / seconds, 1),
        "bytes_per_second": round(entries * size / seconds),
        "calls": len(ascending),
        "latency_ms": milliseconds,
    }
    with Output() as out:
        if as_json:
            out.line(to_json(fields))
            return
        rows = [
            ("entries", f"{entries:,} in {seconds:.2f} s, {len(ascending):,} calls"),
            ("entries/s", f"{entries / seconds:,.0f}"),
            ("MB/s", f"{entries * size / seconds / 1e6:,.2f}"),
            *((f"{name} ms", f"{value:,.3f}") for name, value in milliseconds.items()),
        ]
        details(out, rows)
