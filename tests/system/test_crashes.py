"""Sequencers and OSDs that die while a log is written: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import zlog

from ..support.ceph import CephCluster, ClusterSpec
from ..support.sequencer import SequencerProcess
from .workers import Appender, merge

THREE_OSDS = ClusterSpec("bluestore", osds=3)


def wait_for(appenders: list[Appender], entries: int) -> None:
    """Wait until that many entries are acknowledged."""
    end = time.monotonic() + 120
    while len(merge(appenders)) < entries:
        assert time.monotonic() < end
        assert not any(appender.failed for appender in appenders)
        time.sleep(0.02)


def check(log: zlog.Log, appenders: list[Appender], entries: int) -> None:
    """Every entry is in the log once, at the position that was acknowledged."""
    for appender in appenders:
        appender.wait()
    acknowledged = merge(appenders)
    assert len(acknowledged) == entries
    read = {i.position: i.data for i in log.read_range() if isinstance(i, zlog.Entry)}
    assert read == acknowledged
    assert len(set(read.values())) == len(read)
    assert [finding for finding in log.check() if finding.serious] == []


def test_a_killed_sequencer_is_replaced_by_nobody_and_then_by_itself(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster], tmp_path: Path
) -> None:
    url = new_ceph_cluster(THREE_OSDS).url()
    sequencer = SequencerProcess(url)
    with zlog.connect(url) as store:
        log = zlog.Log.create(store, "orders", width=4)
        appenders = [Appender(url, "orders", f"w{i}", 600, tmp_path, batch=3) for i in range(2)]
        wait_for(appenders, 200)
        first = zlog.Log.open(store, "orders").view
        assert first.sequencer == sequencer.address
        sequencer.kill()
        wait_for(appenders, len(merge(appenders)) + 30)  # without a sequencer
        second = zlog.Log.open(store, "orders").view
        assert (second.sequencer, second.epoch > first.epoch) == ("", True)
        sequencer = SequencerProcess(url, port=sequencer.port)
        check(log, appenders, 1200)
        assert log.append(b"last") >= 1200
        assert log.view.sequencer == sequencer.address
        assert sequencer.stop() == 0
        assert zlog.Log.open(store, "orders").view.sequencer == ""
        log.append(b"after")


def test_a_sequencer_that_comes_back_at_once_goes_on(
    ceph_cluster: CephCluster, tmp_path: Path
) -> None:
    url = ceph_cluster.url("restarted-sequencer")
    sequencer = SequencerProcess(url)
    with zlog.connect(url) as store:
        log = zlog.Log.create(store, "orders", width=4)
        appenders = [Appender(url, "orders", f"w{i}", 1500, tmp_path) for i in range(2)]
        for _ in range(3):
            wait_for(appenders, len(merge(appenders)) + 200)
            sequencer.kill()
            sequencer = SequencerProcess(url, port=sequencer.port)
        check(log, appenders, 3000)
    assert sequencer.stop() == 0


def test_an_osd_that_is_killed_and_comes_back(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster], tmp_path: Path
) -> None:
    cluster = new_ceph_cluster(THREE_OSDS)
    url = cluster.url()
    sequencer = SequencerProcess(url)
    with zlog.connect(url) as store:
        log = zlog.Log.create(store, "orders", width=8)
        appenders = [Appender(url, "orders", f"w{i}", 1000, tmp_path) for i in range(2)]
        wait_for(appenders, 200)
        cluster.osd("kill", 1)
        wait_for(appenders, len(merge(appenders)) + 200)
        cluster.osd("start", 1)
        check(log, appenders, 2000)
    assert sequencer.stop() == 0


def test_appends_that_time_out_on_a_frozen_osd_are_in_the_log_once_or_not_at_all(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster],
) -> None:
    """The OSD carries them out when it goes on, long after their callers gave up."""
    cluster = new_ceph_cluster(ClusterSpec("bluestore"))
    with zlog.connect(cluster.url()) as store:
        log = zlog.Log.create(store, "orders", width=2)
        acknowledged = {log.append(b"before"): b"before"}
        cluster.osd("freeze", 0)
        unknown = set()
        for number in range(3):
            data = b"frozen %d" % number
            with pytest.raises(zlog.StoreTimeout):
                log.append(data, timeout=0.5)
            unknown.add(data)
        cluster.osd("thaw", 0)
        for number in range(3):
            data = b"after %d" % number
            acknowledged[log.append(data)] = data
        read = {i.position: i.data for i in log.read_range() if isinstance(i, zlog.Entry)}
        assert len(set(read.values())) == len(read)
        assert {p: data for p, data in read.items() if data not in unknown} == acknowledged
        assert [finding for finding in log.check() if finding.serious] == []
