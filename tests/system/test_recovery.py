"""What an OSD notes of each change, by which another one is brought up to date later."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import zlog

from ..conformance.objects import Directory, Stripe
from ..support.ceph import CephCluster, ClusterSpec
from ..support.waiting import wait_until

NOTED = re.compile(
    r"finish_ctx object \S+?:::([^:]+):head marks clean_regions .*clean_omap: (0|1|false|true)"
)


def test_attributes_change_with_keys(
    new_ceph_cluster: Callable[[ClusterSpec], CephCluster],
) -> None:
    """Else recovery may leave a copy with attributes that speak of keys which it lacks."""
    cluster = new_ceph_cluster(ClusterSpec(options=("osd:debug osd=20/20",)))
    with zlog.connect(cluster.url()) as store:
        with zlog.Log.create(store, "orders", width=2, stripe_unit=2) as log:
            log.append_many([b"x", b"y" * 40_000])
            log.tail()
            log.trim(0)
            log.trim_to(1)
            log.reconfigure(width=1)
            log.tail()
        stripe = Stripe(store, "zlog.stripe")
        stripe.seal(1)
        stripe.seal(2)
        stripe.put(2, 0, b"x")
        stripe.trim_to(2, 1)
        Directory(store, "zlog.directory").announce("tcp://a.invalid:1")
        Stripe(store, "zlog.last").seal(1)
    path = cluster.conf.parent / "log" / "osd.0.log"
    wait_until(lambda: "zlog.last:head marks" in path.read_text(errors="replace"))
    found = NOTED.findall(path.read_text(errors="replace"))
    noted = Counter((name, clean in ("1", "true")) for name, clean in found)
    assert {name for name, _ in noted} >= {"zlog.stripe", "zlog.directory", "zlog.last"}
    assert noted["zlog.stripe", False] == 4
    assert [name for name, clean in noted if clean] == []
