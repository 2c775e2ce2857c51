"""zlog sql: logs as tables, rows as text and JSON, errors of DuckDB and of the log."""

from __future__ import annotations

import json
import signal
import sys

import pytest

import zlog

from .conftest import Cli, Inside

pytest.importorskip("duckdb")


def test_rows_are_printed(inside: Inside, ten: zlog.Log) -> None:
    query = "select position, data, tags, null as n from orders where position >= 8 order by 1"
    assert inside.ok("sql", query) == b"8  8  []  -\n9  9  []  -\n"
    assert inside.ok("sql", "select count(*) from orders limit 0") == b""
    ten.append(b"\xff\x1b", tags=["eu"])
    assert inside.ok("sql", "from orders select data where position = 10") == b"\\xff\\x1b\n"
    query = """
        select o.*, {'at': timestamptz '2026-01-31 12:00:00+01', 'b': data} as s,
            1.50::decimal(3, 2) as d, 'nan'::double as f, [true] as l
        from orders o where position = 10
    """
    row = json.loads(inside.ok("sql", query, "--json"))
    assert row.pop("timestamp").endswith("Z")
    assert row == {
        "position": 10,
        "data_b64": "/xs=",
        "tags": ["eu"],
        "s": {"at": "2026-01-31T11:00:00.000000Z", "b": "\\xff\\x1b"},
        "d": "1.50",
        "f": "nan",
        "l": [True],
    }


def test_names_are_those_of_logs(inside: Inside, ten: zlog.Log) -> None:
    with zlog.Log.create(ten.store, "web-1") as log:
        log.append(b"3")
    query = 'with a as (from orders) select position from a semi join "web-1" using (data)'
    assert inside.ok("sql", query) == b"3\n"
    assert b"position" in inside.ok("sql", "explain from orders")
    zlog.Log.create(ten.store, "ORDERS").close()
    assert inside.ok("sql", "select count(*) from ORDERS") == b"0\n"
    for wrong, complaint in (
        ("from session", "Table with name session does not exist"),  # a variable of the command
        ("from orders union all from ORDERS", "already exists"),
        ("select", "Parser Error"),
    ):
        result = inside("sql", wrong)
        assert (result.code, result.out) == (1, b"")
        assert complaint in result.err
    assert inside("sql", "select 1 as a, 2 as a", "--json").code == 2


def test_failure_of_the_log_is_one_message(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> zlog.ColumnIterator:
        raise zlog.StoreUnavailable("the store is on fire")

    monkeypatch.setattr(zlog.Log, "read_columns", failing)
    result = inside("sql", "from orders")
    assert (result.code, result.out) == (1, b"")
    assert "the store is on fire" in result.err
    assert "Traceback" not in result.err
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "duckdb" in inside("sql", "from orders").err


def test_interrupt_ends_a_query(cli: Cli) -> None:
    last = 99_999_999_999
    rows = f"from range({last + 1}) where range < 1000 or range = {last}"
    with cli.start("sql", f"select repeat('x', 99) {rows}", "--json") as running:
        assert b"xxx" in running.stdout.readline()  # the first 1000 rows were found
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        assert running.wait(30) == 130
