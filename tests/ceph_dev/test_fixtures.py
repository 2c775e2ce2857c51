"""The fixtures themselves: a run without Ceph says so, and containers serve as well."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..support.ceph import ClusterSpec, run_all
from ..support.container import docker_problem, start_container
from ..support.programs import REPOSITORY
from .conftest import open_pool


def run_pytest_without_ceph(**environment: str) -> subprocess.CompletedProcess[str]:
    test = "tests/ceph_dev/test_faults.py::test_killed_osd_is_detected_and_restarts"
    nowhere = {"ZLOG_TEST_CEPH": "container", "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    ours = {key: value for key, value in os.environ.items() if key != "ZLOG_REQUIRE_CEPH"}
    return subprocess.run(
        [Path(sys.executable).with_name("pytest"), "-p", "no:cacheprovider", test],
        cwd=REPOSITORY,
        env=ours | nowhere | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("choice", "reason"), [("container", "no Docker"), ("never", "ZLOG_TEST_CEPH=never")]
)
def test_skipping_ceph_is_reported(choice: str, reason: str) -> None:
    done = run_pytest_without_ceph(ZLOG_TEST_CEPH=choice)
    assert done.returncode == 0
    assert "CEPH WAS NOT TESTED" in done.stdout
    assert f"1 tests skipped: no Ceph cluster: {reason}" in done.stdout


def test_skipping_required_ceph_fails() -> None:
    done = run_pytest_without_ceph(ZLOG_REQUIRE_CEPH="1")
    assert done.returncode == 1
    assert "ZLOG_REQUIRE_CEPH=1 forbids to skip" in done.stdout


@pytest.fixture
def undo() -> Iterator[list[Callable[[], object]]]:
    actions: list[Callable[[], object]] = []
    yield actions
    run_all(actions)


@pytest.mark.long
@pytest.mark.skipif(docker_problem() is not None, reason=f"no container: {docker_problem()}")
def test_container_serves_clients(tmp_path: Path, undo: list[Callable[[], object]]) -> None:
    cluster = start_container(ClusterSpec("bluestore", osds=3), tmp_path, undo)
    assert cluster.status()["healthy"]
    with open_pool(cluster.conf) as ioctx:
        ioctx.write_full("object", b"data")
        cluster.osd("kill", 1, wait=15)
        assert cluster.status()["osds_up"] == [0, 2]
        assert ioctx.read("object") == b"data"
        cluster.osd("start", 1, wait=15)
    run_all(undo)
    assert list(tmp_path.iterdir()) == []
