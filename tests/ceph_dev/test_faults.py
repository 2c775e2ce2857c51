"""Daemons that die, freeze and come back."""

from __future__ import annotations

import json
import time

import pytest

from ..support.ceph import ClusterFailed
from ..support.waiting import wait_until
from .conftest import FolderOfCluster, open_pool

NOTICED = 15.0  # seconds: twice what a frozen OSD takes with the options that `up` sets


def states(folder: FolderOfCluster) -> dict[str, str]:
    return {daemon["name"]: daemon["state"] for daemon in folder.status()["daemons"]}


def test_killed_osd_is_detected_and_restarts(folder: FolderOfCluster) -> None:
    conf = folder.up("--osds", "3", "--store", "bluestore")["conf"]
    with open_pool(conf) as ioctx:
        ioctx.write_full("before", b"1")
        folder.run("osd", "kill", "1", "--wait", str(NOTICED))
        assert states(folder)["osd.1"] == "stopped"
        assert folder.status()["osds_up"] == [0, 2]
        for number in range(20):  # of which the dead one was the primary of some
            ioctx.write_full(f"while it is dead {number}", b"2")
        folder.run("osd", "start", "1", "--wait", str(NOTICED))
        assert folder.status()["healthy"]
        assert ioctx.read("before") == b"1"


def test_frozen_osd_is_detected_within_seconds(folder: FolderOfCluster) -> None:
    folder.up("--osds", "2")
    begin = time.monotonic()
    folder.run("osd", "freeze", "1", "--wait", str(NOTICED))
    assert states(folder)["osd.1"] == "frozen"
    assert time.monotonic() - begin < NOTICED
    folder.run("osd", "thaw", "1", "--wait", str(NOTICED))
    assert folder.status()["healthy"]


def test_single_osd_answers_after_thaw(folder: FolderOfCluster) -> None:
    """Also what came while its placement groups had no valid read lease."""
    conf = folder.up()["conf"]
    with open_pool(conf) as ioctx:
        names = [f"object {number}" for number in range(64)]
        for name in names:
            ioctx.write_full(name, b"before")
        folder.run("osd", "freeze", "0")
        writes = [ioctx.aio_write_full(name, b"after") for name in names]
        time.sleep(3.5)
        folder.run("osd", "thaw", "0")
        wait_until(lambda: all(write.is_complete() for write in writes), seconds=NOTICED)


def test_monitor_restarts_at_same_address(folder: FolderOfCluster) -> None:
    conf = folder.up()["conf"]
    with open_pool(conf) as ioctx:
        folder.run("mon", "kill")
        assert states(folder)["mon.a"] == "stopped"
        assert folder.status()["osds_up"] is None
        ioctx.write_full("object", b"data")  # who is connected goes on
        folder.run("mon", "start")
    with open_pool(conf) as ioctx:
        assert ioctx.read("object") == b"data"


@pytest.mark.long
def test_monitor_majority_serves_clients(folder: FolderOfCluster) -> None:
    conf = folder.up("--mons", "3")["conf"]
    folder.run("mon", "kill", "a")
    with open_pool(conf) as ioctx:
        ioctx.write_full("object", b"data")
    folder.run("mon", "kill", "b")
    # It answers for as long as its lease is good.
    wait_until(lambda: folder.status()["osds_up"] is None, seconds=NOTICED)
    folder.run("mon", "start", "b")
    with open_pool(conf) as ioctx:
        assert ioctx.read("object") == b"data"
    with pytest.raises(ClusterFailed, match=r"there is no mon\.d: the cluster has 3"):
        folder.run("mon", "kill", "d")


def test_down_stops_frozen_daemon(folder: FolderOfCluster) -> None:
    folder.up()
    folder.run("osd", "freeze", "0")
    folder.run("down", "--keep")
    assert set(states(folder).values()) == {"stopped"}


def test_stopped_daemon_cannot_be_killed(folder: FolderOfCluster) -> None:
    folder.up()
    folder.run("osd", "kill", "0")
    words = folder.run("status")
    assert "osd.0    stopped  pid -" in words
    assert "healthy  False" in words
    assert json.loads(folder.run("status", "--json"))["healthy"] is False
    for action in ("kill", "stop", "freeze", "thaw"):
        with pytest.raises(ClusterFailed, match=r"osd\.0 does not run"):
            folder.run("osd", action, "0")
    with pytest.raises(ClusterFailed, match=r"there is no osd\.1"):
        folder.run("osd", "kill", "1")
    with pytest.raises(ClusterFailed, match="no S3 gateway: start one with `up --rgw`"):
        folder.run("rgw", "kill")
