"""The command table: copies a log into a table. PyArrow is only imported when a command runs."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

import zlog
from zlog.cli import ranges
from zlog.cli.command import Command, CommandGroup
from zlog.cli.copying import absolute, copying_options, show
from zlog.cli.names import log_argument
from zlog.cli.output import Output
from zlog.cli.ranges import PositionSpec
from zlog.cli.session import Session, pass_session
from zlog.cli.tags import selected, selecting_options
from zlog.cli.units import size
from zlog.distribution import how_to_install, requirements

if TYPE_CHECKING:
    from zlog.tables.tail import TableTail


@click.group(
    cls=CommandGroup,
    examples="""
    zlog table tail orders --to /tables/orders
    """,
)
def table() -> None:
    """Copy a log into tables, without Spark.

    These commands need the packages of the extra `tables`.
    """


@table.command(
    cls=Command,
    examples=r"""
    zlog table tail orders --to /tables/orders
    zlog table tail orders --to /tables/orders --trigger available-now    # copy up to the tail
    zlog table tail nova --to nova --parse '^(?P<time>\S+ \S+) (?P<level>[A-Z]+) (?P<message>.*)'
    zlog table tail orders --to orders --format delta --parse json --schema 'id long'
    """,
)
@log_argument
@click.option("--to", "table", required=True, metavar="PATH", help="Path or URL of the table.")
@click.option(
    "--format",
    type=click.Choice(["parquet", "delta", "iceberg"]),
    default="parquet",
    show_default=True,
    help="Format of the table. Parquet needs a local path.",
)
@click.option(
    "--catalog",
    metavar="NAME",
    help="Catalog of an Iceberg table, by its name in PyIceberg's configuration. PATH is then"
    " NAMESPACE.TABLE.  [default: the SQLite file PATH.catalog.db, next to the table]",
)
@copying_options(
    "table-TABLE-…, from the table's path",
    "Start a new table at this position, as for `zlog read`. A table that exists is continued.",
)
@click.option(
    "--max-bytes",
    "bytes_max",
    type=size,
    default="128M",
    show_default=True,
    metavar="SIZE",
    help="Limit of the entries' bytes in a batch. A batch is in memory.",
)
@selecting_options
@pass_session
def tail(
    session: Session,
    /,
    log: str,
    table: str,
    catalog: str | None,
    begin: PositionSpec | None,
    parse: str | None,
    schema: str | None,
    cursor: str | None,
    trigger: float | None,
    tags: tuple[str, ...],
    match: zlog.Match | None,
    hole_timeout: zlog.Timeout,
    as_json: bool,
    **given: Any,
) -> None:
    """Copy a log into a table, and follow it.

    The table has the columns position, stripe, timestamp, data and date, and those that --parse
    adds, which are null in lines that do not match. The table gets each position once, even if the
    command is killed and started again: it resumes at the position that the table records.

    After SIGINT or SIGTERM, the command commits the entries that it has read and exits with 0. A
    second signal ends it at once, and the next run copies the rest.
    """
    if hole_timeout in (0, None):
        raise click.UsageError("--hole-timeout must be above 0, and not 'never', for a table")
    if catalog is not None and (given["format"] != "iceberg" or "." not in table):
        raise click.UsageError("--catalog needs --format iceberg and --to NAMESPACE.TABLE")
    table = table if catalog else absolute(table)
    with session.open_log(log, hole_timeout=hole_timeout) as opened, Output() as out:
        try:
            from zlog.tables.common import cursor_name_of
            from zlog.tables.parse import parser_of
            from zlog.tables.tail import TableTail

            first = begin if begin is None else lambda: ranges.resolve(opened, begin, opened.tail())
            if cursor is None:
                cursor = cursor_name_of(table, f"{catalog or ''}{table}", "table")
            job = TableTail(
                opened,
                table,
                catalog=catalog,
                parser=parser_of(parse, schema),
                cursor=cursor or None,
                start=first,
                interval=trigger,
                **selected(tags, match),
                **given,
            )
            with _stopping(job):
                show(job.run(), table, out if as_json else None)
        except ImportError as error:
            needed, how = requirements("tables"), how_to_install("tables")
            raise click.ClickException(f"a table needs {needed} ({error}); {how}") from error
        except ValueError as error:
            raise click.UsageError(str(error)) from error


@contextlib.contextmanager
def _stopping(job: TableTail) -> Iterator[None]:
    """Stop the copy at the first signal. The second one has its usual effect."""
    before: dict[int, Any] = {}

    def stop(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, before[number])
        job.stop()

    before.update({each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)})
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
