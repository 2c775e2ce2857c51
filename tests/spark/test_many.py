"""A read of several logs: what Spark's driver plans, and what a query returns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import ArrayType, StringType, StructType

import zlog
from zlog.spark import _stream
from zlog.spark._driver import Planner
from zlog.spark._fair import fair_shares
from zlog.spark._offset import Offset, WrongCheckpoint
from zlog.spark._options import SinkOptions, SourceOptions
from zlog.spark._plan import Shares
from zlog.spark._source import StreamReader
from zlog.spark._stream import StreamPlanner
from zlog.spark._write import Appended, Appender, ExactTask

from ..support.logs import data_of
from .conftest import SECONDS
from .test_driver import kept, stream


class Logs:
    """Logs of one store, by name."""

    def __init__(self, store: zlog.Store, stack: ExitStack) -> None:
        self.store = store
        self._stack = stack
        self._opened: dict[str, zlog.Log] = {}

    def __getitem__(self, name: str) -> zlog.Log:
        """Return a log, and create it if it does not exist."""
        if name not in self._opened:
            made = zlog.Log.open(self.store, name, create=True, width=2, stripe_unit=1)
            self._opened[name] = self._stack.enter_context(made)
        return self._opened[name]

    def fill(self, **counts: int) -> None:
        """Append entries to logs."""
        for name, count in counts.items():
            self[name].append_many([b"x"] * count)

    def remove(self, name: str) -> None:
        self._opened.pop(name, None)
        zlog.Log.remove(self.store, name)

    def options(self, **options: object) -> dict[str, str]:
        given = {"store": self.store.url, "holeTimeout": 0.05, "discoverInterval": 1e-9, **options}
        return {name: str(value) for name, value in given.items()}

    def stream(self, **options: object) -> StreamPlanner:
        return StreamPlanner(SourceOptions.parse(self.options(**options), streaming=True))


@pytest.fixture
def logs(store: zlog.Store) -> Iterator[Logs]:
    with ExitStack() as stack:
        yield Logs(store, stack)


def read(plan: list[Shares]) -> dict[str, list[int]]:
    """Return the positions of each log that a plan reads."""
    found: dict[str, list[int]] = {}
    for share in (share for task in plan for share in task):
        for positions in share.positions(0, 10**9):
            found.setdefault(share.log.name, []).extend(positions)
    return {name: sorted(positions) for name, positions in found.items()}


def ends(offset: Offset) -> dict[str, int]:
    return {name: each.position for name, each in offset.logs.items()}


def test_batch_reads_all_named_or_matching_logs(logs: Logs) -> None:
    logs.fill(a=3, b=2, other=1)
    for options in ({"logs": "b, a"}, {"logs": '["a", "b"]'}, {"logsPattern": "[ab]"}):
        parsed = SourceOptions.parse(
            {name: value for name, value in logs.options(**options).items() if name[0] != "d"}
        )
        assert read(Planner(parsed).plan_batch()) == {"a": [0, 1, 2], "b": [0, 1]}
    with pytest.raises(zlog.LogNotFound, match="'c'"):
        logs.stream(logs="a,c").initial()


def test_small_shares_of_many_logs_share_a_task(logs: Logs) -> None:
    names = [f"log-{number}" for number in range(20)]
    logs.fill(**dict.fromkeys(names, 4))
    reader = logs.stream(logsPattern="log-*")
    plan = reader.plan(reader.latest(reader.initial(), None))
    assert read(plan) == {name: [0, 1, 2, 3] for name in names}
    assert len(plan) == 2  # one per object of the widest stripe
    reader = logs.stream(logsPattern="log-*", minPartitions=7)
    assert len(reader.plan(reader.latest(reader.initial(), None))) == 7


def test_idle_logs_are_not_in_the_batch(logs: Logs) -> None:
    logs.fill(a=3, b=2, c=0)
    reader = logs.stream(logs="a,b,c")
    start = kept(reader.latest(reader.initial(), None))
    assert reader.latest(start, None) is start
    logs.fill(b=1)
    end = kept(reader.latest(start, None))
    assert ends(end) == {"a": 3, "b": 3, "c": 0}
    assert read(logs.stream(logs="a,b,c").plan(end)) == {"b": [2]}


def test_new_logs_begin_with_their_first_entry(logs: Logs) -> None:
    logs.fill(a=3)
    reader = logs.stream(logsPattern="?", startingPosition="latest", cursor="query")
    start = kept(reader.initial())
    logs.fill(b=2, other=1)
    end = kept(reader.latest(start, None))
    assert read(reader.plan(end)) == {"b": [0, 1]}
    assert logs["b"].cursor("query").position == 0
    logs.fill(c=1)  # found only by a process that continues the query
    again = logs.stream(logsPattern="?", startingPosition="latest", cursor="query")
    assert read(again.plan(again.latest(end, None))) == {"c": [0]}
    assert logs["b"].cursor("query").position == 2


def test_logs_are_not_listed_more_often_than_requested(logs: Logs) -> None:
    logs.fill(a=1)
    reader = logs.stream(logsPattern="?", discoverInterval=1000)
    end = reader.latest(reader.initial(), None)
    logs.fill(b=1)
    assert reader.latest(end, None) is end


def test_removed_log_ends_query_or_is_left_out(logs: Logs) -> None:
    logs.fill(a=3, b=2)
    strict, lax = (logs.stream(logsPattern="?", failOnDataLoss=each) for each in ("true", "false"))
    end = kept(strict.latest(strict.initial(), None))
    lax.latest(lax.initial(), None)
    logs.remove("b")
    logs.fill(a=1)
    restarted = logs.stream(logsPattern="?", failOnDataLoss="true")
    for reader in (strict, restarted):
        with pytest.raises(zlog.ZlogError, match="'b'") as raised:
            reader.latest(end, None)
        assert "failOnDataLoss" in raised.value.hint
    for reader in (lax, logs.stream(logsPattern="?", failOnDataLoss="false")):
        assert read(reader.plan(end)) == {"a": [0, 1, 2]}
        assert ends(reader.latest(end, None)) == {"a": 4}
    logs.fill(b=1)  # another log
    assert read(lax.plan(kept(lax.latest(end, None)))) == {"a": [3], "b": [0]}


def test_checkpoint_of_one_log_continues_with_several(logs: Logs) -> None:
    logs.fill(a=5, b=2)
    one = stream(logs["a"])
    end = kept(one.latest(one.initial(), 3))
    several = logs.stream(logs="a,b")
    assert read(several.plan(end)) == {"a": [0, 1, 2]}
    assert read(several.plan(several.latest(end, None))) == {"a": [3, 4], "b": [0, 1]}


def test_checkpoint_in_another_form_repeats_no_batch(logs: Logs) -> None:
    """Spark compares the texts of offsets."""
    logs.fill(a=5)
    one, several = (
        StreamReader(SourceOptions.parse(logs.options(**{name: "a"}), streaming=True))
        for name in ("log", "logs")
    )
    end = one.latestOffset(one.initialOffset(), ReadAllAvailable())
    assert several.latestOffset(end, ReadAllAvailable()) == end


def test_named_log_that_was_removed_is_left_out_after_restart(logs: Logs) -> None:
    logs.fill(a=3, b=2)
    lax = {"logs": "a,b", "failOnDataLoss": "false"}
    reader = logs.stream(**lax)
    end = kept(reader.latest(reader.initial(), None))
    logs.remove("b")
    again = logs.stream(**lax)
    assert read(again.plan(end)) == {"a": [0, 1, 2]}
    assert again.latest(end, None) is end


def test_checkpoint_of_other_logs_is_refused(logs: Logs) -> None:
    logs.fill(a=1, b=1, c=1)
    reader = logs.stream(logs="a,b")
    end = kept(reader.latest(reader.initial(), None))
    with pytest.raises(WrongCheckpoint, match="belongs to log 'a', not to 'b,c'"):
        logs.stream(logs="b,c").latest(end, None)
    left = logs.stream(logs="b,c", failOnDataLoss="false")
    assert ends(left.latest(end, None)) == {"b": 1, "c": 1}
    with pytest.raises(WrongCheckpoint):
        logs.stream(logs="c", failOnDataLoss="false").latest(end, None)


def test_backlog_does_not_starve_other_logs(logs: Logs) -> None:
    logs.fill(a=1000, b=3, c=200)
    reader = logs.stream(logs="a,b,c")
    end = kept(reader.latest(reader.initial(), 103))
    assert ends(end) == {"a": 50, "b": 3, "c": 50}
    assert ends(reader.latest(end, 2)) == {"a": 51, "b": 3, "c": 51}


def test_logs_take_turns_if_the_limit_is_small(logs: Logs) -> None:
    logs.fill(a=9, b=9, c=9)
    reader = logs.stream(logs="a,b,c")
    offset = reader.initial()
    for _ in range(3):
        offset = kept(reader.latest(offset, 2))
    assert ends(offset) == {"a": 2, "b": 2, "c": 2}


def test_bytes_limit_follows_entry_sizes(logs: Logs) -> None:
    logs["a"].append_many([bytes(1000)] * 100)
    logs["a"].roll()
    logs["a"].append_many([bytes(10)] * 1000)
    logs["b"].append_many([bytes(10)] * 100)
    reader = logs.stream(logs="a,b")
    offset, found = reader.initial(), []
    while (latest := kept(reader.latest(offset, None, 51_000))) != offset:
        offset = latest
        found.append(tuple(ends(offset).values()))
    assert found == [(50, 100), (200, 100), (1100, 100)]
    assert ends(reader.latest(reader.initial(), None, 1)) == {"a": 1, "b": 0}
    logs.fill(c=300)
    logs["c"].trim(200)  # gaps count as a byte
    lax = logs.stream(logs="c", includeGaps="true", failOnDataLoss="false")
    begin = Offset({"c": replace(lax.initial().logs["c"], position=0, since=0)})
    assert ends(lax.latest(begin, None, 100)) == {"c": 100}


@given(
    wanted=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 50), min_size=1),
    unit=st.integers(1, 9),
    total=st.integers(1, 200),
    last=st.sampled_from(["", *"abcdef"]),
)
def test_shares_are_fair(wanted: dict[str, int], unit: int, total: int, last: str) -> None:
    wanted = {name: count * unit for name, count in wanted.items()}
    shares = fair_shares(wanted, dict.fromkeys(wanted, unit), total, last)
    assert any(shares.values()) or not any(wanted.values())
    assert sum(shares.values()) <= max(total, unit) + 1e-6
    for name, share in shares.items():
        assert share <= wanted[name]
        if share < wanted[name]:
            assert share >= min(unit, wanted[name])
            assert all(each <= max(share, unit) + 1e-6 for each in shares.values())


def test_slow_looks_are_paced(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stream, "_SLOW_SECONDS", 0)
    monkeypatch.setattr(_stream, "_PAUSE_FACTOR", 1e9)
    logs.fill(a=1, b=1)
    reader = logs.stream(logs="a,b")
    end = reader.latest(reader.initial(), None)
    logs.fill(a=1)
    assert reader.latest(end, None) is end
    lax = logs.stream(logsPattern="?", failOnDataLoss="false")
    end = lax.latest(lax.initial(), None)
    logs.remove("b")
    lax.latest(end, None)
    assert ends(lax.tail()) == {"a": 2}


def test_rows_go_to_the_log_in_their_column(logs: Logs) -> None:
    logs.fill(a=0, b=0)
    schema = StructType().add("tags", ArrayType(StringType())).add("log", StringType())
    schema = schema.add("line", StringType())

    def batch(*rows: tuple[str | None, str]) -> pa.RecordBatch:
        names, lines = [pa.array([row[column] for row in rows], pa.string()) for column in (0, 1)]
        tags = pa.array([[line] for _, line in rows], pa.list_(pa.string()))
        return pa.record_batch([tags, names, lines], names=schema.names)

    appender = Appender(SinkOptions(logs.store.url, None), schema)
    batches = [batch(*(("ba"[n % 2], str(n)) for n in range(at, at + 20))) for at in (0, 20)]
    task = ExactTask("query", 3, 1)
    for appended in (40, 0):
        done = appender.append_once(iter(batches), task)
        assert (done.entries, done.logs) == (appended, ("a", "b"))
    for name, first in (("a", 1), ("b", 0)):
        assert data_of(logs[name].read_range()) == [b"%d" % n for n in range(first, 40, 2)]
        assert logs[name].last(str(first + 2)).position == 1
    appender.done([done, Appended(0, ("a",), "query")], 3)
    appender.append_once(iter([batch(("b", "x"))]), replace(task, partition=2))
    with pytest.raises(zlog.SequenceDiffers, match=r"log 'b': .* by 1 tasks, but"):
        appender.done([done], 3)
    for bad, error in ((None, ValueError), ("no/name", ValueError), ("c", zlog.LogNotFound)):
        with pytest.raises(error):
            appender.append(iter([batch(("a", "x"), (bad, "y"))]))
    assert logs["a"].tail() == 20
    logs.remove("a")
    logs.fill(a=0)  # this process has a handle on the log that was removed
    assert appender.append(iter([batch(("a", "x"))])).entries == 1
    assert appender.append(iter([])).entries == 0


def test_query_reads_new_logs_and_keeps_its_place(
    spark: SparkSession, logs: Logs, tmp_path: Path
) -> None:
    """In Spark: the column log, gaps, limits, a log that appears, and a log that is removed."""
    table, checkpoint = str(tmp_path / "table"), str(tmp_path / "checkpoint")

    def run() -> list[dict[str, int]]:
        options = logs.options(logsPattern="web-*", includeGaps="true", failOnDataLoss="false")
        options |= {"maxEntriesPerTrigger": "40", "columns": "log,position,state"}
        source = spark.readStream.format("zlog").options(**options).load()
        writer = source.writeStream.option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start(table)
        assert query.awaitTermination(SECONDS)
        offsets = [json.loads(each.sources[0].endOffset) for each in query.recentProgress]
        return [
            {name: position for name, (_, position, *_) in offset["logs"].items()}
            for offset in offsets
        ]

    logs.fill(**{"web-1": 70, "web-2": 5})
    logs["web-2"].trim(4)
    assert run()[:2] == [{"web-1": 35, "web-2": 5}, {"web-1": 70, "web-2": 5}]
    logs.fill(**{"web-2": 3, "web-3": 2, "db": 9})
    logs.remove("web-1")
    assert run()[0] == {"web-2": 8, "web-3": 2}
    rows = spark.read.parquet(table).collect()
    assert Counter(row.log for row in rows) == {"web-1": 70, "web-2": 8, "web-3": 2}
    assert len({(row.log, row.position) for row in rows}) == 80
    assert [(row.log, row.position) for row in rows if row.state == "trimmed"] == [("web-2", 4)]
