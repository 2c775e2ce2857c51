"""Tasks read what was planned, as record batches, whatever the log holds there."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import zlog
from zlog.spark import _handles
from zlog.spark._driver import Planner
from zlog.spark._handles import LogRef
from zlog.spark._options import SourceOptions
from zlog.spark._read import Task, read_task

from ..support.logs import leave_hole
from ..support.metered import MeteredStore
from .conftest import options_of


def tasks(log: zlog.Log, **options: object) -> list[Task]:
    parsed = SourceOptions.parse(options_of(log, **options))
    planner = Planner(parsed)
    quick = replace(parsed, hole_timeout=0.05)
    return [Task(shares, quick) for shares in planner.plan_batch()]


def rows(planned: list[Task]) -> list[dict[str, object]]:
    """Return all rows by position, read in the way of another process."""
    planned = pickle.loads(pickle.dumps(planned))
    batches = [batch for task in planned for batch in read_task(task)]
    for batch in batches:
        batch.validate(full=True)
    found = [row for batch in batches for row in batch.to_pylist()]
    return sorted(found, key=lambda row: row["position"])


def test_hole_timeout_of_log_is_the_default(log: zlog.Log) -> None:
    hole = leave_hole(log)
    log.append(b"last")
    planned = [
        Task(task.shares, replace(task.options, hole_timeout=None))
        for task in tasks(log, includeGaps="true")
    ]
    log.reconfigure(hole_timeout=None)
    with pytest.raises(zlog.ZlogError, match="still unwritten") as raised:
        rows(planned)
    assert "set the option holeTimeout" in raised.value.hint
    log.reconfigure(hole_timeout=0)
    assert [row["state"] for row in rows(planned)] == ["filled", "written"]
    assert hole == 0


@pytest.mark.parametrize("tasks_max", [1, 3, 4])
def test_rows_match_appended_entries(log: zlog.Log, tasks_max: int) -> None:
    data = [b"%d" % i * (i % 50) for i in range(1_000)]
    log.append_many(data)
    found = rows(tasks(log, maxPartitions=tasks_max))
    assert [row["position"] for row in found] == list(range(1_000))
    assert [row["data"] for row in found] == data
    assert all(row["stripe"] == row["position"] // 2 % 4 for row in found)  # type: ignore[operator]
    assert found[7]["timestamp"] == log.read(7).timestamp


def test_include_tags_adds_column(log: zlog.Log) -> None:
    log.append_many([b"x", b"y"], tags_each=[["a", "é"], []])
    log.trim_to(0)
    found = rows(tasks(log, includeTags="true"))
    assert [sorted(row["tags"]) for row in found] == [["a", "é"], []]  # type: ignore[call-overload]
    log.trim(0)
    found = rows(tasks(log, includeTags="true", includeGaps="true"))
    assert [(row["tags"], row["state"]) for row in found] == [(None, "trimmed"), ([], "written")]


def test_only_selected_columns_are_produced(log: zlog.Log) -> None:
    log.append_many([b"x", b"y"], tags_each=[["a"], []])
    log.trim(1)
    (entry,) = rows(tasks(log, columns="timestamp, position"))
    assert entry == {"position": 0, "timestamp": log.read(0).timestamp}
    options = {"includeTags": "true", "includeGaps": "true", "columns": "state,position,tags"}
    assert rows(tasks(log, **options)) == [
        {"position": 0, "tags": ["a"], "state": "written"},
        {"position": 1, "tags": None, "state": "trimmed"},
    ]


@pytest.mark.parametrize("tags", [{}, {"tags": "t"}])
def test_unselected_data_is_not_transferred(
    log: zlog.Log, monkeypatch: pytest.MonkeyPatch, tags: dict[str, str]
) -> None:
    log.append_many([b"x" * 1_024] * 2_000, tags=["t"])
    log.trim(7)
    metered = MeteredStore(log.store)
    same = zlog.Log.open(metered, log.name)
    monkeypatch.setattr(LogRef, "open", lambda _: same)
    others = "position,stripe,timestamp"
    full = rows(tasks(log, **tags))
    assert metered.read_bytes > 2_000 * 1_024
    metered.read_bytes = 0
    assert rows(tasks(log, columns=others, **tags)) == [
        {name: row[name] for name in others.split(",")} for row in full
    ]
    assert metered.read_bytes < 2_000 * 60


def test_tags_option_selects_entries(log: zlog.Log) -> None:
    log.append_many(
        [b"%d" % i for i in range(900)], tags_each=[[f"t{i % 3}", f"u{i % 2}"] for i in range(900)]
    )
    found = rows(tasks(log, tags="t1", includeTags="true"))
    assert [row["data"] for row in found] == [b"%d" % i for i in range(1, 900, 3)]
    assert {tuple(sorted(row["tags"])) for row in found} == {("t1", "u0"), ("t1", "u1")}  # type: ignore[call-overload]
    either = rows(tasks(log, tags='["t1", "u0"]', maxPartitions=3))
    assert [row["position"] for row in either] == [
        i for i in range(900) if i % 3 == 1 or i % 2 == 0
    ]
    both = rows(tasks(log, tags="t1,u0", match="all", startingPosition=100))
    assert [row["position"] for row in both] == [i for i in range(100, 900) if i % 6 == 4]
    log.trim_to(30)
    with pytest.raises(zlog.Invalidated):
        rows(tasks(log, tags="t1", startingPosition=0))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tags": ""}, "has 0 bytes"),
        ({"tags": "[]"}, "must contain a tag"),
        ({"tags": "[1]"}, "tags="),
        ({"tags": "a", "match": "some"}, "'any' or 'all'"),
        ({"tags": "a", "includeGaps": "true"}, "cannot be combined"),
    ],
)
def test_invalid_tag_options_are_refused(log: zlog.Log, options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tasks(log, **options)


def test_holes_are_filled_and_gaps_omitted(log: zlog.Log) -> None:
    log.append(b"a")
    leave_hole(log, 5)
    log.append(b"b")
    log.trim(0)
    planned = tasks(log)
    assert [row["position"] for row in rows(planned)] == [6]
    assert [row["position"] for row in rows(planned)] == [6]
    assert [item.kind for item in log.read_range() if isinstance(item, zlog.Gap)] == [
        zlog.GapKind.TRIMMED,
        zlog.GapKind.FILLED,
    ]


@pytest.mark.parametrize("tasks_max", [1, 4])
def test_include_gaps_adds_rows(log: zlog.Log, tasks_max: int) -> None:
    log.append_many([b"x"] * 10)
    log.trim(3)
    for _ in range(4):
        leave_hole(log, 50_000)
    log.append(b"y")
    found = rows(tasks(log, includeGaps="true", maxPartitions=tasks_max))
    assert [row["position"] for row in found] == list(range(200_011))
    assert Counter(row["state"] for row in found) == {
        "written": 10,
        "trimmed": 1,
        "filled": 200_000,
    }
    assert found[3] == {
        "position": 3, "stripe": 1, "timestamp": None, "data": None, "state": "trimmed",
    }  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"minPartitions": 7}, {"maxPartitions": 1}])
def test_trim_before_planning_is_a_gap(log: zlog.Log, options: dict[str, object]) -> None:
    log.append_many([b"x"] * 20)
    log.reconfigure(width=2)
    log.append_many([b"y"] * 20)
    log.trim_to(23)
    gaps = {"includeGaps": "true", "failOnDataLoss": "false", **options}
    found = rows(tasks(log, startingPosition=3, **gaps))
    assert [(row["position"], row["state"]) for row in found] == [
        (p, "trimmed" if p < 23 else "written") for p in range(3, 40)
    ]
    assert found[0] == {
        "position": 3, "stripe": None, "timestamp": None, "data": None, "state": "trimmed",
    }  # fmt: skip
    assert [row["stripe"] for row in found[20:]] == [p // 2 % 2 for p in range(23, 40)]


def test_trim_after_planning_is_data_loss(log: zlog.Log) -> None:
    log.append_many([b"x"] * 20)
    strict, lenient = tasks(log), tasks(log, failOnDataLoss="false")
    log.trim_to(12)
    with pytest.raises(zlog.Invalidated, match="trimmed below 12"):
        rows(strict)
    assert [row["position"] for row in rows(lenient)] == list(range(12, 20))


@pytest.mark.parametrize("width", [1, 4])
def test_temporary_store_failure_does_not_duplicate_rows(
    store: zlog.Store, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    log = zlog.Log.create(store, "flaky", width=width)
    log.append_many([b"x" * 100] * 5_000)
    planned = tasks(log, maxPartitions=1)
    read_columns, failures = zlog.Log.read_columns, iter(range(3))

    def flaky(*args: Any, **options: Any) -> Iterator[zlog.Columns]:
        for columns in read_columns(*args, **options):
            yield columns
            if next(failures, None) is not None:
                raise zlog.StoreTimeout("the store is slow")

    monkeypatch.setattr(zlog.Log, "read_columns", flaky)
    assert [row["position"] for row in rows(planned)] == list(range(5_000))
    assert next(failures, None) is None


def test_permanent_store_failure_ends_query(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(b"x")
    planned = tasks(log)
    monkeypatch.setattr(_handles, "PATIENCE_SECONDS", 0.0)

    def away(*_: object, **__: object) -> None:
        raise zlog.StoreUnavailable("gone")

    monkeypatch.setattr(zlog.Log, "read_columns", away)
    with pytest.raises(zlog.StoreUnavailable, match="gone"):
        rows(planned)


def test_record_batches_match_spark_schema(log: zlog.Log) -> None:
    log.append(b"x")
    [batch] = [batch for task in tasks(log) for batch in read_task(task)]
    assert batch.schema == pa.schema(
        {
            "position": pa.int64(),
            "stripe": pa.int32(),
            "timestamp": pa.timestamp("us", "UTC"),
            "data": pa.binary(),
        }
    )
