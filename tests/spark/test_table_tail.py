"""zlog table tail makes the same table as zlog spark tail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import zlog
from zlog.tables.parse import parser_of
from zlog.tables.tail import TableTail

from .test_tail import Copying

WORDS = [
    *("1", " +2 ", "-128", "128", "1.5", "1e3", ".5", "1d", "", "abc", "1_0", "0x1", "NaN", "-inf"),
    *("99999999999999999999", "12.345", "-12.345", "1000", "t", "YES", "off", "\t7\r", "\u00a05"),
    *("2026", "2026-1-3", "2026-02-30", " 2026-01-31 ", "2026-01-31T", "+2026-01-31", "20260131"),
    *("2026-01-31 12:30", "2026-01-31 1:2:3.1234567", "2026-01-31T12:30:15Z", "2026-01-31 12:30Z"),
    *("2026-01-31T12:30:15+01:00", "2026-01-31 12:30:15 -0130", "2026-01-31 12:30:15 GMT+1"),
    *("2026-01-31 24:00:00", "2026-01-31 12:30:15,5", "2026-01-31 12", "1700000000", "é"),
]
Case = Callable[[], tuple[str, str, list[bytes]]]

KINDS = ("tinyint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal", "boolean")
KINDS += ("string", "binary", "date", "timestamp")
VALUES = [
    *("1", "-1.50", "1e3", "1e400", "true", "null", '"1.5"', '"a\\u00e9\\ud800"', '"YWJj"'),
    *("[1, 2]", '[1, "x"]', "[null]", '{"a": 1, "b": "x"}', '{"a": "x", "b": [1.10]}', "{}"),
    *('"2026-01-31"', '"2026-01-31T12:30:15+0100"', "1700000000", "99999999999999999999", "12.345"),
    *("NaN", "-Infinity", "tru"),
]
JSON_KINDS = (*KINDS[1:], "array<int>", "array<string>", "struct<a: int, b: string>")
ODD = [
    b"",
    b"null",
    b"[1]",
    b' {"c0": 1} x',
    b'{"c0": "1", "c7": ""}',
    b'{"c0": 1',
    b'{"C0": 1, "c1": 2, "c1": 3}',
    b"\xff{",
]


def columns(kinds: tuple[str, ...]) -> str:
    return ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))


def pattern_case() -> tuple[str, str, list[bytes]]:
    groups = "".join(rf"(?=(?P<c{number}>[^|]*)\|)" for number in range(len(KINDS)))
    lines = [f"{word}|".encode() for word in WORDS]
    return rf"^{groups}", columns(KINDS), [*lines, b"no match", b"\xff|", b"\xe2\x82|x"]


def json_case() -> tuple[str, str, list[bytes]]:
    members = [[f'"c{number}": {value}' for number in range(len(JSON_KINDS))] for value in VALUES]
    return "json", columns(JSON_KINDS), [*(f"{{{', '.join(m)}}}".encode() for m in members), *ODD]


@pytest.mark.parametrize("case", [pattern_case, json_case])
def test_columns_are_those_of_spark(
    spark: SparkSession, log: zlog.Log, tmp_path: Path, case: Case
) -> None:
    how, schema, lines = case()
    log.append_many(lines)
    copying = Copying(spark, log, tmp_path)
    copying.run(how, schema)
    log.reconfigure(width=2)
    table = str(tmp_path / "other")
    tail = TableTail(log, table, parser=parser_of(how, schema), interval=None)
    assert sum(each.rows for each in tail.run()) == len(lines)
    ours = spark.read.parquet(table)
    expected = spark.read.parquet(copying.table)
    assert ours.schema == expected.schema
    rows = [[repr(row) for row in each.orderBy("position").collect()] for each in (ours, expected)]
    assert rows[0] == rows[1]


def test_partitions_are_those_of_spark(spark: SparkSession, log: zlog.Log, tmp_path: Path) -> None:
    words = ["a/b=c", "é ü", "..", "", "%41 'x'", '{}[]^:*?#"\\', "a b", "1"]
    log.append_many([f"<{word}>".encode() for word in words] + [b"no match"])
    copying, how = Copying(spark, log, tmp_path), "<(?P<word>.*)>"
    copying.run(how, partition_by=["word", "date"])
    table = tmp_path / "other"
    settings = {"partition_by": ["word", "date"], "interval": None}
    tail = TableTail(log, str(table), parser=parser_of(how, None), **settings)
    assert len([*tail.run()]) == 1
    found = [{*path.glob("word=*/date=*")} for path in (table, Path(copying.table))]
    names = [{str(each.relative_to(each.parents[1])) for each in some} for some in found]
    assert names[0] == names[1]
    assert len(names[0]) == len(words)
    rows = [sorted(spark.read.parquet(each).collect()) for each in (str(table), copying.table)]
    assert rows[0] == rows[1]
