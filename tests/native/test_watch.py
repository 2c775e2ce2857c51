"""Notifications of objects: they wake all watchers, in other processes too, and cost little."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import zlog
from zlog._base.names import wake_object
from zlog._native.completions import CompletionQueue

from ..support.ceph import CephCluster, ClusterSpec, ceph
from ..support.stores import listed
from .support import OBJECT, SECONDS, run


@pytest.fixture
def other(store: zlog.Store, store_url: str) -> Iterator[zlog.Store]:
    """The store, opened once more; one in memory can't be."""
    if store_url == "mem://":
        yield store
    else:
        with zlog.connect(store_url) as opened:
            yield opened


def answer(queue: CompletionQueue, seconds: float = SECONDS) -> tuple[int, int]:
    """The code and the number of a wait that ends in time."""
    assert queue.wait(seconds)
    ((_, code, reply),) = queue.drain()
    return code, int.from_bytes(bytes(reply), "little")


def watch(store: zlog.Store, seen: int = 0) -> tuple[int, int]:
    """Wait until there is another number."""
    queue = CompletionQueue()
    store.watch(queue, 1, OBJECT, seen)
    return answer(queue)


def remove_watched(store: zlog.Store, object: str = OBJECT) -> int:
    """The code that it is answered with."""
    queue = CompletionQueue()
    store.remove_watched(queue, 1, object)
    return answer(queue)[0]


def test_notification_ends_all_waits(store: zlog.Store, other: zlog.Store) -> None:
    code, number = watch(store)
    assert code == 0
    assert number > 0
    queues = [CompletionQueue() for _ in range(3)]
    waits = [store.watch(queue, 7, OBJECT, number) for queue in queues]
    assert not queues[0].wait(0.05)
    other.notify(OBJECT)
    told = [answer(queue) for queue in queues]
    assert {code for code, _ in told} == {0}
    assert number not in {number for _, number in told}
    assert len(waits) == 3


def test_notification_between_waits_is_not_missed(store: zlog.Store, other: zlog.Store) -> None:
    _, number = watch(store)
    for _ in range(5):
        other.notify(OBJECT)
        code, newest = watch(store, number)  # at once, or when it arrives
        assert code == 0
        assert newest != number
        number = newest


def test_cancelled_wait_returns_ecanceled(store: zlog.Store) -> None:
    _, number = watch(store)
    queue = CompletionQueue()
    under_way = store.watch(queue, 1, OBJECT, number)
    assert under_way is not None
    under_way.give_up()
    assert answer(queue) == (-errno.ECANCELED, 0)
    under_way.give_up()
    store.notify(OBJECT)
    assert watch(store, number)[0] == 0


def test_closing_store_ends_its_waits(store: zlog.Store, store_url: str) -> None:
    other = zlog.connect(store_url)
    _, number = watch(other)
    queue = CompletionQueue()
    other.watch(queue, 1, OBJECT, number)
    began = time.monotonic()
    other.close()
    assert answer(queue) == (-errno.ECANCELED, 0)
    assert time.monotonic() - began < 3
    with pytest.raises(zlog.StoreUnavailable, match="closed"):
        other.notify(OBJECT)
    store.notify(OBJECT)  # there is no watcher


def test_processes_notify_each_other(store: zlog.Store, store_url: str, host: str) -> None:
    if host == "mem":
        return
    _, number = watch(store)
    queue = CompletionQueue()
    store.watch(queue, 1, OBJECT, number)
    run(
        """
        import sys, time, zlog
        store = zlog.connect(sys.argv[1])
        store.notify(sys.argv[2])
        time.sleep(0.2)  # it does not wait
        """,
        store_url,
        OBJECT,
    )
    assert answer(queue)[0] == 0


def test_watched_object_can_be_removed(store: zlog.Store) -> None:
    assert remove_watched(store) == 0  # there is nothing
    assert watch(store)[0] == 0
    for _ in range(2):
        assert remove_watched(store) == 0
    assert listed(store, "") == ([], 1)


def test_read_only_store_does_not_support_watch(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    zlog.connect(folder).close()
    with zlog.connect(f"{folder.as_uri()}?mode=ro") as store:
        store.notify(OBJECT)
        assert watch(store) == (-errno.EOPNOTSUPP, 0)


def operations(cluster: CephCluster) -> int:
    """How many the cluster's one OSD has carried out for clients."""
    counters = json.loads(ceph(cluster, "tell", "osd.0", "perf", "dump", "osd"))
    return int(counters["osd"]["op"])


def test_ceph_notifications_are_coalesced(ceph_cluster: CephCluster) -> None:
    with zlog.connect(ceph_cluster.url(namespace="watch-together")) as store:
        before = operations(ceph_cluster)
        _hammer(store, 1.5)
        assert operations(ceph_cluster) - before < 10, "there is no watcher"
        _, number = watch(store)
        time.sleep(1.2)  # until the store asks again whether there is a watcher
        store.notify(OBJECT)
        assert watch(store, number)[0] == 0
        before = operations(ceph_cluster)
        _hammer(store, 1.0)
        assert operations(ceph_cluster) - before < 120, "each is a notification and an answer"


def _hammer(store: zlog.Store, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        store.notify(OBJECT)


def test_lost_watch_is_renewed(ceph_cluster: CephCluster) -> None:
    """Its object is removed: the OSD says so, and the next wait begins anew."""
    with zlog.connect(ceph_cluster.url(namespace="watch-lost")) as store:
        _, number = watch(store)
        queue = CompletionQueue()
        store.watch(queue, 1, OBJECT, number)
        assert remove_watched(store) == 0
        assert answer(queue)[0] == -errno.ENOTCONN
        code, number = watch(store)  # the object is made again
        assert code == 0
        time.sleep(1.2)
        store.notify(OBJECT)
        assert watch(store, number)[0] == 0


def test_watch_outlives_its_osd(new_ceph_cluster: Callable[[ClusterSpec], CephCluster]) -> None:
    cluster = new_ceph_cluster(ClusterSpec("bluestore"))
    with zlog.connect(cluster.url()) as store:
        _, number = watch(store)
        cluster.osd("kill", 0)
        cluster.osd("start", 0, wait=30)
        end = time.monotonic() + 30
        queue = CompletionQueue()
        store.watch(queue, 1, OBJECT, number)
        while not queue.wait(0.1):
            assert time.monotonic() < end
            store.notify(OBJECT)
        assert answer(queue)[0] in (0, -errno.ENOTCONN)
        assert watch(store)[0] == 0


@pytest.mark.parametrize(
    ("caps", "code"),
    [
        ("allow rw pool=zlog", 0),
        ("allow r pool=zlog", -errno.EPERM),
        ("allow pool zlog class zlog", -errno.EPERM),
        ("allow pool zlog class zlog, allow rw pool=zlog object_prefix zlog.wake/", 0),
    ],
)
def test_watch_requires_write_cap(user: Callable[..., str], caps: str, code: int) -> None:
    """And remove what is watched. A log is removed without that, too."""
    with zlog.connect(user("allow pool zlog class zlog", name="owner")) as owner:
        zlog.Log.create(owner, "orders").close()
        with zlog.connect(user(caps, name="one")) as store:
            queue = CompletionQueue()
            store.watch(queue, 1, wake_object("orders"))
            assert answer(queue)[0] == code
            assert remove_watched(store, wake_object("orders")) == code
        zlog.Log.remove(owner, "orders")
