"""The verb top: the logs of a store, as they are used, on a terminal."""

from __future__ import annotations

import asyncio
import fnmatch
from dataclasses import asdict
from typing import NamedTuple

import click

import zlog
from zlog.cli.output import Output
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import table
from zlog.cli.units import human_bytes
from zlog.cli.verb import Verb
from zlog.overview import LogOverview, StoreOverview, log_names, rates, see_store

_ONCE_SECONDS = 1.0
"""Between the two looks that tell of rates."""

CONTENTS_MAX = 256
"""With more logs than these, their objects are not asked what they hold."""


class Row(NamedTuple):
    """A log with its rates, as the view shows it.

    Attributes:
        log: see there.
        rate: positions per second.
        bytes_rate: bytes of data per second.
    """

    log: LogOverview
    rate: float = 0.0
    bytes_rate: float = 0.0

    def cells(self) -> tuple[str, ...]:
        """Return what the columns show."""
        log = self.log
        if log.error:
            return (log.name, "", "", "", "", "", "", "", "can't be read")
        content = log.content
        return (
            log.name,
            f"{self.rate:,.0f}",
            "" if content is None else human_bytes(content.bytes),
            f"{log.tail:,}",
            f"{log.trim_point:,}",
            f"{log.lag:,}" if log.cursors else "",
            "" if content is None else f"{content.fullness:.0%}",
            f"{log.width}×{log.unit}",
            f"{log.epoch} {state_of(log)}".rstrip(),
        )


HEAD = ("LOG", "RATE/s", "BYTES", "TAIL", "TRIMMED", "LAG", "FULL", "WIDTH", "EPOCH")
SORTS = ("name", "rate", "bytes", "tail", "lag", "full")


def state_of(log: LogOverview) -> str:
    """Say in a word what is special of a log."""
    if log.mirror:
        return "mirror"
    if log.read_only:
        return "read-only"
    return "exclusive" if log.writer else ""


def sorted_rows(rows: list[Row], by: str, *, reverse: bool = False) -> list[Row]:
    """Return rows in an order of ``SORTS``: names ascend, numbers descend, or the reverse."""
    by_name = sorted(rows, key=lambda row: row.log.name, reverse=reverse and by == "name")
    keys = {
        "rate": lambda row: row.rate,
        "bytes": lambda row: row.log.content.bytes if row.log.content else 0,
        "tail": lambda row: row.log.tail,
        "lag": lambda row: row.log.lag,
        "full": lambda row: row.log.content.fullness if row.log.content else 0.0,
    }
    return by_name if by == "name" else sorted(by_name, key=keys[by], reverse=not reverse)


def rows_of(before: StoreOverview | None, now: StoreOverview) -> list[Row]:
    """Return the logs with their rates since an earlier look."""
    known = {} if before is None else {log.name: log for log in before.logs}
    return [
        Row(log, *(rates(known[log.name], log) if log.name in known else ())) for log in now.logs
    ]


def summary(seen: StoreOverview, rows: list[Row]) -> str:
    """Return a line about all of them."""
    total = sum(row.rate for row in rows)
    return f"{seen.url}   {len(rows)} logs   {total:,.0f} entries/s   {sequencer_line(seen)}"


def sequencer_line(seen: StoreOverview) -> str:
    """Say who hands out positions."""
    if seen.sequencer_error:
        return f"sequencer: {seen.sequencer_error}"
    status = seen.sequencer
    if status is None:
        return "no sequencer" if seen.url.startswith("ceph") else "sequencer: shared"
    others = {other for each in status.get("namespaces", ()) for other in each["others"]}
    standbys = f", {len(others)} standing by" if others else ""
    rate = status.get("grants_per_second", 0)
    return f"{status['role']} {status['address']}: {rate:,.0f} grants/s{standbys}"


async def look(
    store: zlog.Store, pattern: str, timeout: float | None, *, content: bool | None = None
) -> StoreOverview:
    """Look at all logs whose names match; at their objects, too, if there are not too many."""
    names = [
        name
        for name in await log_names(store, timeout=timeout)
        if fnmatch.fnmatchcase(name, pattern)
    ]
    asked = len(names) <= CONTENTS_MAX if content is None else content
    return await see_store(store, names, content=asked, timeout=timeout)


@click.command(
    cls=Verb,
    examples="""
    zlog --store ceph://logs top
    zlog top --sort rate --match 'orders-*'
    zlog top --once --json | jq '.logs[] | select(.lag > 1000)'
    """,
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1),
    default=2.0,
    metavar="SECONDS",
    show_default=True,
    help="Look this often.",
)
@click.option(
    "--sort", type=click.Choice(SORTS), default="rate", show_default=True, help="In this order."
)
@click.option("--match", default="*", metavar="PATTERN", help="Only such names, as of files.")
@click.option("--once", is_flag=True, help="Print a table and end, after a second.")
@json_option("With --once: print one JSON object.")
@pass_session
def top(
    session: Session, interval: float, sort: str, match: str, once: bool, as_json: bool
) -> None:
    """Watch the logs of the store: rates, tails, trim points, cursors' lag, sequencers.

    In the view: s and r sort, / filters, Enter shows one log, p pauses, q ends. To look changes
    nothing and takes no log over.
    """
    if as_json and not once:
        raise click.UsageError("--json goes with --once")
    with session.connect() as store:
        if once:
            _print(asyncio.run(_twice(store, match, session.timeout)), sort, as_json=as_json)
            return
        from zlog.cli.verbs.top.view import run_view

        run_view(store, match, interval, sort, session.timeout)


async def _twice(
    store: zlog.Store, match: str, timeout: float | None
) -> tuple[StoreOverview, StoreOverview]:
    before = await look(store, match, timeout)
    await asyncio.sleep(_ONCE_SECONDS)
    return before, await look(store, match, timeout)


def _print(seen: tuple[StoreOverview, StoreOverview], sort: str, *, as_json: bool) -> None:
    rows = sorted_rows(rows_of(*seen), sort)
    now = seen[1]
    with Output() as out:
        if as_json:
            out.line(to_json({**asdict(now), "logs": [_fields(row) for row in rows]}))
            return
        out.line(summary(now, rows))
        table(out, HEAD, (row.cells() for row in rows), head_always=True)


def _fields(row: Row) -> dict[str, object]:
    return {
        **asdict(row.log),
        "lag": row.log.lag,
        "positions_per_second": round(row.rate, 3),
        "bytes_per_second": round(row.bytes_rate, 3),
    }
