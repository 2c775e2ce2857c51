"""What one replica of an object has lost on an OSD's disk is read from another, and put back."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple
from uuid import uuid4

import pytest

import zlog
from zlog import FindingKind
from zlog._native import messages
from zlog._native.completions import CompletionQueue

from ..support.ceph import CephCluster, ClusterSpec
from ..support.replicas import LOOKS, is_clean, opened_disk, placement
from ..support.waiting import wait_until

pytestmark = pytest.mark.parametrize(
    "ceph_cluster", [ClusterSpec("bluestore", osds=3)], indirect=True, ids=str
)

LARGE = [bytes([65 + i]) * 20_000 for i in range(4)]  # 80 kB: they go to the bytestream
SMALL = [b"small %d" % i for i in range(3)]


class Place(NamedTuple):
    """Something that is stored: of an object, the bytes, an attribute or the value of a key."""

    name: str
    kind: str
    key: str = ""


class Damaged:
    """A log of which one replica of each thing is damaged.

    Attributes:
        namespace: that it is in.
        url: of its store.
        places: what is damaged.
    """

    def __init__(self, cluster: CephCluster) -> None:
        self._cluster = cluster
        self.namespace = f"heal-{uuid4().hex[:8]}"
        self.url = cluster.url(self.namespace)
        with zlog.connect(self.url) as store:
            log = zlog.Log.create(store, "orders", width=1)
            log.append_many(LARGE)
            log.append_many(SMALL)
            log.cursor("reader", create=2)
            (ref,) = log.view.objects(log.view.live_stripe)
        self.stripe = ref.name
        self.head = "zlog.orders.head"
        self.places: list[Place] = []

    def damage(self, places: list[Place], rank: int) -> None:
        """Flip a byte of each place in the replica of this rank; 0 is the primary one."""
        self.places += places
        for osd in range(3):
            own = [p for p in places if self.acting(p.name)[rank] == osd]
            if own:
                with opened_disk(self._cluster, osd, self.namespace) as disk:
                    for place in own:
                        disk.set(place.name, place.kind, flipped(disk.get(*place)), place.key)
                # Else no OSD answers for a replica that is not the primary one.
                for place in places:
                    wait_until(partial(is_clean, self._cluster, self.pgid(place.name)))

    def remove_keys(self) -> None:
        """Remove all keys of the stripe object's primary replica, as recovery may leave one."""
        with opened_disk(self._cluster, self.acting(self.stripe)[0], self.namespace) as disk:
            for key in disk.keys(self.stripe):
                disk.remove_key(self.stripe, key)
        wait_until(partial(is_clean, self._cluster, self.pgid(self.stripe)))

    def pgid(self, name: str) -> str:
        """The placement group of an object."""
        return placement(self._cluster, name, self.namespace).pgid

    def acting(self, name: str) -> list[int]:
        """The OSDs that have replicas of an object."""
        return placement(self._cluster, name, self.namespace).acting

    def replicas(self) -> dict[Place, set[bytes]]:
        """What the disks of all OSDs have of what was damaged."""
        found: dict[Place, set[bytes]] = {place: set() for place in self.places}
        for osd in range(3):
            with opened_disk(self._cluster, osd, self.namespace) as disk:
                for place in self.places:
                    found[place].add(disk.get(*place))
        return found

    def open(self) -> zlog.Log:
        """A new handle on the log."""
        return zlog.Log.open(zlog.connect(self.url), "orders")


def flipped(value: bytes) -> bytes:
    """The value with another byte in its middle."""
    middle = len(value) // 2
    return value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]


def content(log: zlog.Log) -> list[bytes]:
    """The log's entries, of which none is lost."""
    items = list(log.read_range(0, log.tail()))
    assert all(isinstance(item, zlog.Entry) for item in items), items
    return [item.data for item in items if isinstance(item, zlog.Entry)]


def kinds(log: zlog.Log, **options: object) -> list[FindingKind]:
    """What an audit finds."""
    return [finding.kind for finding in log.check(**options)]  # type: ignore[arg-type]


@pytest.fixture
def damaged(ceph_cluster: CephCluster) -> Damaged:
    return Damaged(ceph_cluster)


