"""Processes that look at a log do not disturb its writer; one sequencer serves many namespaces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._io import BlockingIo, drive
from zlog.admin import sequencer_status
from zlog.seqr.election.lease import LEADER_LOCK
from zlog.seqr.election.lock import RadosLock

from ..support.ceph import CephCluster
from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until
from .workers import Appender

_ONLOOKER = """
import itertools, sys, zlog
with zlog.connect(sys.argv[1]) as store:
    for _ in range(20):
        with zlog.Log.open(store, "orders") as log:
            log.tail(); log.stat(); log.views(); list(log.check())
            list(log.read_range(max(0, log.tail() - 100)))
            list(itertools.islice(log.follow(max(0, log.tail() - 10)), 10))
    print(log.view.epoch)
"""


@pytest.mark.parametrize(
    ("store_url", "sequencers"),
    [("embedded", 0), ("ceph-memstore", 0), ("ceph-memstore", 1)],
    indirect=["store_url"],
)
def test_observers_never_disturb_writers(store_url: str, sequencers: int, tmp_path: Path) -> None:
    """Looking at a log in every way changes no epoch, and steals it from no sequencer."""
    started = [SequencerProcess(store_url) for _ in range(sequencers)]
    with zlog.connect(store_url) as store:
        log = zlog.Log.create(store, "orders", width=2, stripe_unit=2)
        log.append_many([b"before"] * 20)
        epoch = log.view.epoch
        appender = Appender(store_url, "orders", "w", tmp_path)
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", _ONLOOKER, store_url],
                capture_output=True,
                text=True,
                check=True,
                timeout=120,
                cwd=tmp_path,
            )
            assert int(done.stdout) == epoch
        appender.finish()
        assert zlog.Log.open(store, "orders").view.epoch == epoch
        assert appender.acknowledged()
    for sequencer in started:
        assert sequencer.stop() == 0


def test_one_sequencer_serves_several_namespaces(ceph_cluster: CephCluster) -> None:
    """It offers itself where it is told to, and takes their logs over as they are written."""
    urls = [ceph_cluster.url(f"place-{i}") for i in range(3)]
    sequencer = SequencerProcess(
        urls[0], "--also", f"{ceph_cluster.pool}/place-1", "--also", f"{ceph_cluster.pool}/place-2"
    )
    for url in urls:
        with zlog.connect(url) as store:
            log = zlog.Log.create(store, "orders", width=2, stripe_unit=2)
            assert log.append_many([b"a", b"b"]) == [0, 1]
            assert log.view.sequencer == sequencer.address
    assert sequencer.stop() == 0
    for url in urls:
        with zlog.connect(url) as store:
            assert zlog.Log.open(store, "orders").view.sequencer == ""


def test_sequencer_serves_namespaces_it_was_not_told_of(ceph_cluster: CephCluster) -> None:
    """For as long as they are there; then it leaves no trace."""
    home, elsewhere = ceph_cluster.url("home"), ceph_cluster.url("elsewhere")
    sequencer = SequencerProcess(home)
    with zlog.connect(elsewhere) as store:
        sequencer.announce(store)
        with zlog.Log.create(store, "orders", width=2, stripe_unit=2) as log:
            assert log.append_many([b"a", b"b"]) == [0, 1]
            assert log.view.sequencer == sequencer.address
            assert places(sequencer) == {"home", "elsewhere"}
        lease = RadosLock(BlockingIo(store), LEADER_LOCK, "", "")
        wait_until(lambda: places(sequencer) == {"home"} and not drive(lease.holders(Deadline(10))))
        assert zlog.Log.open(store, "orders").append(b"c") == 2  # it comes again
    assert sequencer.stop() == 0


def places(sequencer: SequencerProcess) -> set[str]:
    """The namespaces in which a sequencer leads or may come to lead."""
    status = sequencer_status(sequencer.address, timeout=10)
    return {each["namespace"] for each in status["namespaces"]}
