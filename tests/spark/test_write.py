"""Rows become entries, in the order of their task."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import ArrayType, BinaryType, LongType, StringType, StructType

import zlog
from zlog.spark import ZlogDataSource
from zlog.spark._options import SinkOptions
from zlog.spark._write import Appended, Appender, ExactTask
from zlog.templates import set_template

from ..support.logs import data_of
from .conftest import log_options, options_of

TEXT = StructType().add("line", StringType())
BYTES = StructType().add("line", BinaryType())


class Copy:
    """A query that copies `orders` to `copy`, each time it is run."""

    def __init__(self, spark: SparkSession, log: zlog.Log, folder: Path, **options: str) -> None:
        self.log = zlog.Log.create(log.store, "copy", width=2, stripe_unit=2)
        self.checkpoint = folder / "checkpoint"
        self._spark = spark
        self._source = log
        self._options = {"checkpointLocation": str(self.checkpoint), **options}

    def run(self, **options: object) -> StreamingQuery:
        """Run it up to the present tail; the options are of its source."""
        given = options_of(self._source, **options)
        source = self._spark.readStream.format("zlog").options(**given).load()
        query = (
            source.select("data")
            .writeStream.format("zlog")
            .options(store=self.log.store.url, log="copy", **self._options)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        return query

    def forget_commit(self, batch: int) -> None:
        """Have Spark believe that a batch was not done, as when it died right after writing it."""
        for name in (str(batch), f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink()


def appender(log: zlog.Log, schema: StructType = BYTES) -> Appender:
    return Appender(SinkOptions(log.store.url, log.name), schema)


def column(values: list[object], kind: pa.DataType) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, kind)], names=["line"])


def test_task_appends_rows_in_batches(log: zlog.Log) -> None:
    small = [b"%d" % i for i in range(40_000)]
    large = [bytes([i]) * 900_000 for i in range(40)]
    batches = [column(part, pa.binary()) for part in (small, [], large)]  # type: ignore[arg-type]
    assert appender(log).append(iter(batches)).entries == 40_040
    assert data_of(log.read_range()) == small + large


def test_text_is_appended_as_utf_8(log: zlog.Log) -> None:
    assert appender(log, TEXT).append(iter([column(["é", ""], pa.string())])).entries == 2
    assert data_of(log.read_range()) == ["é".encode(), b""]


def test_null_is_refused(log: zlog.Log) -> None:
    with pytest.raises(ValueError, match="a row is null"):
        appender(log).append(iter([column([b"x", None], pa.binary())]))


@pytest.mark.parametrize(
    "schema",
    [
        StructType(),
        StructType().add("number", LongType()),
        StructType().add("a", StringType()).add("b", StringType()),
    ],
)
def test_entry_needs_one_text_or_binary_column(log: zlog.Log, schema: StructType) -> None:
    with pytest.raises(ValueError, match="one column of type string or binary"):
        appender(log, schema)


def test_tags_column_becomes_entry_tags(log: zlog.Log) -> None:
    schema = StructType().add("tags", ArrayType(StringType())).add("line", StringType())
    kinds = [pa.array([["a", "é"], None, []], pa.list_(pa.string())), pa.array(["1", "2", "3"])]
    batch = pa.record_batch(kinds, names=["tags", "line"])
    assert appender(log, schema).append(iter([batch])).entries == 3
    task = ExactTask("query", 3, 1)
    for appended in (3, 0):
        assert appender(log, schema).append_once(iter([batch]), task).entries == appended
    found = [(entry.data, set(entry.tags)) for entry in log.read_range()]
    assert found == [(b"1", {"a", "é"}), (b"2", set()), (b"3", set())] * 2
    with pytest.raises(ValueError, match="must be array<string>"):
        appender(log, StructType().add("tags", StringType()).add("line", StringType()))
    kinds[0] = pa.array([["a", None], [], []], pa.list_(pa.string()))
    with pytest.raises(ValueError, match="a tag is null"):
        appender(log, schema).append(iter([pa.record_batch(kinds, names=["tags", "line"])]))


def test_table_is_written_to_log(spark: SparkSession, log: zlog.Log) -> None:
    table = spark.range(1_000).selectExpr("cast(id as string) as line")
    options = log_options(log)
    table.write.format("zlog").options(**options).mode("append").save()
    assert sorted(int(data) for data in data_of(log.read_range())) == list(range(1_000))
    with pytest.raises(Exception, match="cannot be overwritten"):
        table.write.format("zlog").options(**options).mode("overwrite").save()


def test_missing_log_fails_at_start_of_write(log: zlog.Log) -> None:
    """Also if it was removed while the driver's process had it open."""
    source = ZlogDataSource(log_options(log))
    for write in (source.writer, source.streamWriter):
        write(TEXT, False)
    zlog.Log.remove(log.store, log.name)
    for write in (source.writer, source.streamWriter):
        with pytest.raises(
            zlog.LogNotFound, match=r"Hint: .*`zlog create orders`.* createLog=true"
        ):
            write(TEXT, False)


