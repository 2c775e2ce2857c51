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

from ..support.programs import REPOSITORY, copy_package
from ..support.waiting import wait_until
from .conftest import JAVA_OPTIONS, secrets_of
from .test_tail import cli_of, positions_of

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
    settings = (
        *("ui.enabled=false", "driver.host=127.0.0.1", "executor.memory=512m", "log.level=INFO"),
        *(f"executor.extraJavaOptions={JAVA_OPTIONS}", f"archives={archive}#environment"),
    )
    words = ["--trigger", "available-now", "--json", "--master", cluster.url]
    words += [word for each in settings for word in ("--spark-conf", f"spark.{each}")]
    table = tmp_path / "table"
    with (
        zlog.connect(ceph_url) as store,
        zlog.Log.create(store, "orders", width=4, stripe_unit=2) as log,
        (tmp_path / "driver.log").open("wb") as said,
    ):
        log.append_many([b"%d" % i for i in range(1000)])
        cli = cli_of(store)
        cli.environment["PYSPARK_PYTHON"] = python
        driver = ("spark", "tail", "orders", "--to", str(table), *words)
        process = cli.start(*driver, stderr=said, cwd=tmp_path)
        out, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, (tmp_path / "driver.log").read_text()
        assert json.loads(out)["position"] == 1000
        assert [cursor.position for cursor in log.cursors()] == [1000]
    assert positions_of(table) == list(range(1000))
    assert len(cluster.left(python)) == 2
    executors = cluster.left("stderr")
    assert len(executors) == 2
    logs = [*tmp_path.glob("*.log"), *cluster.folder.glob("*.log"), *executors]
    told = "".join(path.read_text(errors="replace") for path in logs)
    assert "CoarseGrainedExecutorBackend" in told
    assert not [key for key in secrets_of(ceph_url) if key in told]
