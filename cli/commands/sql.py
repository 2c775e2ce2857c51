"""The command sql: queries logs as tables, with DuckDB. DuckDB is only imported when it runs."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from datetime import datetime
from itertools import chain
from typing import Any

import click

from zlog import LogNotFound
from zlog.cli.command import Command
from zlog.cli.output import Output
from zlog.cli.parameters import json_option
from zlog.cli.render import printable, to_json
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.tables import table
from zlog.cli.template import iso


@click.command(
    cls=Command,
    examples="""
    zlog sql "select count(*) from orders"
    zlog sql "select position, decode(data) as line from orders where position >= 1000"
    zlog sql "select timestamp::date as day, count(*) from orders group by day" --json
    zlog sql 'select data from "web-1" union all select data from "web-2"'
    """,
)
@click.argument("query")
@json_option("Print a JSON object per row.")
@pass_session
def sql(session: Session, query: str, as_json: bool) -> None:
    """Query logs as tables, in the SQL of DuckDB.

    A log is a table with the columns position, timestamp, data and tags, and a row for each entry.
    Put names with characters other than letters, digits and _ in double quotes. DuckDB reads only
    the columns that the query uses, and only the positions that its conditions allow.

    A table is printed when it is complete; with --json, rows are printed as DuckDB returns them.
    The command needs the packages of the extra `tables`.
    """
    try:
        import duckdb

        from zlog.tables import to_duckdb
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    with ExitStack() as stack, usage_errors(), Output() as out:
        stack.enter_context(session.sharing(stack.enter_context(session.connect())))
        # Without replacements, no name in the query can mean a variable of this program.
        db = stack.enter_context(duckdb.connect(config={"python_enable_replacements": "false"}))
        try:
            db.execute("SET TimeZone = 'UTC'")
            for name in _tables(db, query):
                with suppress(LogNotFound, ValueError):  # DuckDB may know the table
                    opened = stack.enter_context(session.open_log(name))
                    to_duckdb(opened, db).create_view(name, replace=False)
            db.execute(query)
            names = [column[0] for column in db.description or ()]
            rows = chain.from_iterable(iter(lambda: db.fetchmany(1000), []))
            _print(out, names, rows, as_json=as_json)
        except (duckdb.Error, RuntimeError) as error:
            message = str(error).partition(" Detail: Python exception:")[0]
            if message == "Query interrupted" or "KeyboardInterrupt" in str(error):
                raise KeyboardInterrupt from error
            raise click.ClickException(message) from error


def _tables(db: Any, query: str) -> set[str]:
    """Return the names of the tables in a statement.

    DuckDB parses only SELECT to JSON. Its method `get_table_names` fails for joins with `using`.
    """
    names: set[str] = set()

    def note(node: dict[str, Any]) -> dict[str, Any]:
        if "table_name" in node:
            names.add(node["table_name"])
        return node

    [(parsed,)] = db.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    failed = json.loads(parsed, object_hook=note)["error"]
    return set(db.get_table_names(query)) if failed else names


def _print(
    out: Output, names: list[str], rows: Iterable[tuple[object, ...]], *, as_json: bool
) -> None:
    if not as_json:
        table(out, tuple(names), (tuple(map(_text, row)) for row in rows))
        return
    if len({*names}) < len(names):
        raise click.UsageError("two columns have the same name: rename one of them with `as`")
    for row in rows:
        out.line(to_json(dict(map(_field, names, row)), _plain))


def _text(value: object) -> str:
    if isinstance(value, (list, tuple, dict, bool)):
        return to_json(value, _plain)
    return "-" if value is None else _plain(value)


def _field(name: str, value: object) -> tuple[str, object]:
    """Return a column of a row for JSON. Like the data of an entry, bytes may be base64."""
    if isinstance(value, float) and not math.isfinite(value):
        return name, str(value)
    if not isinstance(value, bytes):
        return name, value
    try:
        return name, value.decode()
    except UnicodeDecodeError:
        return f"{name}_b64", b64encode(value).decode()


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return printable(value)
    return iso(value) if isinstance(value, datetime) and value.tzinfo else str(value)
