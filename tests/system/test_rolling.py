"""Widths that change and stripes that end, under load and with SIGKILL at every step."""

from __future__ import annotations

import logging
import time
from itertools import pairwise
from pathlib import Path

import pytest

import zlog

from ..support.ceph import CephCluster, ClusterSpec
from ..support.sequencer import SequencerProcess
from .workers import Appender, Reader, kill_changing_the_width, merge

_logger = logging.getLogger(__name__)

WRITERS = READERS = 4
ROLLS = 20
STALL_SECONDS_MAX = 20.0
"""Far above the two seconds that an append may stall: how long it did is logged, and a machine with
other things to do fails no test."""


def roll_under_load(url: str, folder: Path) -> None:
    """Width 4, 16, 8 and many full stripes, while processes write and others read."""
    with zlog.connect(url) as store:
        log = zlog.Log.create(store, "orders", width=4, stripe_records=30)
        appenders = [Appender(url, "orders", f"w{i}", None, folder, 2) for i in range(WRITERS)]
        readers = [Reader(url, "orders", i, folder) for i in range(READERS)]
        for width in (16, 8):
            wait_for_rolls(log, appenders, log.stat().stripes + ROLLS // 4)
            log.reconfigure(width=width)
        wait_for_rolls(log, appenders, ROLLS + 3)
        for appender in appenders:
            appender.finish()
        log.append(b"last")
        acknowledged = {**merge(appenders), log.tail() - 1: b"last"}

        stalls = [after - before for a in appenders for before, after in pairwise(a.times())]
        _logger.info("stalled %.3f s at most, %d appends", max(stalls), len(acknowledged))
        assert max(stalls) < STALL_SECONDS_MAX

        orders = [reader.finish() for reader in readers]
        assert all(order == orders[0] for order in orders)
        assert [position for position, _ in orders[0]] == list(range(len(orders[0])))
        assert {p: e for p, e in orders[0] if e != b"filled"} == acknowledged
        assert len(set(acknowledged.values())) == len(acknowledged)
        assert {stripe.width for stripe in log.view.stripes} >= {8}
        assert [finding for finding in log.check() if finding.serious] == []


def wait_for_rolls(log: zlog.Log, appenders: list[Appender], stripes: int) -> None:
    """Wait until the log has that many stripes."""
    end = time.monotonic() + 240
    while log.stat().stripes < stripes:
        assert time.monotonic() < end, log.stat()
        assert not any(appender.failed for appender in appenders)
        time.sleep(0.1)


def test_stripes_end_under_load_on_the_embedded_store(tmp_path: Path) -> None:
    roll_under_load((tmp_path / "store").as_uri(), tmp_path)


@pytest.mark.parametrize("ceph_cluster", [ClusterSpec("bluestore", osds=3)], indirect=True)
@pytest.mark.parametrize("sequencers", [0, 1])
def test_stripes_end_under_load_on_ceph(
    ceph_cluster: CephCluster, tmp_path: Path, sequencers: int
) -> None:
    url = ceph_cluster.url(f"rolling-{sequencers}")
    running = [SequencerProcess(url) for _ in range(sequencers)]
    roll_under_load(url, tmp_path)
    for each in running:
        assert each.stop() == 0


@pytest.mark.parametrize("store_url", ["embedded", "ceph-bluestore"], indirect=True)
def test_a_change_that_is_killed_at_any_step_is_finished_within_seconds(
    store_url: str, tmp_path: Path
) -> None:
    methods: list[str] = []
    with zlog.connect(store_url) as store:
        while "done" not in methods:
            name = f"log{len(methods)}"
            log = zlog.Log.create(store, name, width=2)
            log.append_many([b"a", b"b", b"c"])
            methods.append(kill_changing_the_width(store_url, name, 3, len(methods), tmp_path))
            began = time.monotonic()
            assert log.append(b"d") == 3
            took = time.monotonic() - began
            _logger.info("killed before %s: next append %.3f s", methods[-1], took)
            assert took < STALL_SECONDS_MAX
            assert log.reconfigure(width=3).live_stripe.width == 3
            assert log.append(b"e") == 4
            entries = [i.data for i in log.read_range() if isinstance(i, zlog.Entry)]
            assert entries == [b"a", b"b", b"c", b"d", b"e"]
            assert list(log.check()) == []
    assert methods.count("seal") == 2 + 3
    assert {"epoch_next", "view_propose"} < set(methods)
