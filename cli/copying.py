"""Options of the commands that copy a log into a table: ``spark tail`` and ``table tail``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from zlog.cli import ranges
from zlog.cli.names import CURSOR_NAME
from zlog.cli.output import Output, note, stderr_is_terminal
from zlog.cli.parameters import hole_timeout_option, json_option, together
from zlog.cli.render import to_json
from zlog.cli.units import count, time_span

if TYPE_CHECKING:
    from zlog.tables.common import Progress

F = TypeVar("F", bound=Callable[..., object])

_ENTRIES_MAX = 1_000_000


def _trigger(word: str) -> float | None:
    return None if word == "available-now" else time_span(word)


def _entries(word: str | int) -> int:
    number = count(word)
    if number < 1:
        raise click.BadParameter(f"{word} is too small: a batch has at least 1 entry")
    return number


def _cursor(word: str) -> str:
    return "" if word == "none" else CURSOR_NAME.convert(word, None, None)


def _columns(words: str) -> list[str]:
    return [] if words == "none" else [each.strip() for each in words.split(",")]


def absolute(path: str) -> str:
    """Return a path that does not depend on the working directory. URLs do not change."""
    if urlsplit(path).scheme:
        return path.rstrip("/")
    return str(Path(path).absolute())


def copying_options(cursor: str, begin: str) -> Callable[[F], F]:
    """Return a decorator that adds the options of both commands.

    ``--partition-by`` and ``--cursor`` pass an empty value for 'none', and ``--trigger`` passes the
    seconds, or None for available-now.

    Args:
        cursor: the default of ``--cursor``, for its help.
        begin: the part of the help of ``--from`` about a copy that is resumed.
    """
    return together(
        click.option(
            "--parse",
            metavar="HOW",
            help="Parse entries into columns: a pattern of Python's re with named groups; or json;"
            " or FILE.py, whose function parse(entries) takes a table and returns another: a"
            " DataFrame in Spark, else a pyarrow.Table.",
        ),
        click.option(
            "--schema",
            metavar="COLUMNS",
            help="Names and types, as in SQL, of the fields of JSON, or of the groups of the"
            " pattern that are not strings.",
        ),
        click.option(
            "--drop-raw",
            is_flag=True,
            help="Omit the column data, which has the bytes of the entry.",
        ),
        click.option(
            "--partition-by",
            type=_columns,
            metavar="COLUMN,…",
            help="Partition the table by these columns, or by none.  [default: date, the UTC day of"
            " the append]",
        ),
        click.option(
            "--cursor",
            type=_cursor,
            shell_complete=CURSOR_NAME.shell_complete,
            metavar="NAME",
            help="Advance this cursor after each batch, so that no trim removes entries that are"
            f" not yet copied. 'none' uses no cursor.  [default: {cursor}]",
        ),
        click.option(
            "--from",
            "begin",
            type=ranges.position_spec,
            metavar="POSITION",
            help=f"{begin}  [default: earliest]",
        ),
        click.option(
            "--trigger",
            type=_trigger,
            default="5s",
            show_default=True,
            metavar="SPAN",
            help="Copy new entries this often, such as every 1m. 'available-now' copies up to the"
            " present tail and exits.",
        ),
        click.option(
            "--max-entries",
            "entries_max",
            type=_entries,
            default=_ENTRIES_MAX,
            show_default=True,
            metavar="N",
            help="Limit of entries in a batch.",
        ),
        click.option(
            "--allow-data-loss",
            is_flag=True,
            help="Continue if entries are lost, or were trimmed before they were copied.",
        ),
        hole_timeout_option,
        json_option("Print a JSON object for each batch."),
    )


def show(
    batches: Iterable[Progress], table: str, out: Output | None, *, several: bool = False
) -> None:
    """Report a copy's progress until it ends, for people and, if requested, as JSON.

    Args:
        several: whether the copy may be of several logs.
    """
    rows, last = 0, None
    watched = stderr_is_terminal()
    for last in batches:
        rows += last.rows
        if out is not None and last.rows:
            out.line(to_json(_content(last, several=several)))
            out.flush()
        if watched:
            click.echo(f"\r\x1b[K{_line(rows, last)}", err=True, nl=False)
    if watched and last is not None:
        click.echo("\r\x1b[K", err=True, nl=False)
    if last is None:
        note(f"there are no new entries; {table} is unchanged")
    else:
        below = " and ".join(f"below {each.position:,}" for each in last.logs.values())
        positions = f"has all positions {below}" if len(last.logs) == 1 else "is complete"
        note(f"{rows:,} rows were added to {table}, which now {positions}")


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
