"""Tables have the rows that a filter of the whole log selects, and read no more than they need."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any, NamedTuple

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import zlog
from zlog.tables import scan_polars, to_arrow, to_duckdb

from ..client.clocks import NOW, set_clocks
from ..support.logs import leave_hole

SKEW = 5
POSITIONS = 1300
END = 2**63 - 1
START = datetime.fromtimestamp(NOW, timezone.utc)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
TYPES = {"position": pl.Int64, "timestamp": pl.Datetime("us", "UTC"), "data": pl.Binary}
position, timestamp, own_tags = map(pl.col, ("position", "timestamp", "tags"))


@pytest.fixture(scope="module")
def log() -> Iterator[zlog.Log]:
    """A log with gaps, in two stripes and several windows, whose times decrease by up to SKEW."""
    source = random.Random(1)
    store = zlog.connect("mem://")
    with store, zlog.Log.create(store, "orders", width=3, stripe_unit=4, hole_timeout=0) as opened:
        for batch in range(POSITIONS // 10):
            set_clocks(opened, batch + source.uniform(0, SKEW))
            tags = [source.choice([[], ["eu"], ["us"], ["eu", "paid"]]) for _ in range(10)]
            opened.append_many([b"%d" % batch * (i % 4) for i in range(10)], tags_each=tags)
            if batch == 70:
                opened.reconfigure(width=2)
        for trimmed in source.sample(range(POSITIONS), 100):
            opened.trim(trimmed)
        opened.trim_to(20)
        leave_hole(opened, 3)
        opened.append(b"last")
        yield opened


@pytest.fixture(scope="module")
def rows(log: zlog.Log) -> pl.DataFrame:
    """All rows, from a range read."""
    entries = [each for each in log.read_range() if isinstance(each, zlog.Entry)]
    values = [(e.position, e.timestamp, e.data, [*e.tags]) for e in entries]
    return pl.DataFrame(values, {**TYPES, "tags": pl.List(pl.String)}, orient="row")


class Filter(NamedTuple):
    """The same condition for each library. PyArrow has none for tags."""

    polars: pl.Expr
    sql: str
    arrow: Any

    def negated(self) -> Filter:
        arrow = None if self.arrow is None else ~self.arrow
        return Filter(~self.polars, f"(not {self.sql})", arrow)


def combined(how: Callable[[Any, Any], Any], a: Filter, b: Filter) -> Filter:
    arrow = None if a.arrow is None or b.arrow is None else how(a.arrow, b.arrow)
    return Filter(how(a.polars, b.polars), f"({a.sql} {how.__name__[:-1]} {b.sql})", arrow)


def comparison(name: str, operator: Callable[[Any, Any], Any], value: Any) -> Filter:
    sign = {lt: "<", le: "<=", eq: "=", ne: "<>", ge: ">=", gt: ">"}[operator]
    arrow = operator(pc.field(name), pa.scalar(value))
    return Filter(operator(pl.col(name), value), f"{name} {sign} '{value}'", arrow)


def tagged(tag: str) -> Filter:
    return Filter(own_tags.list.contains(tag), f"list_contains(tags, '{tag}')", None)


OPERATORS = st.sampled_from([lt, le, eq, ne, ge, gt])
NUMBERS = st.integers(-10, POSITIONS + 20)
TIMES = st.integers(-(10**7), 15 * 10**7).map(lambda us: START + timedelta(microseconds=us))
FILTERS = st.recursive(
    st.builds(comparison, st.just("position"), OPERATORS, NUMBERS)
    | st.builds(comparison, st.just("timestamp"), OPERATORS, TIMES)
    | st.builds(tagged, st.sampled_from(["eu", "us", "paid", "none", "x" * 200, ""])),
    lambda inner: (
        inner.map(Filter.negated) | st.builds(combined, st.sampled_from([and_, or_]), inner, inner)
    ),
    max_leaves=4,
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "start": st.integers(0, POSITIONS + 20),
        "end": NUMBERS,
        "tags": st.sampled_from([["eu"], ["us", "paid"], ["eu", "paid"]]),
        "match": st.just("all"),
        "clock_skew": st.sampled_from([SKEW, 60]),
    },
)


@settings(deadline=None)
@given(where=FILTERS, arguments=ARGUMENTS, head=st.none() | st.integers(0, 700))
@example(where=comparison("position", gt, 600), arguments={}, head=500)
@example(where=tagged("eu"), arguments={"tags": ["us", "paid"]}, head=None)
@example(where=comparison("timestamp", lt, LAST), arguments={"clock_skew": 60}, head=None)
def test_rows_are_exact(
    log: zlog.Log, rows: pl.DataFrame, where: Filter, arguments: dict[str, Any], head: int | None
) -> None:
    end, tags = arguments.get("end", END), arguments.get("tags")
    rows = rows.filter(position >= arguments.get("start", 0), position < end)
    if tags is not None:
        common = own_tags.list.set_intersection(tags).list.len()
        rows = rows.filter(common >= (len(tags) if "match" in arguments else 1))
    expected = rows.filter(where.polars)
    for frame in (expected, expected.select("data"), expected.select("tags", "position")):
        lazy = scan_polars(log, **arguments).filter(where.polars).select(frame.columns)
        assert lazy.collect().equals(frame)
    if head is not None:
        lazy = scan_polars(log, **arguments).head(head).filter(where.polars)
        assert lazy.collect(engine="streaming").equals(rows.head(head).filter(where.polars))
    with duckdb.connect() as connection:
        to_duckdb(log, connection, **arguments).create_view("orders")
        query = f"select position, octet_length(data) from orders where {where.sql} order by 1"
        sizes = expected.select("position", pl.col("data").bin.size().cast(pl.Int64)).rows()
        assert connection.sql(query).fetchall() == sizes
    if where.arrow is not None:
        table = to_arrow(log, **arguments, columns=["data"], filter=where.arrow).read_all()
        assert table.to_pydict() == expected.select("data").to_dict(as_series=False)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Range, further columns and tags of each read of a log."""
    seen = []
    read = zlog.Log.read_columns

    def noted(log: zlog.Log, start: int, end: int, **options: Any) -> zlog.ColumnIterator:
        if "with_data" in options:  # else it only checks the arguments
            names = [name for name in ("data", "tags") if options[f"with_{name}"]]
            tags = options["tags"] and [options["match"], *sorted(options["tags"])]
            seen.append((start, end, names, tags))
        return read(log, start, end, **options)

    monkeypatch.setattr(zlog.Log, "read_columns", noted)
    return seen


