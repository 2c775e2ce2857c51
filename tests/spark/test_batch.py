"""Batch reads by Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

import zlog

from .conftest import options_of


def read(spark: SparkSession, log: zlog.Log, **options: object) -> DataFrame:
    return spark.read.format("zlog").options(**options_of(log, **options)).load()


def test_log_is_read_as_table(spark: SparkSession, log: zlog.Log) -> None:
    log.append_many([b"%d" % i for i in range(100)])
    table = read(spark, log)
    assert dict(table.dtypes) == {
        "position": "bigint",
        "stripe": "int",
        "timestamp": "timestamp",
        "data": "binary",
    }
    found = table.orderBy("position").collect()
    assert [(row.position, row.stripe, bytes(row.data)) for row in found] == [
        (i, i // 2 % 4, b"%d" % i) for i in range(100)
    ]
    assert table.rdd.getNumPartitions() == 4
    times = table.selectExpr("cast(timestamp as double) as seconds").orderBy("position").first()
    assert times is not None
    assert times.seconds == pytest.approx(log.read(0).timestamp.timestamp())
    some = read(spark, log, columns="data,position")
    assert (some.columns, some.count()) == (["position", "data"], 100)


def test_filters_apply_to_one_query(spark: SparkSession, log: zlog.Log) -> None:
    """A source that takes filters from Spark would apply them to all later uses as well."""
    log.append_many([b"x"] * 50)
    table = read(spark, log)
    low, high = table.where("position < 10"), table.where("position >= 40")
    assert (table.count(), low.count(), high.count(), table.count()) == (50, 10, 10, 50)
    assert low.union(high).count() == 20


def test_empty_log_yields_no_rows(spark: SparkSession, log: zlog.Log) -> None:
    with zlog.Log.create(log.store, "empty") as empty:
        table = read(spark, empty)
        assert table.collect() == []
        log.append_many([b"x"] * 20)
        assert table.count() == 0
        assert read(spark, log, endingPosition=0).union(read(spark, log)).count() == 20


@pytest.fixture
def table(spark: SparkSession, log: zlog.Log) -> Iterator[str]:
    """A table of the catalog that stands for the log."""
    more = {"includeGaps": True, "maxEntriesPerTrigger": 10, "endingPosition": 99}
    options = ", ".join(f"{name} '{value}'" for name, value in options_of(log, **more).items())
    spark.sql(f"CREATE TABLE of_a_log USING zlog OPTIONS ({options})")
    yield "of_a_log"
    spark.sql("DROP TABLE of_a_log")


def test_log_is_catalog_table(spark: SparkSession, log: zlog.Log, table: str) -> None:
    log.append_many([b"x"] * 20)
    log.trim(3)
    states = [row.state for row in spark.sql(f"SELECT * FROM {table} ORDER BY position").collect()]
    assert states == ["written"] * 3 + ["trimmed"] + ["written"] * 16
    some = spark.sql(f"SELECT max(position) FROM {table} WITH (endingPosition = 7)").first()
    assert some is not None
    assert some[0] == 6
    stream = spark.readStream.option("startingPosition", 5).table(table)
    query = stream.writeStream.format("memory").queryName("followed").start()
    try:
        query.processAllAvailable()
        assert spark.table("followed").count() == 15
    finally:
        query.stop()
    with pytest.raises(Exception, match="INSERT INTO passes no options"):
        spark.sql(f"INSERT INTO {table} SELECT * FROM {table}")


def test_catalog_table_shows_its_options(spark: SparkSession, log: zlog.Log, table: str) -> None:
    comment = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()[0].comment
    assert comment.startswith("USING zlog OPTIONS (")
    assert f"store '{log.store.url}'" in comment
    assert "log 'orders'" in comment
    statement = spark.sql(f"SHOW CREATE TABLE {table}").collect()[0][0]
    assert log.store.url in statement
    spark.sql(f"CREATE TABLE again {comment}")
    try:
        assert spark.table("again").schema == spark.table(table).schema
    finally:
        spark.sql("DROP TABLE again")


def test_columns_carry_no_option_metadata(spark: SparkSession, log: zlog.Log) -> None:
    """Whoever writes them into a file would write where the log is."""
    log.append(b"x")
    assert [column.metadata for column in read(spark, log).schema] == [{}] * 4


@pytest.mark.parametrize(
    "columns",
    ["position bigint, stripe int, timestamp timestamp, data binary", "position bigint"],
)
def test_table_with_column_list_is_refused(spark: SparkSession, columns: str) -> None:
    spark.sql(f"CREATE TABLE listed ({columns}) USING zlog OPTIONS (log 'orders')")
    try:
        with pytest.raises(Exception, match="list of columns"):
            spark.sql("SELECT * FROM listed").collect()
    finally:
        spark.sql("DROP TABLE listed")


def test_errors_have_message_and_hint(spark: SparkSession, log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    log.trim_to(5)
    with pytest.raises(
        Exception, match="trimmed below 5, but the query has only read up to 2"
    ) as caught:
        read(spark, log, startingPosition=2).count()
    assert "\nHint: Set the option failOnDataLoss to false" in str(caught.value)
    with pytest.raises(Exception, match="did you mean startingPosition"):
        read(spark, log, startingPositon=2)
