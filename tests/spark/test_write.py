"""Rows become entries, in the order of their task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

import zlog
from zlog.spark._options import SinkOptions
from zlog.spark._write import Appender

from .conftest import options_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = StructType().add("line", StringType())
BYTES = StructType().add("line", BinaryType())


def entries(log: zlog.Log) -> list[bytes]:
    return [item.data for item in log.read_range() if isinstance(item, zlog.Entry)]


def appender(log: zlog.Log, schema: StructType = BYTES) -> Appender:
    return Appender(SinkOptions(log.store.url, log.name), schema)


def column(values: list[object], kind: pa.DataType) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, kind)], names=["line"])


def test_a_task_appends_its_rows_in_parts(log: zlog.Log) -> None:
    small = [b"%d" % i for i in range(40_000)]
    large = [bytes([i]) * 900_000 for i in range(40)]
    batches = [column(part, pa.binary()) for part in (small, [], large)]  # type: ignore[arg-type]
    assert appender(log).append(iter(batches)).entries == 40_040
    assert entries(log) == small + large


def test_text_is_appended_as_utf_8(log: zlog.Log) -> None:
    assert appender(log, TEXT).append(iter([column(["é", ""], pa.string())])).entries == 2
    assert entries(log) == ["é".encode(), b""]


def test_a_null_is_no_entry(log: zlog.Log) -> None:
    with pytest.raises(ValueError, match="a null can't be an entry"):
        appender(log).append(iter([column([b"x", None], pa.binary())]))


@pytest.mark.parametrize(
    "schema",
    [
        StructType(),
        StructType().add("number", LongType()),
        StructType().add("a", StringType()).add("b", StringType()),
    ],
)
def test_an_entry_is_made_of_one_column(log: zlog.Log, schema: StructType) -> None:
    with pytest.raises(ValueError, match="one column of string or binary"):
        appender(log, schema)


def test_a_table_becomes_a_log(spark: SparkSession, log: zlog.Log) -> None:
    table = spark.range(1_000).selectExpr("cast(id as string) as line")
    options = options_of(log)
    table.write.format("zlog").options(**options).mode("append").save()
    assert sorted(int(data) for data in entries(log)) == list(range(1_000))
    with pytest.raises(Exception, match="never overwritten"):
        table.write.format("zlog").options(**options).mode("overwrite").save()


def test_a_stream_becomes_a_log(
    spark: SparkSession, log: zlog.Log, store: zlog.Store, tmp_path: Path
) -> None:
    copy = zlog.Log.create(store, "copy", width=2)
    for _ in range(2):
        log.append_many([b"%d" % i for i in range(500)])
        source = spark.readStream.format("zlog").options(**options_of(log)).load()
        query = (
            source.select("data")
            .writeStream.format("zlog")
            .options(store=store.url, log="copy", checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
    assert sorted(entries(copy)) == sorted(entries(log))