@pytest.mark.parametrize(
    ("query", "start", "end", "names", "tags"),
    [
        (lambda lazy: lazy.select("position"), 0, END, [], None),
        (lambda lazy: lazy.select(pl.len()), 0, END, [], None),
        (lambda lazy: lazy.filter(position > 7, position <= 9), 7, 10, ["data", "tags"], None),
        (lambda lazy: lazy.filter(position.is_between(7, 9)).select("data"), 7, 10, ["data"], None),
        (lambda lazy: lazy.filter(~(position < 7)).select("data"), 7, END, ["data"], None),
        (lambda lazy: lazy.filter(position > 7).head(2).select("data"), 7, END, ["data"], None),
        (
            lambda lazy: lazy.filter(own_tags.list.contains("eu"), own_tags.list.contains("x")),
            *(0, END, ["data", "tags"], ["all", "eu", "x"]),
        ),
        ("select count(*) from orders", 0, END, [], None),
        ("select data from orders where position > 7 and position < 10", 8, 10, ["data"], None),
        ("select position from orders where position in (5, 9)", 5, 10, [], None),
        (
            "select data from orders where len(tags) = 1 and position = 3",
            3,
            4,
            ["data", "tags"],
            None,
        ),
    ],
    ids=[
        *("columns", "count", "range", "between", "not", "head", "tags"),
        *("sql-count", "sql-range", "sql-in", "sql-unselected"),
    ],
)
def test_queries_read_only_what_they_need(
    log: zlog.Log,
    reads: list[tuple[Any, ...]],
    query: Any,
    start: int,
    end: int,
    names: list[str],
    tags: list[str] | None,
) -> None:
    if isinstance(query, str):
        with duckdb.connect() as connection:
            to_duckdb(log, connection).create_view("orders")
            connection.sql(query).fetchall()
    else:
        query(scan_polars(log)).collect()
    assert reads == [(start, end, names, tags)]


def test_times_limit_the_read(log: zlog.Log, reads: list[tuple[Any, ...]]) -> None:
    low, high = START + timedelta(seconds=40), START + timedelta(seconds=60)
    limits = (pc.field("timestamp") >= low) & (pc.field("timestamp") <= high)
    for skew in (None, SKEW):
        scan_polars(log, clock_skew=skew).filter(timestamp.is_between(low, high)).collect()
        to_arrow(log, clock_skew=skew, filter=limits).read_all()
    to_arrow(log, since=low, until=high).read_all()
    ranges = [(start, end) for start, end, *_ in reads]
    exact = log.find_time(low), log.find_time(high)
    assert ranges[:2] == [(0, END)] * 2
    assert ranges[2:] == [(ranges[2][0], ranges[2][1])] * 2 + [exact]
    assert 250 <= ranges[2][0] < exact[0] < exact[1] < ranges[2][1] <= 710


def test_head_ends_the_read(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = []
    stream = zlog.Columns.__arrow_c_stream__
    noted = lambda window: windows.append(window) or stream(window)  # noqa: E731
    monkeypatch.setattr(zlog.Columns, "__arrow_c_stream__", noted)
    assert len(scan_polars(log).head(10).collect()) == 10
    assert len(windows) == 1
    assert len(scan_polars(log).collect()) > 1000
    assert len(windows) > 3


@pytest.mark.parametrize("wrong", [{"start": -1}, {"tags": [""]}, {"clock_skew": -1}], ids=str)
def test_invalid_arguments_are_refused(log: zlog.Log, wrong: dict[str, Any]) -> None:
    for read in (
        scan_polars(log, **wrong).filter(own_tags.list.contains("eu"), position > 3).collect,
        to_arrow(log, **wrong).read_all,
    ):
        with pytest.raises(ValueError, match="must"):
            read()


def test_error_of_the_log_reaches_the_caller() -> None:
    with zlog.connect("mem://") as store:
        log = zlog.Log.create(store, "orders")
        assert scan_polars(log).collect().is_empty()
        readers = [scan_polars(log).collect, to_arrow(log).read_all, to_duckdb(log).fetchall]
        log.close()
        for read, kind in zip(readers, (*[zlog.StoreUnavailable] * 2, duckdb.Error), strict=True):
            with pytest.raises(kind, match="the log 'orders' is closed; open it again"):
                read()


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "zlog.tables.query")
    with pytest.raises(ImportError, match=r"needs .*duckdb>=.*pip install .*'duckdb>="):
        __import__("zlog.tables.query")
