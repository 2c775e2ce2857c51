"""Ceph's class `lock`: its bytes, and what an OSD makes of them."""

from __future__ import annotations

import errno
import itertools
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import zlog
from zlog import CorruptEntry, StoreTimeout
from zlog._base.deadline import Deadline
from zlog._io import BlockingIo, drive
from zlog._native import messages
from zlog._native.completions import CompletionQueue
from zlog.seqr.election.lock import (
    Holder,
    RadosLock,
    decode_info,
)

from ..support.ceph import CephCluster
from ..support.waiting import wait_until

# As python-rados and an OSD of Ceph 16.2.15 exchanged them.
INFO = bytes.fromhex(
    "0101b0000000"  # two holders of a shared lock
    "02000000"
    "01010f000000" "08" "0e10000000000000" "02000000" "6331"
    "010138000000" "acaa006b" "ec38d108"
    "01" "01011c000000" "01000000" "e925b972" "10000000" "02000000" "7f0000010000000000000000"
    "09000000" "7463703a2f2f613a31"
    "01010f000000" "08" "0e10000000000000" "02000000" "6332"
    "010138000000" "acaa006b" "e62a0209"
    "01" "01011c000000" "01000000" "e925b972" "10000000" "02000000" "7f0000010000000000000000"
    "09000000" "7463703a2f2f623a31"
    "02" "01000000" "74"
)  # fmt: skip
FIRST = Holder(b"\x08\x0e\x10" + bytes(6), "c1", "tcp://a:1", 0x6B00AAAC + 0x08D138EC / 1e9)


def test_lock_info_is_decoded() -> None:
    first, second = decode_info(INFO)
    assert first == FIRST
    assert (second.cookie, second.description) == ("c2", "tcp://b:1")
    assert decode_info(bytes.fromhex("010109000000 00000000 00 00000000")) == []


def test_truncated_lock_info_is_refused() -> None:
    for length in range(len(INFO)):
        with pytest.raises(CorruptEntry, match="lock"):
            decode_info(INFO[:length])


@pytest.fixture(params=["osd", "client"])
def store(ceph_cluster: CephCluster, request: pytest.FixtureRequest) -> Iterator[zlog.Store]:
    """One whose OSDs run the class, and one that may not use it and does it itself."""
    url = ceph_cluster.url(namespace=f"lock-{uuid4().hex[:12]}")
    if request.param == "client":
        url = request.getfixturevalue("user")("allow rw pool=zlog")
    with zlog.connect(url) as store:
        yield store


Stores = tuple[zlog.Store, zlog.Store]


@pytest.fixture(params=itertools.product(("class", "plain"), repeat=2), ids="-".join)
def stores(
    request: pytest.FixtureRequest,
    ceph_cluster: CephCluster,
    user: Callable[..., str],
    tmp_path: Path,
) -> Iterator[Stores]:
    """Two of one place. Those that are plain may not use Ceph's class, and do what it does."""
    urls = {"class": ceph_cluster.url(tmp_path.name), "plain": user("allow rw pool=zlog")}
    one, other = (urls[each] for each in request.param)
    with zlog.connect(one) as first, zlog.connect(other) as second:
        yield first, second


def lock(store: zlog.Store, holder: str, *, shared: bool = False) -> RadosLock:
    name = "guests" if shared else "host"
    return RadosLock(BlockingIo(store), name, holder, f"at {holder}", shared=shared)


def soon() -> Deadline:
    return Deadline(10)


def test_exclusive_lock_has_one_holder(stores: Stores) -> None:
    one, other = lock(stores[0], "one"), lock(stores[1], "other")
    assert drive(one.holders(soon())) == []  # there isn't even an object
    assert drive(one.take(60, soon()))
    assert drive(one.take(60, soon()))  # renewed
    assert not drive(other.take(60, soon()))
    (holder,) = drive(other.holders(soon()))
    assert (holder.cookie, holder.description) == ("one", "at one")
    assert 0 < holder.expires - time.time() <= 61
    drive(other.release(soon()))  # not its own: nothing happens
    assert not drive(other.take(60, soon()))
    drive(one.release(soon()))
    assert drive(other.take(60, soon()))


def test_exclusive_lock_expires_after_duration(stores: Stores) -> None:
    one, other = lock(stores[0], "one"), lock(stores[1], "other")
    began = time.monotonic()
    assert drive(one.take(0.5, soon()))
    while not drive(other.take(60, soon())):
        assert time.monotonic() - began < 10
    assert time.monotonic() - began >= 0.5
    assert not drive(one.take(60, soon()))
    assert [holder.cookie for holder in drive(one.holders(soon()))] == ["other"]


