"""The benchmark ``bench append``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

import zlog
from zlog._admin import WIDTH_DEFAULT
from zlog.cli.bench import limits, results, writers
from zlog.cli.bench.workload import Workload, rate_of
from zlog.cli.output import Output, note
from zlog.cli.parameters import json_option, size
from zlog.cli.session import Session, pass_session
from zlog.cli.verb import Verb
from zlog.view import WIDTH_MAX


@click.command(
    cls=Verb,
    examples="""
    zlog bench append
    zlog bench append --size 1K --batch 256 --seconds 10
    zlog --store ceph://logs bench append --writers 4 --depth 16 --json
    """,
)
@click.option(
    "--size",
    "entry_size",
    type=size,
    default="100",
    show_default=True,
    metavar="SIZE",
    help="Bytes of one entry.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 16384),
    default=1,
    show_default=True,
    metavar="N",
    help="Entries that one call appends.",
)
@click.option(
    "--writers",
    "writer_count",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes that append at the same time.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 4096),
    default=1,
    show_default=True,
    metavar="N",
    help="Appends that each writer has in flight.",
)
@click.option(
    "--width",
    type=click.IntRange(1, WIDTH_MAX),
    default=WIDTH_DEFAULT,
    show_default=True,
    metavar="N",
    help="Stripe objects of the log.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="S",
    help="How long to append, and to measure each limit.",
)
@json_option("Print one JSON object.")
@pass_session
def append(
    session: Session,
    entry_size: int,
    batch: int,
    writer_count: int,
    depth: int,
    width: int,
    seconds: float,
    as_json: bool,
) -> None:
    """Measure how fast entries are appended, durably.

    Beside it stand the raw limits of the same store, measured in the same run with as much in
    flight: calls of a class method that writes nothing; for an embedded store a plain file that is
    appended to and synced; for Ceph plain librados writes of the same bytes, where python-rados is
    there. RATIO is the part of each limit that was reached.
    """
    with (
        session.connect(create=True) as store,
        _own_log(store, width, session.timeout) as log,
        Output() as out,
    ):
        load = Workload(
            url=session.url,
            log=log,
            size=entry_size,
            batch=batch,
            writers=writer_count,
            depth=depth,
            width=width,
            seconds=seconds,
            timeout=session.timeout,
        )
        if writer_count > 1 and store.url.startswith("mem:"):
            raise click.UsageError("mem:// is one process's memory: it has only one writer")
        note(f"appending for {seconds:g} s to {store.url}")
        done = rate_of("append", writers.run(load, store), batch, entry_size, "durable appends")
        note("measuring the limits")
        raw = list(limits.measure(load, store))
        show = results.print_json if as_json else results.print_table
        show(out, load, done, raw)


@contextmanager
def _own_log(store: zlog.Store, width: int, timeout: float | None) -> Iterator[str]:
    """Make a log for the length of the benchmark."""
    name = f"bench-{os.urandom(8).hex()}"
    try:
        zlog.Log.create(store, name, width=width, timeout=timeout).close()
        yield name
    finally:
        with suppress(zlog.LogNotFound):  # interrupted before it was made
            zlog.Log.remove(store, name, timeout=timeout)
