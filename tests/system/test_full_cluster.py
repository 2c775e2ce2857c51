"""A BlueStore OSD that fills up for real: writers are told, readers go on, and trims make space."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import zlog

from ..cli.conftest import Cli
from ..client import planted
from ..support.ceph import CephCluster, Clusters, ClusterSpec
from ..support.waiting import wait_until

SECONDS = 90.0
SPACE = 150 << 20  # bytes that are left when the OSD's full ratio is set
BATCH = [bytes([n]) * 100_000 for n in range(10)]
OPTIONS = (
    "osd:osd heartbeat interval=1",  # how often the OSD looks how full it is
    f"osd:bluestore block size={4 << 30}",  # sparse; BlueFS aborts where nothing is left for it
)


class FullCluster:
    """A cluster of one OSD that counts as full when SPACE is used up."""

    def __init__(self, ceph: CephCluster, rados: Any) -> None:
        self.ceph = ceph
        self._rados = rados
        usage = self.perf("osd")
        used, size = usage["stat_bytes_used"], usage["stat_bytes"]
        for kind, part in (("nearfull", 0.90), ("backfillfull", 0.95), ("full", 1.0)):
            self._ask_monitor(f"osd set-{kind}-ratio", ratio=(used + SPACE * part) / size)

    def perf(self, section: str) -> dict[str, int]:
        """The OSD's own counters."""
        command = json.dumps({"prefix": "perf dump", "format": "json"})
        code, reply, message = self._rados.osd_command(0, command, b"")
        assert code == 0, message
        counters: dict[str, int] = json.loads(reply)[section]
        return counters

    @property
    def allocated(self) -> int:
        """Bytes of the device that objects have."""
        counters = self.perf("bluestore")
        return counters.get("allocated") or counters["bluestore_allocated"]  # up to Ceph 19

    @property
    def is_full(self) -> bool:
        """Whether the pool takes no data."""
        pools = json.loads(self._ask_monitor("osd dump", format="json"))["pools"]
        return any("full" in pool["flags_names"].split(",") for pool in pools)

    def _ask_monitor(self, prefix: str, **words: object) -> bytes:
        code, reply, message = self._rados.mon_command(json.dumps({"prefix": prefix, **words}), b"")
        assert code == 0, message
        found: bytes = reply
        return found


@pytest.fixture
def cluster(ceph_clusters: Clusters) -> Iterator[FullCluster]:
    module = pytest.importorskip("rados")
    ceph = ceph_clusters.shared(ClusterSpec("bluestore", options=OPTIONS))
    with module.Rados(conffile=str(ceph.conf)) as rados:
        yield FullCluster(ceph, rados)


def fill_up(cluster: FullCluster, log: zlog.Log) -> zlog.StoreTimeout:
    """Append until the cluster holds the appends back; returns what the writer is told then."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        began = time.monotonic()
        try:
            log.append_many(BATCH, timeout=4.0)
        except zlog.StoreTimeout as error:
            assert time.monotonic() - began < 4.0 + 3.0
            if cluster.is_full:
                return error
    raise AssertionError("the cluster did not get full")


@pytest.mark.long
def test_trim_frees_space_on_full_cluster(cluster: FullCluster) -> None:
    url = cluster.ceph.url()
    with (
        zlog.connect(url) as store,
        zlog.Log.create(store, "orders", width=2, stripe_unit=2) as log,
    ):
        planted.write(log, 2, b"another writers.", 0)  # behind two holes
        reader = log.cursor("reader", create="earliest")
        error = fill_up(cluster, log)
        assert "pool 'zlog' is full" in str(error)
        assert "zlog trim" in error.hint
        full = cluster.allocated
        assert full > SPACE // 2

        # Deliveries wait before they are granted positions: trying it again takes none.
        tail = log.tail()
        for _ in range(2):
            with pytest.raises(zlog.StoreTimeout, match="pool 'zlog' is full"):
                log.append_once([b"delivered"], producer="job", sequence=1, timeout=2.0)
        assert log.tail() == tail

        # A writer that is ready to wait: its append is held back, not lost.
        waited: list[int] = []
        waiter = threading.Thread(
            target=lambda: waited.append(log.append(b"waited", timeout=SECONDS))
        )
        waiter.start()

        # Readers go on, past holes too, and commit what they have read.
        end = log.tail() * 4 // 5
        gap, *entries = log.read_range(reader.position, end)
        assert gap[:3] == (0, 2, zlog.GapKind.FILLED)
        assert all(isinstance(item, zlog.Entry) for item in entries)
        reader.commit(end)
        log.trim(end)
        assert zlog.Log.open(store, "orders").find_time(0) == 2

        Cli(url).ok("trim", "orders", "--to", str(end))
        # BlueStore frees a moment after it has committed.
        wait_until(lambda: cluster.allocated <= full // 2, seconds=SECONDS)
        waiter.join(SECONDS)
        assert waited
        assert log.read(waited[0]).data == b"waited"
        assert log.append_many(BATCH, timeout=SECONDS)
        assert not cluster.is_full
        assert log.append_once([b"delivered"], producer="job", sequence=1, timeout=SECONDS) == 1
        assert log.append_once([b"delivered"], producer="job", sequence=1, timeout=SECONDS) == 0
        zlog.Log.remove(store, "orders", timeout=SECONDS)


@pytest.mark.long
def test_log_removal_works_on_full_cluster(cluster: FullCluster) -> None:
    with zlog.connect(cluster.ceph.url()) as store:
        with zlog.Log.create(store, "orders", width=2, stripe_unit=2) as log:
            fill_up(cluster, log)
        full = cluster.allocated
        with pytest.raises(zlog.StoreTimeout, match="pool 'zlog' is full"):
            zlog.Log.create(store, "another", timeout=2.0)
        zlog.Log.remove(store, "orders", timeout=SECONDS)
        wait_until(lambda: cluster.allocated <= full // 10, seconds=SECONDS)
        with zlog.Log.create(store, "orders", timeout=SECONDS) as log:
            assert log.append(b"first", timeout=SECONDS) == 0