def test_missing_log_is_created_if_requested(spark: SparkSession, log: zlog.Log) -> None:
    set_template(log.store, "new*", width=2)
    table = spark.range(10).selectExpr("'new-' || id % 2 as log", "cast(id as string) as line")
    for rows, log_name in ((table, None), (table.select("line"), "new")):
        options = {**log_options(log), "createLog": "true", "log": log_name}
        options = {key: value for key, value in options.items() if value is not None}
        options.pop("holeTimeout", None)
        rows.write.format("zlog").options(**options).mode("append").save()
    for name, count in (("new", 10), ("new-0", 5), ("new-1", 5)):
        with zlog.Log.open(log.store, name) as made:
            assert (made.stat().entries, made.view.live_stripe.width) == (count, 2)


def test_rerun_task_appends_missing_rows(log: zlog.Log) -> None:
    rows = [b"%d" % i for i in range(20_000)]
    task = ExactTask("query", 3, 1)
    sent = iter([column(rows[:18_000], pa.binary()), column([None], pa.binary())])
    with pytest.raises(ValueError, match="a row is null"):
        appender(log).append_once(sent, task)
    assert len(data_of(log.read_range())) == 18_000
    again = iter([column(rows[::-1], pa.binary())])
    assert appender(log).append_once(again, task) == Appended(2_000, ("orders",), "query")
    assert sorted(data_of(log.read_range())) == sorted(rows)


def test_exactly_once_needs_streaming_query() -> None:
    with pytest.raises(RuntimeError, match="exactlyOnce"):
        ExactTask.of_stream()


def test_stream_is_written_to_log(spark: SparkSession, log: zlog.Log, tmp_path: Path) -> None:
    copy = Copy(spark, log, tmp_path)
    for _ in range(2):
        log.append_many([b"%d" % i for i in range(500)])
        query = copy.run()
    assert sorted(data_of(copy.log.read_range())) == sorted(data_of(log.read_range()))
    # What Spark has a record of is done; the last batch may be run again.
    with pytest.raises(zlog.SequenceSuperseded, match="is complete"):
        copy.log.append_once([], producer=query.id, sequence=0)


@pytest.mark.parametrize(
    ("exactly_once", "copies"), [("true", 1), pytest.param("false", 2, marks=pytest.mark.long)]
)
def test_unrecorded_batch_is_written_once(
    spark: SparkSession, log: zlog.Log, tmp_path: Path, exactly_once: str, copies: int
) -> None:
    """Unless that is switched off: then the same batch is there twice."""
    copy = Copy(spark, log, tmp_path, exactlyOnce=exactly_once)
    log.append_many([b"%d" % i for i in range(500)])
    copy.run()
    copy.forget_commit(0)
    copy.log.reconfigure(width=3)
    copy.run(minPartitions=7)
    assert Counter(data_of(copy.log.read_range())) == Counter(data_of(log.read_range()) * copies)


def test_batch_write_with_sequence_appends_once(spark: SparkSession, log: zlog.Log) -> None:
    """`foreachBatch` hands in the same number when it repeats a batch."""
    table = spark.range(40).selectExpr("cast(id as string) as line")

    def write(sequence: int, partitions: int) -> None:
        options = {**options_of(log), "producer": "counts", "sequence": str(sequence)}
        del options["holeTimeout"]
        numbered = table.repartition(partitions, "line")
        numbered.write.format("zlog").options(**options).mode("append").save()

    for sequence in (7, 7, 8):
        write(sequence, partitions=4)
    assert Counter(data_of(log.read_range())) == Counter(b"%d" % (i % 40) for i in range(80))
    with pytest.raises(Exception, match="sequence 7 of producer 'counts' is complete"):
        write(7, partitions=4)
    with pytest.raises(Exception, match="SequenceDiffers"):
        write(8, partitions=1)


def test_rerun_batch_with_fewer_tasks_is_an_error(log: zlog.Log) -> None:
    """The tasks that are missing have no chance to see that their rows are not the same."""
    rows = iter([column([b"x"], pa.binary())])
    appender(log).append_once(rows, ExactTask("counts", 3, 1))
    done = appender(log).append_once(iter([]), ExactTask("counts", 3, 0))
    with pytest.raises(zlog.SequenceDiffers, match="written by 1 tasks, but earlier by 2"):
        appender(log).done([done], 3)


@pytest.mark.parametrize("given", [{"producer": "counts"}, {"sequence": "7"}])
def test_producer_and_sequence_are_required_together(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="must be set together"):
        SinkOptions.parse({"store": "file:///logs", "log": "orders", **given})
