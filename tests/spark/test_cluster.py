"""Spark on a cluster of its own: a master and two workers, each a process with its executors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

import zlog

from ..cli.conftest import Cli
from .conftest import secrets_of

HOME = Path(pyspark.__file__).parent
SECONDS = 240
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


@contextmanager
def running(words: list[str], log: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's daemons."""
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_WORKER_DIR": str(folder),
    }
    with log.open("wb") as file:
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-class"), *words],
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(SECONDS)


def wait_for(pattern: str, log: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait until a daemon's log has such a line; returns the pattern's group."""
    end = time.monotonic() + SECONDS
    while not (found := re.search(pattern, log.read_text())):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)
    return found[1]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The URL of a master that has two workers."""
    with ExitStack() as stack:
        log = tmp_path / "master.log"
        words = [MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(running(words, log, tmp_path))
        url = wait_for(r"Starting Spark master at (spark://\S+)", log, master)
        for number in range(2):
            words = [WORKER, "--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", url]
            own = tmp_path / f"worker-{number}.log"
            worker = stack.enter_context(running(words, own, tmp_path / "work"))
            wait_for(r"(Successfully registered with master)", own, worker)
        yield url


def test_two_workers_copy_a_log(cluster: str, ceph_url: str, tmp_path: Path) -> None:
    with zlog.connect(ceph_url) as store, zlog.Log.create(store, "orders", width=4) as log:
        log.append_many([b"%d" % i for i in range(1000)])
        cli = Cli(ceph_url)
        cli.environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        words = ["orders", "--to", str(tmp_path / "table"), "--trigger", "available-now", "--json"]
        for setting in ("ui.enabled=false", "driver.host=127.0.0.1", "executor.memory=512m"):
            words += ["--spark-conf", f"spark.{setting}"]
        words += ["--spark-conf", "spark.log.level=INFO", "--master", cluster]
        with (tmp_path / "driver.log").open("wb") as said:
            process = cli.start("spark", "tail", *words, stderr=said)
        out, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, (tmp_path / "driver.log").read_text()
        assert json.loads(out)["position"] == 1000
        assert [cursor.position for cursor in log.cursors()] == [1000]
    import pyarrow.dataset as ds

    positions = ds.dataset(tmp_path / "table").to_table(columns=["position"])["position"]
    assert sorted(positions.to_pylist()) == list(range(1000))
    executors = {path.parent.name for path in (tmp_path / "work").glob("app-*/*/stderr")}
    assert len(executors) == 2
    logs = [*tmp_path.glob("*.log"), *(tmp_path / "work").rglob("stderr")]
    told = "".join(path.read_text(errors="replace") for path in logs)
    assert "CoarseGrainedExecutorBackend" in told
    assert not [key for key in secrets_of(ceph_url) if key in told]
