"""Patterns as Python writes them mean in Spark what they mean in Python."""

from __future__ import annotations

import re
import warnings

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from zlog.spark._regex import LinePattern

PATTERNS = [
    r"^(?P<first_word>\S+) (?P<rest>.*)$",
    r"(?P<a>\w+)-(?P=a)",
    r"(?P<in_brackets>[[][^[\]]*[]])",
    r"(?P<set>[]a&&b-]+)",
    r"(?P<brace>{\w+})",
    r"(?P<few>a{,2}b{1,3}c{2})",
    r"(?P<end>b)\Z",
    r"(?i)(?P<level>ERROR|WARN)(?:\s|$)",
    r"(?x) (?P<x>[a #]+)  # a comment",
    r"(?P<digits>\d+)\v?",
    r"(unnamed )?(?P<tab>\t|é+)",
    r"(?P<any>a.c)",
]
LINES = [
    *("first second third", "warn of this", "ab-ab", "x [y z] [", "]a&b-", "{key} {", "aabbcc"),
    *("12\x0b", "٣٤", "\té", "unnamed ééé", "a\rc", "a\x85c", "abcb", "b\n", "", "a # b", "Error"),
]


def test_translated_patterns_match_like_python(spark: SparkSession) -> None:
    table = spark.createDataFrame([(line,) for line in LINES], "line string").coalesce(1)
    compiled = [LinePattern.compile(pattern) for pattern in PATTERNS]
    columns = [
        f.when(f.rlike("line", f.lit(each.java)), f.regexp_extract("line", each.java, number))
        for each in compiled
        for number in each.columns.values()
    ]
    found = [tuple(row) for row in table.select(columns).collect()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        matches = [[re.search(pattern, line) for pattern in PATTERNS] for line in LINES]
    assert found == [
        tuple(
            None if match is None else match[name] or ""
            for match, each in zip(row, compiled, strict=True)
            for name in each.columns
        )
        for row in matches
    ]
    assert all(any(row[index] for row in matches) for index in range(len(PATTERNS)))


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [("(?P<a>", "does not compile"), ("(a)(b)", "has no named group")],
)
def test_invalid_patterns_are_refused(pattern: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        LinePattern.compile(pattern)
