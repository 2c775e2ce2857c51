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


def disturb(url: str, folder: Path) -> None:
    """Look at a log in every way while a process writes to it; its epoch must stay."""
    with zlog.connect(url) as store:
        log = zlog.Log.create(store, "orders", width=2, stripe_unit=2)
        log.append_many([b"before"] * 20)
        epoch = log.view.epoch
        appender = Appender(url, "orders", "w", folder)
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", _ONLOOKER, url],
                capture_output=True,
                text=True,
                check=True,
                timeout=120,
                cwd=folder,
            )
            assert int(done.stdout) == epoch
        appender.finish()
        assert zlog.Log.open(store, "orders").view.epoch == epoch
        assert appender.acknowledged()


@pytest.mark.parametrize("store_url", ["embedded", "ceph-memstore"], indirect=True)
def test_observers_never_disturb_writers(store_url: str, tmp_path: Path) -> None:
    """Opening, reading, tailing and inspecting change no epoch under a log that is written."""
    disturb(store_url, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_observers_never_disturb_sequencer(store_url: str, tmp_path: Path) -> None:
    """The same with a sequencer: no client steals it by opening the log."""
    sequencer = SequencerProcess(store_url)
    disturb(store_url, tmp_path)
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


def test_timed_out_appends_are_in_the_log_once_or_never(ceph_cluster: CephCluster) -> None:
    """The OSD carries them out when it goes on, long after their callers gave up."""
    with zlog.connect(ceph_cluster.url("frozen-osd")) as store:
        log = zlog.Log.create(store, "orders", width=2, stripe_unit=2)
        acknowledged = {log.append(b"before"): b"before"}
        ceph_cluster.osd("freeze", 0)
        unknown = set()
        for number in range(3):
            data = b"frozen %d" % number
            with pytest.raises(zlog.StoreTimeout):
                log.append(data, timeout=0.5)
            unknown.add(data)
        ceph_cluster.osd("thaw", 0)
        for number in range(3):
            data = b"after %d" % number
            acknowledged[log.append(data)] = data
        read = {i.position: i.data for i in log.read_range() if isinstance(i, zlog.Entry)}
        assert len(set(read.values())) == len(read)
        assert {p: data for p, data in read.items() if data not in unknown} == acknowledged
        assert [finding for finding in log.check() if finding.serious] == []