def everything(log: Damaged) -> list[Place]:
    """A place of each kind that the class stores with a checksum."""
    with zlog.connect(log.url) as store:
        epoch = zlog.Log.open(store, "orders").view.epoch
    return [
        Place(log.stripe, "bytes"),
        Place(log.stripe, "omap", "e.0000000000000006.3"),
        Place(log.stripe, "attr", "zlog.header"),
        Place(log.head, "attr", "zlog.head"),
        Place(log.head, "omap", f"v.{epoch:016x}"),
        Place(log.head, "omap", "c.reader"),
    ]


def test_audit_names_replica_of_damaged_entry(damaged: Damaged) -> None:
    damaged.damage([Place(damaged.stripe, "bytes")], rank=0)
    with damaged.open() as log:
        lost = [each for each in log.check() if each.kind is FindingKind.LOST]
        assert {each.detail for each in lost} == {
            "damaged in the primary replica; `--repair` tries the others"
        }


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1], ids=["primary", "other"])
def test_audit_repairs_damaged_replica(damaged: Damaged, rank: int) -> None:
    damaged.damage(everything(damaged), rank)
    with damaged.open() as log:
        assert content(log) == LARGE + SMALL
        assert log.read(6).data == SMALL[2]
        assert log.cursor("reader").position == 2
        assert (log.replica_reads.get(damaged.stripe, 0) > 0) is (rank == 0)
    with damaged.open() as log:
        found = kinds(log, repair=True, replicas=LOOKS)
        assert set(found) == {FindingKind.REPAIRED}
    with damaged.open() as log:
        assert kinds(log, replicas=LOOKS) == []
        assert content(log) == LARGE + SMALL
        assert log.replica_reads == {}
    assert {place: len(values) for place, values in damaged.replicas().items()} == dict.fromkeys(
        damaged.places, 1
    )


def test_missing_entry_is_read_from_another_replica(damaged: Damaged) -> None:
    damaged.remove_keys()
    with damaged.open() as log:
        assert content(log) == LARGE + SMALL
        assert log.append(b"on") == len(LARGE + SMALL)
        # Until the append is stable, the OSDs let the primary answer for the other replicas.
        repaired = {FindingKind.REPAIRED}
        wait_until(lambda: set(kinds(log, repair=True, replicas=LOOKS)) <= repaired)
    with damaged.open() as log:
        assert content(log) == [*LARGE, *SMALL, b"on"]
        assert log.replica_reads == {}


def answering(url: str, name: str) -> set[int]:
    """The numbers of the OSDs' processes that answer for the replicas of an object."""
    queue, request = CompletionQueue(), messages.max_position(1)
    found = set[int]()
    with zlog.connect(url) as store:
        for token in range(40):
            store.ask_replica(queue, token, name, "max_position", request)
            assert queue.wait(30)
            ((_, _, reply),) = queue.drain()
            found.add(int.from_bytes(bytes(reply)[:8], "little"))
    return found


def test_replicas_have_distinct_instance_numbers(
    damaged: Damaged, ceph_cluster: CephCluster
) -> None:
    """Not by clients that run the methods themselves: there no OSD says which one it is."""
    found = set[int]()
    wait_until(lambda: found.update(answering(damaged.url, damaged.stripe)) or len(found) == 3)
    assert 0 not in found
    assert answering(ceph_cluster.url(damaged.namespace, plain=True), damaged.stripe) == {0}


@pytest.mark.long
def test_entry_is_not_lost_while_a_replica_is_down(
    damaged: Damaged, ceph_cluster: CephCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog._read.read._REPLICAS_PAUSE_SECONDS_MAX", 0.0)
    for rank in (0, 1):
        damaged.damage([Place(damaged.stripe, "bytes")], rank)
    third = damaged.acting(damaged.stripe)[2]
    ceph_cluster.osd("kill", third, wait=60)
    with damaged.open() as log:
        with pytest.raises(zlog.StoreTimeout, match="a replica that may have it did not"):
            content(log)
        ceph_cluster.osd("start", third)
        wait_until(partial(is_clean, ceph_cluster, damaged.pgid(damaged.stripe)))
        monkeypatch.undo()
        assert content(log) == LARGE + SMALL
