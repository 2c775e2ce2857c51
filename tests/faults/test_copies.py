"""A copy that came back with attributes and without keys, as recovery may leave one."""

from __future__ import annotations

from collections.abc import Callable

import zlog
from zlog import GapKind

from ..support.ceph import CephCluster, ClusterSpec
from .copies import differences, digests, each_osd_in_turn, remove_keys

ENTRIES = [b"x" * 9_000] * 4


def test_a_copy_that_lacks_keys_is_noticed_and_nothing_takes_their_place(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster],
) -> None:
    cluster = new_ceph_cluster(ClusterSpec("bluestore", osds=3))
    with (
        zlog.connect(cluster.url()) as store,
        zlog.Log.create(store, "orders", width=1, hole_timeout=0.01) as log,
    ):
        log.append_many(ENTRIES)
        name = log.view.object_of(0).name
        remove_keys(cluster, 1, name)
        copies, found = {}, {}
        for osd, client in each_osd_in_turn(cluster):
            found[osd] = [
                item.kind if isinstance(item, zlog.Gap) else item.data for item in log.read_range(0)
            ]
            copies[osd] = digests(client, cluster.pool)
        assert found[0] == found[2] == ENTRIES
        assert found[1] in (ENTRIES, [GapKind.LOST]), "read from another copy, if that answers"
        (difference,) = differences(copies)
        assert name in difference
        assert "0 keys" in difference
        assert log.append(b"on") == len(ENTRIES)
