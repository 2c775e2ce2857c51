"""One Spark session for all tests, and a log for each.

Spark needs a Java runtime, and PySpark 4.3 needs Python 3.11.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest

import zlog

from ..support.ceph import CephCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

if sys.version_info < (3, 11):
    collect_ignore_glob = ["test_*.py"]

SECONDS = 120
"""Longer than any query takes."""

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives for seconds."""


@pytest.fixture(scope="session", autouse=True)
def _short_lived() -> Iterator[None]:
    """Have each JVM that a test starts be for seconds: the driver's, and the one that starts it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", JAVA_OPTIONS)
        patch.setenv("SPARK_LAUNCHER_OPTS", JAVA_OPTIONS)
        patch.setenv("SPARK_DAEMON_JAVA_OPTS", JAVA_OPTIONS)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small Spark on this machine. It finds the data source by itself."""
    assert shutil.which("java"), "Spark's tests need a Java runtime: apt-get install default-jre"
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        folder = tmp_path_factory.mktemp("spark")
        session = (
            SparkSession.builder.master("local[2]")
            .appName("zlog-tests")
            .config("spark.driver.memory", "1g")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture
def ceph_url(ceph_cluster: CephCluster) -> str:
    """An empty place in a cluster, as any process of this machine can open it."""
    return ceph_cluster.url(namespace=f"spark-{uuid4().hex[:12]}")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[zlog.Store]:
    """An embedded store, which Spark's processes open too."""
    with zlog.connect((tmp_path / "store").as_uri()) as opened:
        yield opened


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    """A log of width 4."""
    with zlog.Log.create(store, "orders", width=4, stripe_unit=2, hole_timeout=0.05) as opened:
        yield opened


def options_of(log: zlog.Log, **options: object) -> dict[str, str]:
    """Return the options of a read of this log."""
    given = {"store": log.store.url, "log": log.name, "holeTimeout": 0.05, **options}
    return {name: str(value) for name, value in given.items()}


def log_options(log: zlog.Log) -> dict[str, str]:
    """Return what reads and writes of this log have in common."""
    return {"store": log.store.url, "log": log.name}


class Pipeline:
    """A query that copies a log into a table, each time it is run."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.table = str(folder / "table")
        self.checkpoint = str(folder / "checkpoint")

    def run(self, log: zlog.Log, **options: object) -> StreamingQuery:
        """Run it up to the present tail, once more if Spark gave a worker up before it ran."""
        from pyspark.errors import StreamingQueryException

        source = self.spark.readStream.format("zlog").options(**options_of(log, **options)).load()
        writer = source.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", self.checkpoint)
        query = writer.start(self.table)
        try:
            assert query.awaitTermination(SECONDS)
        except StreamingQueryException as error:
            if "worker failed to connect back" not in str(error):  # in 10 s; the machine is busy
                raise
            query = writer.start(self.table)
            assert query.awaitTermination(SECONDS)
        return query

    def positions(self) -> list[int]:
        """Return what the table holds."""
        rows = self.spark.read.parquet(self.table).select("position").collect()
        return sorted(row.position for row in rows)


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path)


def secrets_of(url: str) -> set[str]:
    """Return the keys in the keyrings of a store's cluster; none where there is no cluster."""
    conf = parse_qs(urlsplit(url).query).get("conf")
    if conf is None:
        return set()
    keyrings = [path for path in Path(conf[0]).parent.rglob("*keyring*") if path.is_file()]
    keys = {key for path in keyrings for key in re.findall(r"key = (\S+)", path.read_text())}
    assert keys
    return keys