def test_break_lock_removes_only_observed_holder(stores: Stores) -> None:
    one, other = lock(stores[0], "one"), lock(stores[1], "other")
    third = lock(stores[0], "third")
    assert drive(one.take(60, soon()))
    (seen,) = drive(other.holders(soon()))
    drive(other.break_(seen, soon()))
    assert drive(other.take(60, soon()))
    drive(third.break_(seen, soon()))  # too late: that one has it no more
    assert not drive(third.take(60, soon()))


def test_renewal_does_not_take_lock(stores: Stores) -> None:
    one, other = lock(stores[0], "one"), lock(stores[1], "other")
    assert not drive(one.take(60, soon(), only_renew=True))
    assert (
        stores[0].execute("zlog.directory", "directory_list", messages.directory_list("", 1))[0]
        == -2
    )
    assert drive(one.take(60, soon()))
    assert drive(one.take(60, soon(), only_renew=True))
    assert not drive(other.take(60, soon(), only_renew=True))
    drive(one.release(soon()))
    assert not drive(one.take(60, soon(), only_renew=True))


def test_shared_lock_lists_all_holders(stores: Stores) -> None:
    one, other = (
        lock(store, name, shared=True) for store, name in zip(stores, ("one", "other"), strict=True)
    )
    assert drive(one.take(60, soon()))
    assert drive(other.take(0.5, soon()))
    assert {each.description for each in drive(one.holders(soon()))} == {"at one", "at other"}
    wait_until(lambda: len(drive(one.holders(soon()))) == 1, seconds=10)


def test_client_side_lock_is_compatible_with_rados_tool(
    ceph_cluster: CephCluster, user: Callable[..., str], tmp_path: Path
) -> None:
    def rados(*words: str) -> subprocess.CompletedProcess[str]:
        place = ["-c", str(ceph_cluster.conf), "-p", ceph_cluster.pool, "-N", tmp_path.name]
        command = ["rados", *place, "lock", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with zlog.connect(user("allow rw pool=zlog")) as store:
        one = lock(store, "one")
        assert drive(one.take(60, soon()))
        info = json.loads(rados("info", "zlog.directory", "host").stdout)
        assert (info["type"], info["tag"]) == ("exclusive", "")
        (locker,) = info["lockers"]
        assert (locker["cookie"], locker["description"]) == ("one", "at one")
        assert rados("get", "zlog.directory", "host").returncode != 0
        words = ("break", "zlog.directory", "host", locker["name"], "--lock-cookie", "one")
        assert rados(*words).returncode == 0
        assert drive(one.holders(soon())) == []
        # The tool says nothing of an end, so it holds the lock for good.
        assert rados("get", "zlog.directory", "host", "--lock-cookie", "tool").returncode == 0
        assert not drive(one.take(60, soon()))
        (holder,) = drive(one.holders(soon()))
        assert holder.cookie == "tool"
        drive(one.break_(holder, soon()))
        assert drive(one.take(60, soon()))


def test_locks_and_logs_coexist(store: zlog.Store) -> None:
    assert drive(lock(store, "one").take(60, soon()))
    with zlog.Log.create(store, "orders") as log:
        assert log.append(b"x") == 0
        assert zlog.Log.list(store) == ["orders"]
    zlog.Log.remove(store, "orders")
    assert zlog.Log.list(store) == []
    assert not drive(lock(store, "other").take(60, soon()))


def test_lock_on_osd_that_does_not_answer(store: zlog.Store, ceph_cluster: CephCluster) -> None:
    one = lock(store, "one")
    assert drive(one.take(60, soon()))
    ceph_cluster.osd("freeze", 0)
    try:
        began = time.monotonic()
        with pytest.raises(StoreTimeout):
            drive(one.take(60, Deadline(0.3)))
        assert time.monotonic() - began < 2
    finally:
        threading.Thread(target=ceph_cluster.osd, args=("thaw", 0)).start()
    assert drive(one.take(60, soon()))


def test_other_class_methods_are_refused(store: zlog.Store) -> None:
    for method in ("assert_locked", ""):
        queue = CompletionQueue()
        store.lock(queue, 0, "zlog.directory", method, b"")
        assert queue.drain() == [(0, -errno.EOPNOTSUPP, b"")], method
    for method in ("lock.lock", "version.read", "objects.list", "mon.health"):
        assert store.execute("zlog.directory", method, b"")[0] == -errno.EOPNOTSUPP, method


def test_locks_always_succeed_on_other_stores(memory: zlog.Store) -> None:
    assert drive(lock(memory, "one").take(60, soon()))
    assert drive(lock(memory, "two").take(60, soon()))
    assert drive(lock(memory, "one").holders(soon())) == []


def test_service_registers_only_once(store: zlog.Store) -> None:
    """Without a manager nothing shows it, and nothing fails."""
    with zlog.connect(store.url) as other:
        other.register_service("zlog-test", uuid4().hex, {"address": "here"})
        other.update_service({"role": "leader"})
        with pytest.raises(zlog.StoreUnavailable, match="register"):
            other.register_service("zlog-test", uuid4().hex, {})
