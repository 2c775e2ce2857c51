"""The splitter decides as its model does, however often its batches fail and are repeated."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import zlog
from zlog.spark import late as module
from zlog.spark.late import LateSplitter

from ..support.logs import data_of
from .test_pipelines import none_is_late

Rows = list[tuple[int | None, bytes, list[str] | None]]


class Crash(Exception):
    pass


@pytest.fixture
def splitter(store: zlog.Store, monkeypatch: pytest.MonkeyPatch) -> LateSplitter:
    context = SimpleNamespace(getLocalProperty=lambda _: "query")
    monkeypatch.setattr(module, "TaskContext", SimpleNamespace(get=lambda: context))
    for name in ("on-time", "late"):
        zlog.Log.create(store, name, width=2, stripe_unit=2).close()
    return LateSplitter(store.url, on_time="on-time", late="late", time="time", delay=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_splitter_matches_model_when_batches_crash(
    splitter: LateSplitter, store: zlog.Store, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    append_once = zlog.Log.append_once

    def dies_at_times(log: zlog.Log, entries: Iterable[bytes], **how: Any) -> int:
        """Append, or only some entries, as when a process dies while its writes are in flight."""
        if chance.random() < 0.8:
            return append_once(log, entries, **how)
        every = [*entries]
        with contextlib.suppress(zlog.SequenceDiffers):  # an earlier attempt wrote others
            append_once(log, chance.sample(every, chance.randint(0, len(every))), **how)
        raise Crash

    monkeypatch.setattr(zlog.Log, "append_once", dies_at_times)
    newest = -1000
    expected: dict[str, list[bytes]] = {"on-time": [], "late": []}
    for batch in range(20):
        at = 7 * batch
        times = sorted(at + chance.randint(-25, 25) for _ in range(chance.choice((0, 1, 20))))
        rows: Rows = [(when, b"%d %d" % (when, i), ["a"][i % 2 :]) for i, when in enumerate(times)]
        rows.insert(0, (None, b"no time", None))
        recorded = False
        while not recorded:  # Spark may have no record of a batch that is complete
            with contextlib.suppress(Crash):
                splitter._write(batch, rows)
                recorded = chance.random() < 0.7
        for when, data, _ in rows:
            expected["late" if when is None or when <= newest - 10 else "on-time"].append(data)
        newest = max([newest, *times])
    for name, written in expected.items():
        with zlog.Log.open(store, name) as log:
            assert sorted(data_of(log.read_range())) == sorted(written)
            if name == "on-time":
                assert none_is_late(
                    [int(data.split()[0]) for data in data_of(log.read_range())], 10
                )
                assert data_of(log.read_range(tags=["a"]))
    with zlog.Log.open(store, "on-time.marks") as marks:
        assert len(data_of(marks.read_range())) <= 2  # older ones are trimmed


def test_new_query_continues_at_newest_time(
    splitter: LateSplitter, store: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its batches have lower numbers."""
    splitter._write(7, [(100, b"a", None)])
    context = SimpleNamespace(getLocalProperty=lambda _: "other")
    monkeypatch.setattr(module, "TaskContext", SimpleNamespace(get=lambda: context))
    splitter._write(0, [(90, b"late", None), (91, b"b", None)])
    with zlog.Log.open(store, "late") as log:
        assert data_of(log.read_range()) == [b"late"]


def test_bad_input_is_refused(splitter: LateSplitter, spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="delay must be positive"):
        replace(splitter, delay=0.0)
    with pytest.raises(ValueError, match="need another log"):
        replace(splitter, late="on-time")
    with pytest.raises(zlog.LogNotFound, match=r"'none'.*\nHint: .*`zlog create none`"):
        replace(splitter, late="none")
    with pytest.raises(ValueError, match="must have a column time of type timestamp"):
        splitter(spark.createDataFrame([], "time string, data binary"), 0)
    with pytest.raises(ValueError, match="a row is null"):
        splitter._write(0, [(1, None, None)])
