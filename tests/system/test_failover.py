"""Several sequencers of one pool: the leader is lost, another follows, and no entry is.

Every test ends with the same look: what was acknowledged is in the log, at its position, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import groupby
from pathlib import Path
from uuid import uuid4

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._io import drive
from zlog._sequencer import BlockingSequencer
from zlog.admin import announced_sequencer
from zlog.errors import NotLeader
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT

from ..support.ceph import CephCluster, ClusterSpec
from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until
from .workers import Appender

THREE_OSDS = ClusterSpec("bluestore", osds=3)
WRITERS = 3
KILL_SECONDS = 3.0
FREEZE_SECONDS = LEASE_SECONDS_DEFAULT + 3.0
"""What issue and design allow for the first new append."""

_PATIENCE = 30.0


class Load:
    """Processes that append to a log of their own, through thick and thin.

    Args:
        url: of the store.
        folder: for what they report.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self._store = zlog.connect(url)
        self.log = zlog.Log.create(self._store, "orders", width=4, stripe_unit=2)
        self._appenders = [Appender(url, "orders", f"w{n}", folder) for n in range(WRITERS)]
        self.wait_for_all()

    def wait_for_all(self) -> None:
        """Wait until every writer has appended something that was begun after now."""
        self.resumed(time.monotonic())

    def resumed(self, moment: float) -> float:
        """Return the seconds from a moment to the end of the first append begun after it.

        Waits until that is known of every writer.
        """
        end = time.monotonic() + _PATIENCE
        while True:
            # An append that ends after the moment may have begun before it, the next one did not.
            later = [[t for t in each.times() if t > moment][1:] for each in self._appenders]
            if all(later):
                return min(times[0] for times in later) - moment
            assert not any(appender.failed for appender in self._appenders)
            assert time.monotonic() < end, "some writer does not go on"
            time.sleep(0.02)

    def address(self) -> LogAddress:
        """Return what the log is called at sequencers."""
        store = self._store
        return LogAddress(store.pool, store.namespace, "orders", self.log.view.log_id)

    def views(self) -> list[str]:
        """Return the sequencers that the log's views named, one after the other.

        Views that name the same stand for one: writers who meet may bring theirs in twice.
        """
        return [name for name, _ in groupby(view.sequencer for view in self.log.views())]

    def check(self) -> None:
        """End, and see that every entry is in the log once, where it was acknowledged."""
        for appender in self._appenders:
            appender.finish()
        reports = [appender.acknowledged() for appender in self._appenders]
        acknowledged = {position: entry for each in reports for position, entry in each.items()}
        assert len(acknowledged) == sum(map(len, reports)), "a position was acknowledged twice"
        read = {i.position: i.data for i in self.log.read_range() if isinstance(i, zlog.Entry)}
        assert read == acknowledged
        assert len(set(read.values())) == len(read)
        assert [finding for finding in self.log.check() if finding.serious] == []

    def close(self) -> None:
        for appender in self._appenders:
            appender.process.kill()
            appender.process.wait()
        self._store.close()


@pytest.fixture
def start() -> Iterator[Callable[..., SequencerProcess]]:
    """Starts sequencers, which end with the test."""
    with ExitStack() as started:
        yield lambda url: started.enter_context(SequencerProcess(url))


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[[str], Load]]:
    """Starts writers, which end with the test."""
    with ExitStack() as started:
        yield lambda url: started.enter_context(closing(Load(url, tmp_path)))


@pytest.fixture
def url(ceph_clusters) -> str:
    return ceph_clusters.shared(THREE_OSDS).url(f"failover-{uuid4().hex[:12]}")


def crew(url: str, start: Callable[..., SequencerProcess], count: int) -> list[SequencerProcess]:
    """Start sequencers, the leader first, which knows of all others when this returns."""
    sequencers = [start(url) for _ in range(count)]
    assert sequencers[0].role() == "leader"
    wait_until(lambda: len(sequencers[0].others()) == count - 1)
    return sequencers


@pytest.mark.parametrize("end", [SequencerProcess.kill, SequencerProcess.stop])
def test_ended_leader_is_replaced(url, start, load, end):
    leader, standby = crew(url, start, 2)
    writers = load(url)
    moment = time.monotonic()
    assert not end(leader)
    assert writers.resumed(moment) < KILL_SECONDS
    # An append begun after that moment may have been the last one that the leader served.
    wait_until(lambda: writers.views()[-1] == standby.address)
    assert writers.views() == ["", leader.address, standby.address]
    with zlog.connect(url) as store:
        assert announced_sequencer(store) == standby.address
    writers.check()
    assert standby.stop() == 0


def test_frozen_leader_is_replaced_and_steps_down(url, start, load):
    leader, standby = crew(url, start, 2)
    writers = load(url)
    moment = time.monotonic()
    leader.freeze()
    assert writers.resumed(moment) < FREEZE_SECONDS
    wait_until(lambda: writers.views()[-1] == standby.address)
    leader.thaw()
    writers.wait_for_all()
    wait_until(lambda: leader.role() == "standby")
    asked = BlockingSequencer(leader.address)
    with pytest.raises(NotLeader):
        drive(asked.next(writers.address(), 1, 0, Deadline(10)))
    drive(asked.close())
    assert writers.views()[-1] == standby.address
    writers.check()


def test_store_outage_does_not_end_leadership(ceph_cluster: CephCluster, start, load):
    """The lease runs out for all clients: the leader is in doubt, and then one leads again."""
    url = ceph_cluster.url("no-answer")
    leader, standby = crew(url, start, 2)
    writers = load(url)
    ceph_cluster.osd("freeze", 0)
    try:
        wait_until(lambda: leader.role() == "in doubt")
    finally:
        ceph_cluster.osd("thaw", 0)
    writers.wait_for_all()
    wait_until(lambda: sorted((leader.role(), standby.role())) == ["leader", "standby"])
    writers.wait_for_all()
    writers.check()
