"""The command ``spark tail``: copies a log into a table."""

from __future__ import annotations

import functools
import signal
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

import zlog
from zlog.cli import ranges
from zlog.cli.command import Command
from zlog.cli.commands.spark.session import check_delta, check_spark, master_options, spark_session
from zlog.cli.copying import absolute, copying_options, show
from zlog.cli.output import Output
from zlog.cli.ranges import PositionSpec
from zlog.cli.session import Session, pass_session
from zlog.cli.several import is_selection, selection_argument

if TYPE_CHECKING:
    from zlog.spark.tail import Run, Tail

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command(
    cls=Command,
    examples=r"""
    zlog spark tail orders --to /tables/orders
    zlog spark tail orders --to /tables/orders --trigger available-now    # copy up to the tail
    zlog spark tail nova --to nova --parse '^(?P<time>\S+ \S+) (?P<level>[A-Z]+) (?P<message>.*)'
    zlog spark tail orders --to orders --parse json --schema 'id long, price decimal(9,2)'
    zlog spark tail 'web-*' --to /tables/web --partition-by log,date
    """,
)
@selection_argument
@click.option("--to", "table", required=True, metavar="PATH", help="Path or URL of the table.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["parquet", "json", "delta"]),
    default="parquet",
    show_default=True,
    help="Format of the table. Delta needs the package delta-spark.",
)
@click.option(
    "--checkpoint",
    metavar="PATH",
    help="Directory where the query stores its progress.  [default: PATH.checkpoint, next to the"
    " table]",
)
@copying_options(
    "spark-TABLE-…, from the checkpoint's path",
    "Start a new query at this position, as for `zlog read`. A query with a checkpoint resumes"
    " there.",
)
@click.option(
    "--continue-on-mirror",
    is_flag=True,
    help="If the checkpoint belongs to a log of which LOG is a promoted mirror, continue in LOG.",
)
@master_options
@pass_session
def tail(
    session: Session,
    /,
    log: str,
    begin: PositionSpec | None,
    hole_timeout: zlog.Timeout,
    master: str | None,
    settings: dict[str, str],
    as_json: bool,
    **given: Any,
) -> None:
    """Copy a log into a table, and follow it.

    If LOG is several names with commas or a pattern such as 'web-*', the table also has the column
    log. New logs that match the pattern are included.

    Spark reads the log with one task per object of its widest stripe. The table has the columns
    position, stripe, timestamp, data and date, and those that --parse adds, which are null in lines
    that do not match. The table gets each position once, even if the command is killed and started
    again.

    After SIGINT or SIGTERM, the command completes the current batch and exits with 0. A second
    signal interrupts the batch, and the next run completes it.
    """
    check_spark()
    if given["format_"] == "delta":
        check_delta()
    if hole_timeout in (0, None):
        raise click.UsageError("--hole-timeout must be above 0, and not 'never', for a table")
    if urlsplit(session.url).scheme == "mem":
        raise click.UsageError("mem:// belongs to one process, and Spark has several")
    with ExitStack() as stack:
        store = stack.enter_context(session.connect())
        stack.enter_context(session.sharing(store))
        out, stopping = stack.enter_context(Output()), stack.enter_context(_Stopping())
        open_log = functools.cache(lambda name: stack.enter_context(session.open_log(name)))
        options = {
            "maxEntriesPerTrigger": str(given["entries_max"]),
            "failOnDataLoss": str(not given["allow_data_loss"]).lower(),
            "continueOnMirror": str(given["continue_on_mirror"]).lower(),
            **_start(None if is_selection(log) else open_log(log), begin),
        }
        if hole_timeout is not ...:
            options["holeTimeout"] = str(hole_timeout)
        if session.mac_key_path is not None:
            options["macKeyFile"] = str(Path(session.mac_key_path).absolute())
        job = _job(store.url, log, options, **given)
        quiet = not session.debug  # the error that ends the query is reported in one line
        if quiet:
            settings = {"spark.log.level": "FATAL", **settings}
        delta = job.format == "delta"
        with spark_session(f"zlog tail {log}", master, settings, delta=delta, quiet=quiet) as at:
            stopping.take_over()
            if stopping.asked:
                return
            try:
                query = job.start(at)
            except ValueError as error:
                raise click.UsageError(str(error)) from error
            from zlog.spark.tail import Run

            run = Run(query, open_log, job.cursor)
            stopping.have_stopped(run)
            several = is_selection(log)
            show(run.progress(), job.table, out if as_json else None, several=several)


def _start(log: zlog.Log | None, begin: PositionSpec | None) -> dict[str, str]:
    """Return the options that determine where a new query begins to read."""
    if begin is None or begin == "earliest":
        return {}
    if begin == "latest":
        return {"startingPosition": "latest"}
    if isinstance(begin, datetime):
        return {"startingTimestamp": begin.isoformat()}
    if log is None:
        raise click.UsageError(
            "--from must be a time, earliest or latest for several logs, because each log has its"
            " own positions"
        )
    return {"startingPosition": str(ranges.resolve(log, begin, log.tail()))}


def _job(
    store: str,
    log: str,
    options: dict[str, str],
    *,
    table: str,
    format_: str,
    checkpoint: str | None,
    parse: str | None,
    schema: str | None,
    drop_raw: bool,
    partition_by: list[str] | None,
    cursor: str | None,
    trigger: float | None,
    **_others: Any,
) -> Tail:
    """Return the copy job that the options describe. Raises UsageError if one is invalid."""
    from zlog.spark.parse import parser_of
    from zlog.spark.tail import Tail
    from zlog.tables.common import cursor_name_of

    table = absolute(table)
    checkpoint = f"{table}.checkpoint" if checkpoint is None else absolute(checkpoint)
    try:
        parser = parser_of(parse, schema)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    name = cursor_name_of(table, checkpoint) if cursor is None else cursor
    return Tail(
        store=store,
        log=log,
        table=table,
        format=format_,
        checkpoint=checkpoint,
        parser=parser,
        partition_by=partition_by,
        drop_raw=drop_raw,
        cursor=name or None,
        trigger={"availableNow": True}
        if trigger is None
        else {"processingTime": f"{round(1000 * trigger)} milliseconds"},
        options=options,
    )


class _Stopping:
    """Records SIGINT and SIGTERM, and stops the command at the next safe moment."""

    def __init__(self) -> None:
        self.asked = False
        self._run: Run | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Stopping:
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        self.take_over()
        return self

    def __exit__(self, *_error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def take_over(self) -> None:
        """Handle the signals, again after PySpark has put its own handler in place."""
        for number in _SIGNALS:
            signal.signal(number, self._note)

    def have_stopped(self, run: Run) -> None:
        """Stop the query at a signal, or now if a signal has already come."""
        self._run = run
        if self.asked:
            run.stop()

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        if self._run is not None:
            self._run.stop()
