"""What a reader by tags costs, by the OSD's own counters.

Where methods run in the client, all that they look at is read over the network.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple
from uuid import uuid4

import pytest

import zlog

from ..support.ceph import CephCluster, ceph

STREAMS = 1_000
CHUNK_TAGS = 16_384
CHUNK_RECORDS = 1_024
"""Tags or records of an object that become a chunk of its index, by the write that comes next."""


class Cost(NamedTuple):
    """Operations that only read, and what they answered."""

    operations: int
    bytes: int


@pytest.fixture
def cost_of(ceph_cluster: CephCluster) -> Callable[[Callable[[], object]], Cost]:
    def counters() -> dict[str, int]:
        dump = json.loads(ceph(ceph_cluster, "tell", "osd.0", "perf", "dump"))
        found: dict[str, int] = dump["osd"]
        return found

    def measure(work: Callable[[], object]) -> Cost:
        before = counters()
        work()
        after = counters()
        names = ("op_r", "op_r_out_bytes")
        return Cost(*(after[name] - before[name] for name in names))

    return measure


def log_of(cluster: CephCluster, *, plain: bool) -> zlog.Log:
    store = zlog.connect(cluster.url(namespace=uuid4().hex, plain=plain))
    return zlog.Log.create(store, "orders", width=2, stripe_unit=64)


@pytest.mark.parametrize("plain", [False, True])
def test_cost_of_one_tag(
    ceph_cluster: CephCluster, cost_of: Callable[[Callable[[], object]], Cost], plain: bool
) -> None:
    log = log_of(ceph_cluster, plain=plain)
    entries = [b"%0100d" % i for i in range(1024)]
    for first in range(0, 2 * CHUNK_TAGS + 1024, 1024):
        log.append_many(entries, tags_each=[[f"s{(first + i) % STREAMS}"] for i in range(1024)])
    held = log.tail() // STREAMS * 100
    everything = cost_of(lambda: [*log.read_range()])
    assert everything.bytes > STREAMS * held
    stream = log.stream("s7")
    one = cost_of(lambda: [*stream.read_range()])
    assert len([*stream.read_range()]) == log.tail() // STREAMS + 1
    # A client that runs the method reads what is loose, the buckets, and data around the entries.
    assert one.bytes < (everything.bytes / 10 if plain else 2 * held)
    last = cost_of(lambda: stream.last())
    assert last.bytes < (everything.bytes / 10 if plain else 1_000)


def test_reverse_select_reads_records_once(
    ceph_cluster: CephCluster, cost_of: Callable[[Callable[[], object]], Cost]
) -> None:
    log = log_of(ceph_cluster, plain=True)
    for batch in (1, 200):  # many records, and many entries in each
        start = log.tail()
        for _ in range(0, 400, batch):
            log.append_many([b"x"] * batch, tags_each=[["a", f"b{i % 3}"] for i in range(batch)])
        forwards = cost_of(lambda at=start: [*log.read_range(at, tags=("a",))])
        backwards = cost_of(lambda at=start: [*log.read_range(at, tags=("a",), reverse=True)])
        assert backwards.operations < 2 * forwards.operations + 20
        assert backwards.bytes < 2 * forwards.bytes


@pytest.mark.long
def test_cost_of_other_records(
    ceph_cluster: CephCluster, cost_of: Callable[[Callable[[], object]], Cost]
) -> None:
    log = log_of(ceph_cluster, plain=True)
    # Each record lies in one object: batches fit the stripe unit.
    for i in range(2 * CHUNK_RECORDS + 128):
        tag = "rare" if i % 64 == 0 else "usual"
        log.append_many([b"%0400d" % i] * 4, tags_each=[[tag]] * 4)
    everything = cost_of(lambda: [*log.read_range(0, 8 * CHUNK_RECORDS)])
    rare = cost_of(lambda: [*log.read_range(0, 8 * CHUNK_RECORDS, tags=("rare",))])
    assert rare.bytes < everything.bytes / 5
