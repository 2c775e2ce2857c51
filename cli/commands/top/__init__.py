"""The command top: shows the logs of a store and their use on a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.commands.top.rows import HEAD, SORTS, Row, look, rows_of, sorted_rows, summary
from zlog.cli.groups import Seen, see_groups, seen_fields
from zlog.cli.output import Output
from zlog.cli.parameters import interval_option, json_option, match_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import table
from zlog.overview import StoreOverview

_ONCE_SECONDS = 1.0
"""Seconds between the two polls that give rates."""


@click.command(
    cls=Command,
    examples="""
    zlog --store ceph://logs top
    zlog top --sort rate --match 'orders-*'
    zlog top --once --json | jq '.logs[] | select(.lag > 1000)'
    """,
)
@interval_option(2.0, "Update the view this often.")
@click.option(
    "--sort", type=click.Choice(SORTS), default="rate", show_default=True, help="Order of the logs."
)
@match_option
@click.option("--once", is_flag=True, help="Print a table after one second, and exit.")
@json_option("With --once, print one JSON object.")
@pass_session
def top(
    session: Session, interval: float, sort: str, match: str, once: bool, as_json: bool
) -> None:
    """Watch the logs of the store: rates, cursors' lag, sequencers.

    Press s or r to sort, / to filter, Enter to show one log with its groups, p to pause, and q or
    Ctrl-C to quit. The command changes nothing in the store.
    """
    if as_json and not once:
        raise click.UsageError("--json needs --once")
    with session.connect() as store:
        if once:
            seen = asyncio.run(_twice(store, match, session.timeout))
            groups = asyncio.run(see_groups(session, store, seen[1].logs))
            _print(seen, groups, sort, as_json=as_json)
            return
        from zlog.cli.commands.top.view import run_view

        run_view(session, store, match, interval, sort)


async def _twice(
    store: zlog.Store, match: str, timeout: float | None
) -> tuple[StoreOverview, StoreOverview]:
    before = await look(store, match, timeout)
    await asyncio.sleep(_ONCE_SECONDS)
    return before, await look(store, match, timeout)


def _print(
    seen: tuple[StoreOverview, StoreOverview],
    groups: Mapping[str, Seen],
    sort: str,
    *,
    as_json: bool,
) -> None:
    rows = sorted_rows(rows_of(*seen), sort)
    now = seen[1]
    with Output() as out:
        if as_json:
            logs = [
                {**_fields(row), "groups": seen_fields(groups.get(row.log.name, {}))}
                for row in rows
            ]
            out.line(to_json({**asdict(now), "logs": logs}))
            return
        out.line(f"{now.url}   {summary(now, rows)}")
        table(out, HEAD, (row.cells() for row in rows), head_always=True)


def _fields(row: Row) -> dict[str, object]:
    return {
        **asdict(row.log),
        "lag": row.log.lag,
        "positions_per_second": round(row.rate or 0.0, 3),
        "bytes_per_second": round(row.bytes_rate, 3),
    }
