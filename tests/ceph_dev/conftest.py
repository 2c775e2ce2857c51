"""Fixtures: folders for clusters that are certainly taken down again."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..support.ceph import CephCluster, Clusters, ClusterSpec, choose, run_cluster_program

if TYPE_CHECKING:
    import rados

NO_CLASS = ("--class", "none")


class FolderOfCluster:
    """A folder that a cluster may be made in, and the commands for it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, command: str, *words: str) -> str:
        """Run `cluster COMMAND --dir PATH ...`; returns its stdout."""
        return run_cluster_program(command, "--dir", str(self.path), *words)

    def up(self, *words: str) -> dict[str, Any]:
        """Start a cluster without the object class, which most tests here can do without."""
        status: dict[str, Any] = json.loads(self.run("up", "--json", *NO_CLASS, *words))
        return status

    def status(self) -> dict[str, Any]:
        """What `status --json` says."""
        status: dict[str, Any] = json.loads(self.run("status", "--json"))
        return status


@pytest.fixture
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], FolderOfCluster]]:
    """Makes folders that do not exist yet; what is started in them ends with the test."""
    if choose() != "native":
        pytest.skip("the daemons run in a container here")
    folders: list[FolderOfCluster] = []

    def make() -> FolderOfCluster:
        folders.append(FolderOfCluster(tmp_path_factory.mktemp("c") / "d"))
        return folders[-1]

    yield make
    for folder in folders:
        folder.run("down")


@pytest.fixture
def folder(new_folder: Callable[[], FolderOfCluster]) -> FolderOfCluster:
    """A folder for a cluster."""
    return new_folder()


@pytest.fixture
def with_class(ceph_clusters: Clusters) -> CephCluster:
    """A running cluster with the object class."""
    return ceph_clusters.shared(ClusterSpec())


def option(conf: Path | str, entity: str, name: str) -> str:
    """An option as the daemon `entity` reads it from the conf file."""
    command = ["ceph-conf", "-c", str(conf), "-n", entity, "--show-config-value", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def ceph_osd_default(name: str) -> str:
    """The value of an option that no conf file sets."""
    command = ["ceph-osd", "--no-mon-config", "--show-config-value", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@contextlib.contextmanager
def open_pool(conf: Path | str, pool: str = "zlog", **options: str) -> Iterator[rados.Ioctx]:
    """An I/O context of a pool, through python-rados."""
    import rados

    timeouts = {"client_mount_timeout": "10", "rados_osd_op_timeout": "20"}
    with (
        rados.Rados(conffile=str(conf), conf=timeouts | options) as client,
        client.open_ioctx(pool) as ioctx,
    ):
        yield ioctx
