"""Users of a cluster with cephx, as its administrator makes them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ..support.ceph import CephCluster


def ceph(cluster: CephCluster, *words: str) -> str:
    """Run a command as the administrator."""
    command = ["ceph", "-c", str(cluster.conf), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def user(
    ceph_cluster: CephCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[..., str]:
    """Makes users with OSD caps of the test's choice; returns the URL of a store as such a user.

    All users of a test share one namespace.
    """

    def make(*caps: str, name: str = "seqr") -> str:
        client = f"{name}-{tmp_path.name}"
        keyring = tmp_path / f"{name}.keyring"
        words = ["mon", "allow r", "osd", ", ".join(caps), "-o", str(keyring)]
        ceph(ceph_cluster, "auth", "get-or-create", f"client.{client}", *words)
        request.addfinalizer(lambda: ceph(ceph_cluster, "auth", "rm", f"client.{client}"))
        conf = tmp_path / f"{name}.conf"
        lines = ceph_cluster.conf.read_text().splitlines()
        lines = [f"keyring = {keyring}" if line.startswith("keyring") else line for line in lines]
        conf.write_text("\n".join(lines) + "\n")
        return f"ceph://{ceph_cluster.pool}/{tmp_path.name}?conf={conf}&id={client}"

    return make
