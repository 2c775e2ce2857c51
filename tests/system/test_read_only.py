"""Looking at a log on Ceph from aside, while sequencers come and go."""

from __future__ import annotations

import zlog
from zlog._base.deadline import Deadline
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive
from zlog.overview import overview

from ..support.ceph import CephCluster
from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until


def test_read_only_client_does_not_trigger_takeover(ceph_cluster: CephCluster) -> None:
    """A client that appends has the log taken over; a read-only one does not."""
    url = ceph_cluster.url("looked-at")
    with zlog.connect(url) as store, zlog.Log.create(store, "orders") as log:
        with SequencerProcess(url):
            log.append(b"a")
        # Without the hint, the next leader leaves the log alone until a client asks for it.
        drive(Directory(BlockingIo(store)).used.remove_all(["orders"], Deadline(10)))
        with SequencerProcess(url) as successor:
            wait_until(lambda: successor.role() == "leader")
            before = log.views()
            with zlog.Log.open(zlog.ReadOnlyStore(store), "orders") as looked_at:
                assert looked_at.tail() == 1
                assert [item.position for item in looked_at.read_range()] == [0]
                assert not [each for each in looked_at.check() if each.serious]
            assert [each.tail for each in overview(store).logs] == [1]
            assert log.views() == before
            assert log.append(b"b") == 1
            assert log.views()[-1].sequencer == successor.address
