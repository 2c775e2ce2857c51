"""Spark on a cluster of its own: a master and two workers, each a process with its executors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest

import zlog

from ..cli.conftest import Cli
from ..support.programs import REPOSITORY, copy_package
from ..support.waiting import wait_until
from .conftest import JAVA_OPTIONS, secrets_of

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
    wait_until(
        lambda: re.search(pattern, log.read_text()) or process.poll() is not None, log, SECONDS
    )
    found = re.search(pattern, log.read_text())
    assert found, log.read_text()
    return found[1]


class Cluster(NamedTuple):
    """A master that has two workers, by its URL, and the folder with what all of them leave."""

    url: str
    folder: Path

    def left(self, pattern: str) -> set[Path]:
        """Return files of applications, by a pattern in the folders of their executors."""
        return {*self.folder.glob(f"work/app-*/*/{pattern}")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Spark's daemons."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        log = folder / "master.log"
        words = [MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = stack.enter_context(running(words, log, folder))
        url = wait_for(r"Starting Spark master at (spark://\S+)", log, master)
        for number in range(2):
            words = [WORKER, "--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", url]
            own = folder / f"worker-{number}.log"
            worker = stack.enter_context(running(words, own, folder / "work"))
            wait_for(r"(Successfully registered with master)", own, worker)
        yield Cluster(url, folder)


class Copying:
    """`zlog spark tail`, as a driver of the cluster."""

    def __init__(self, master: str, store: str, folder: Path, **environment: str) -> None:
        self.cli = Cli(store)
        self.cli.environment |= {"SPARK_LOCAL_IP": "127.0.0.1", **environment}
        self.folder = folder
        self.words = ["--trigger", "available-now", "--json", "--master", master]
        for setting in ("ui.enabled=false", "driver.host=127.0.0.1", "executor.memory=512m"):
            self.words += ["--spark-conf", f"spark.{setting}"]
        self.words += ["--spark-conf", f"spark.executor.extraJavaOptions={JAVA_OPTIONS}"]

    def run(self, log: str, *words: str) -> int:
        """Copy a log as far as the tail; returns the position that is next."""
        table = str(self.folder / "table")
        with (self.folder / "driver.log").open("wb") as said:
            words = ("spark", "tail", log, "--to", table, *self.words, *words)
            process = self.cli.start(*words, stderr=said, cwd=self.folder)
        out, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, (self.folder / "driver.log").read_text()
        return int(json.loads(out)["position"])

    def positions(self) -> list[int]:
        """Return the table's positions in their order."""
        import pyarrow.dataset as ds

        table = ds.dataset(self.folder / "table").to_table(columns=["position"])
        return sorted(table["position"].to_pylist())


def pack_environment(archive: Path) -> None:
    """Pack a virtual environment that has zlog and what its workers need, as venv-pack does."""
    site = Path(sysconfig.get_path("platlib"))
    inside = Path(site.relative_to(sys.prefix))
    name = "python{}.{}".format(*sys.version_info)
    interpreter = Path(sys.base_prefix) / "bin" / name
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(Path(sys.prefix) / "pyvenv.cfg", "pyvenv.cfg")
        link = tarfile.TarInfo("bin/python")
        link.type, link.linkname = tarfile.SYMTYPE, str(interpreter)
        tar.addfile(link)
        installed = [
            copy_package(archive.parent / "package"),
            REPOSITORY / "pyspark_zlog",
            *(
                next(site.glob(name))
                for name in ("zlog_ceph-*", "click", "platformdirs", "pyarrow")
            ),
        ]
        for found in installed:
            tar.add(found, inside / found.name, filter=_without_sources)


def _without_sources(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = {"__pycache__", "include", "tests"}
    return None if left_out & set(Path(member.name).parts) else member


@pytest.mark.long
def test_two_workers_copy_a_log(cluster: Cluster, ceph_url: str, tmp_path: Path) -> None:
    """They get zlog in a packed environment, and find no other."""
    archive = tmp_path / "env.tar.gz"
    pack_environment(archive)
    python = "environment/bin/python"  # of the folder in which a process works
    (tmp_path / "environment").mkdir()
    subprocess.run(["tar", "xzf", archive, "-C", tmp_path / "environment"], check=True)
    copying = Copying(cluster.url, ceph_url, tmp_path, PYSPARK_PYTHON=python)
    settings = (f"spark.archives={archive}#environment", "spark.log.level=INFO")
    with (
        zlog.connect(ceph_url) as store,
        zlog.Log.create(store, "orders", width=4, stripe_unit=2) as log,
    ):
        log.append_many([b"%d" % i for i in range(1000)])
        words = [word for setting in settings for word in ("--spark-conf", setting)]
        assert copying.run("orders", *words) == 1000
        assert [cursor.position for cursor in log.cursors()] == [1000]
    assert copying.positions() == list(range(1000))
    assert len(cluster.left(python)) == 2
    executors = cluster.left("stderr")
    assert len(executors) == 2
    logs = [*tmp_path.glob("*.log"), *cluster.folder.glob("*.log"), *executors]
    told = "".join(path.read_text(errors="replace") for path in logs)
    assert "CoarseGrainedExecutorBackend" in told
    assert not [key for key in secrets_of(ceph_url) if key in told]
