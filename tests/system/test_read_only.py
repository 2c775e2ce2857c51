"""Looking at a log on Ceph from aside, while sequencers come and go."""

from __future__ import annotations

import zlog
from zlog.overview import overview

from ..support.ceph import CephCluster
from ..support.sequencer import SequencerProcess


def test_no_sequencer_takes_the_log_over(ceph_cluster: CephCluster) -> None:
    """One that is asked for a tail does; one that is looked at from aside does not."""
    url = ceph_cluster.url("looked-at")
    with zlog.connect(url) as store, zlog.Log.create(store, "orders") as log:
        with SequencerProcess(url):
            log.append(b"a")
        with SequencerProcess(url) as successor:
            before = len(log.views())
            with zlog.Log.open(zlog.ReadOnlyStore(store), "orders") as looked_at:
                assert looked_at.tail() == 1
                assert [item.position for item in looked_at.read_range()] == [0]
                assert not [each for each in looked_at.check() if each.serious]
            assert [each.tail for each in overview(store).logs] == [1]
            assert len(log.views()) == before
            assert log.tail() == 1
            assert successor.address
