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
from zlog.cli.names import CURSOR_NAME
from zlog.cli.output import Output, note, stderr_is_terminal
from zlog.cli.parameters import hole_timeout_option, json_option
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.several import is_selection, selection_argument
from zlog.cli.units import count, time_span

if TYPE_CHECKING:
    from zlog.spark.tail import Progress, Run, Tail

_AVAILABLE_NOW = "available-now"
_NONE = "none"
_ENTRIES_MAX = 1_000_000
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CURSOR_OF_ITS_OWN = "spark-TABLE-…"


def _trigger(word: str) -> str:
    if word != _AVAILABLE_NOW:
        time_span(word)
    return word


def _cursor(word: str) -> str:
    return word if word == _NONE else CURSOR_NAME.convert(word, None, None)


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
@click.option(
    "--parse",
    metavar="HOW",
    help="Parse entries into columns: a pattern of Python's re with named groups; or json; or"
    " FILE.py, whose function parse(entries) takes a DataFrame and returns another.",
)
@click.option(
    "--schema",
    metavar="COLUMNS",
    help="Names and types, as in SQL, of the fields of JSON, or of the groups of the pattern that"
    " are not strings.",
)
@click.option(
    "--drop-raw", is_flag=True, help="Omit the column data, which has the bytes of the entry."
)
@click.option(
    "--partition-by",
    "partitions",
    metavar="COLUMN,…",
    help="Partition the table by these columns, or by none.  [default: date, the UTC day of the"
    " append]",
)
@click.option(
    "--cursor",
    type=_cursor,
    shell_complete=CURSOR_NAME.shell_complete,
    metavar="NAME",
    help="Advance this cursor after each batch, so that no trim removes entries that are not yet"
    " copied. 'none' uses no cursor."
    f"  [default: {_CURSOR_OF_ITS_OWN}, from the checkpoint's path]",
)
@click.option(
    "--from",
    "begin",
    type=ranges.position_spec,
    metavar="POSITION",
    help="Start a new query at this position, as for `zlog read`. A query with a checkpoint resumes"
    " there.  [default: earliest]",
)
@click.option(
    "--trigger",
    type=_trigger,
    default="5s",
    show_default=True,
    metavar="SPAN",
    help="Copy new entries this often, such as every 1m. 'available-now' copies up to the present"
    " tail and exits.",
)
@click.option(
    "--max-entries",
    "entries_max",
    type=count,
    default=_ENTRIES_MAX,
    show_default=True,
    metavar="N",
    help="Limit of entries in a batch.",
)
@click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Continue if entries are lost, or were trimmed before they were copied.",
)
@click.option(
    "--continue-on-mirror",
    is_flag=True,
    help="If the checkpoint belongs to a log of which LOG is a promoted mirror, continue in LOG.",
)
@hole_timeout_option
@master_options
@json_option("Print a JSON object for each batch.")
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
            _show(run, job, out if as_json else None)


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
    partitions: str | None,
    cursor: str | None,
    trigger: str,
    **_others: Any,
) -> Tail:
    """Return the copy job that the options describe. Raises UsageError if one is invalid."""
    from zlog.spark.parse import parser_of
    from zlog.spark.tail import Tail, cursor_name_of

    table = _absolute(table)
    checkpoint = f"{table}.checkpoint" if checkpoint is None else _absolute(checkpoint)
    try:
        parser = parser_of(parse, schema)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    columns = None if partitions is None else [each.strip() for each in partitions.split(",")]
    name = cursor_name_of(table, checkpoint) if cursor is None else cursor
    return Tail(
        store=store,
        log=log,
        table=table,
        format=format_,
        checkpoint=checkpoint,
        parser=parser,
        partition_by=[] if columns == [_NONE] else columns,
        drop_raw=drop_raw,
        cursor=None if name == _NONE else name,
        trigger={"availableNow": True}
        if trigger == _AVAILABLE_NOW
        else {"processingTime": f"{round(1000 * time_span(trigger))} milliseconds"},
        options=options,
    )


def _absolute(path: str) -> str:
    """Return a path that does not depend on the working directory. URLs do not change."""
    if urlsplit(path).scheme:
        return path.rstrip("/")
    return str(Path(path).absolute())


def _show(run: Run, job: Tail, out: Output | None) -> None:
    """Report the query's progress until it ends, for people and, if requested, as JSON."""
    rows, last = 0, None
    watched = stderr_is_terminal()
    for last in run.progress():
        rows += last.rows
        if out is not None and last.rows:
            out.line(to_json(_content(last, several=is_selection(job.log))))
            out.flush()
        if watched:
            click.echo(f"\r\x1b[K{_line(rows, last)}", err=True, nl=False)
    if watched and last is not None:
        click.echo("\r\x1b[K", err=True, nl=False)
    if last is None:
        note(f"there are no new entries; {job.table} is unchanged")
    else:
        below = " and ".join(f"below {each.position:,}" for each in last.logs.values())
        positions = f"has all positions {below}" if len(last.logs) == 1 else "is complete"
        note(f"{rows:,} rows were added to {job.table}, which now {positions}")


def _content(progress: Progress, *, several: bool) -> dict[str, Any]:
    """Return the JSON of a progress report. Of several logs, it has only those in the batch."""
    logs = {name: each._asdict() for name, each in progress.logs.items()}
    content = {"batch": progress.batch, "rows": progress.rows}
    if several:
        changed = {n: each for n, each in logs.items() if each["start"] < each["position"]}
        return {**content, "seconds": progress.seconds, "lag": progress.lag, "logs": changed}
    return {**content, **logs.popitem()[1], "seconds": progress.seconds, "lag": progress.lag}


def _line(rows: int, last: Progress) -> str:
    pace = f"  {last.rows / last.seconds:,.0f} rows/s" if last.rows and last.seconds else ""
    place = ", ".join(f"position {each.position:,}" for each in last.logs.values())
    if len(last.logs) != 1:
        place = f"{len(last.logs):,} logs"
    return f"zlog: {rows:,} rows  {place}  lag {last.lag:,}{pace}"


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
