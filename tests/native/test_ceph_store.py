"""The store on Ceph: connecting, time-outs, OSDs that don't answer, Ioctx objects of others."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import zlog
from zlog import StoreTimeout, StoreUnavailable
from zlog._native import messages
from zlog._native.completions import CompletionQueue

from ..support.ceph import CephCluster
from ..support.waiting import wait_until
from .support import (
    OBJECT,
    SECONDS,
    answers,
    interrupt_soon,
    read,
    requests,
    run,
    seal,
    write,
    write_request,
)


@pytest.fixture
def url(ceph_cluster: CephCluster) -> str:
    return ceph_cluster.url(namespace=f"native-{uuid4().hex[:12]}")


@pytest.fixture
def store(url: str) -> Iterator[zlog.Store]:
    with zlog.connect(url) as opened:
        seal(opened)
        yield opened


@pytest.fixture
def frozen_store(store: zlog.Store, ceph_cluster: CephCluster) -> Iterator[zlog.Store]:
    """A store whose one OSD does not answer while the test runs."""
    ceph_cluster.osd("freeze", 0)
    yield store
    ceph_cluster.osd("thaw", 0)


def test_missing_pool_is_reported(ceph_cluster: CephCluster) -> None:
    with pytest.raises(StoreUnavailable, match="no pool 'missing'") as caught:
        zlog.connect(ceph_cluster.url().replace(f"ceph://{ceph_cluster.pool}", "ceph://missing"))
    assert "ceph osd pool create missing" in caught.value.hint


def test_unknown_client_is_refused(ceph_cluster: CephCluster) -> None:
    with pytest.raises(StoreUnavailable, match=r"rejects the key of client\.nobody in"):
        zlog.connect(f"{ceph_cluster.url()}&id=nobody")


def test_missing_configuration_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"configuration file .*missing"):
        zlog.connect(f"ceph://zlog?conf={tmp_path}/missing.conf")


@pytest.fixture
def silent_monitor(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster whose monitor takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        conf = tmp_path / "ceph.conf"
        conf.write_text(
            "[global]\nauth client required = none\n"
            f"mon host = [v2:127.0.0.1:{server.getsockname()[1]}]\n"
        )
        yield f"ceph://zlog?conf={conf}&timeout=1"


def test_connecting_times_out(silent_monitor: str) -> None:
    begin = time.monotonic()
    with pytest.raises(StoreTimeout, match="connect to the cluster") as caught:
        zlog.connect(silent_monitor)
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - begin < 10


def test_signal_interrupts_connecting(silent_monitor: str) -> None:
    interrupt_soon()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        zlog.connect(silent_monitor.replace("timeout=1", "timeout=5"))
    assert time.monotonic() - begin < 3


def test_signal_interrupts_operation(frozen_store: zlog.Store) -> None:
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        frozen_store.execute(OBJECT, "stat", messages.stat(1))


@pytest.mark.parametrize(("count", "payload_bytes"), [(3000, 0), (20, 8 << 20)])
def test_submit_does_not_block(frozen_store: zlog.Store, count: int, payload_bytes: int) -> None:
    """Neither for many nor for large ones: an event loop would stand still, time-outs too."""
    queue, request = CompletionQueue(), messages.stat(1)
    calls = [(OBJECT, "stat", request + bytes(payload_bytes))] * count

    def start() -> None:
        frozen_store.submit(queue, 0, calls)
        assert frozen_store.execute(OBJECT, "stat", request, timeout=0.1)[0] == -errno.ETIMEDOUT

    starting = threading.Thread(target=start)
    starting.start()
    starting.join(5)
    assert not starting.is_alive()


@contextlib.contextmanager
def paused(store: zlog.Store, ceph: CephCluster) -> Iterator[None]:
    """A cluster that takes no operations for a while: clients keep them."""
    module = pytest.importorskip("rados")
    flag = {"prefix": "osd set", "key": "pause"}
    with module.Rados(conffile=str(ceph.conf)) as cluster:
        assert cluster.mon_command(json.dumps(flag), b"")[0] == 0
        try:
            stat = OBJECT, "stat", messages.stat(1), 0.3
            wait_until(lambda: store.execute(*stat)[0] == -errno.ETIMEDOUT)
            yield
        finally:
            flag["prefix"] = "osd unset"
            assert cluster.mon_command(json.dumps(flag), b"")[0] == 0


def test_operation_given_up_is_dropped(store: zlog.Store, ceph_cluster: CephCluster) -> None:
    """Neither for as long as the cluster takes nothing, nor to be sent when it does."""
    with paused(store, ceph_cluster):
        assert store.execute(OBJECT, "write", write_request([0]), 0.3)[0] == -errno.ETIMEDOUT
        queue = CompletionQueue()
        calls = [(OBJECT, "write", write_request([position])) for position in (1, 2)]
        under_way = store.submit(queue, 7, calls)
        assert not queue.wait(0.3)
        assert under_way is not None
        under_way.give_up()
        ended = []
        while len(ended) < len(calls) and queue.wait(SECONDS):
            ended += [done[:2] for done in queue.drain()]
        assert sorted(ended) == [(7, -errno.ECANCELED), (8, -errno.ECANCELED)]
    assert write(store, [3]) == 0
    assert read(store, [0, 1, 2, 3]) == [None, None, None, b"data"]
    under_way.give_up()  # of no use any more, and no harm


def test_request_outlives_its_caller(store: zlog.Store, ceph_cluster: CephCluster) -> None:
    entries = [bytes([number]) * (4 << 20) for number in range(2)]  # more than a socket takes
    ceph_cluster.osd("freeze", 0)
    try:
        for request in requests(entries):
            code, _ = store.execute(OBJECT, "write", request, 0.2)
            assert code == -errno.ETIMEDOUT
        del request
        assert (
            len({bytes([255]) * (4 << 20) for _ in range(8)}) == 1
        )  # in the memory that was freed
    finally:
        ceph_cluster.osd("thaw", 0)
    assert write(store, [2]) == 0, "operations on one object keep their order"
    assert read(store, [0, 1, 2]) == [*entries, b"data"]


def test_results_arrive_without_interpreter_lock(store: zlog.Store) -> None:
    queue, count = CompletionQueue(), 50
    for position in range(count):
        store.submit(queue, position, [(OBJECT, "write", write_request([position]))])
    # PyDLL, unlike CDLL, keeps the interpreter lock: no other thread runs Python meanwhile.
    sleep = ctypes.PyDLL(None).usleep
    deadline, results = time.monotonic() + SECONDS, queue.drain()
    while len(results) < count and time.monotonic() < deadline:
        sleep(100_000)
        results += queue.drain()
    assert sorted(token for token, _, _ in results) == list(range(count))
    assert read(store, range(count)) == [b"data"] * count


def test_close_cancels_outstanding_operations_quickly(url: str, ceph_cluster: CephCluster) -> None:
    store = zlog.connect(url)
    seal(store)
    queue, count = CompletionQueue(), 500
    waiting = threading.Thread(target=store.execute, args=(OBJECT, "stat", messages.stat(1)))
    ceph_cluster.osd("freeze", 0)
    try:
        for position in range(count):
            store.submit(queue, position, [(OBJECT, "write", write_request([position]))])
        waiting.start()
        begin = time.monotonic()
        store.close()
        assert time.monotonic() - begin < 5
    finally:
        ceph_cluster.osd("thaw", 0)
    waiting.join(SECONDS)
    assert not waiting.is_alive()
    codes = {token: code for token, code, _ in queue.drain()}
    assert codes == dict.fromkeys(range(count), -errno.ECANCELED)


def test_dropped_store_is_closed(url: str) -> None:
    code = """
        import gc, sys, zlog
        from zlog._native import messages
        from zlog._native.completions import CompletionQueue
        queue, store = CompletionQueue(), zlog.connect(sys.argv[1])
        for token in range(200):
            store.submit(queue, token, [("object", "stat", messages.stat(1))])
        del store
        gc.collect()
        print(len(queue.drain()))
        unclosed = zlog.connect(sys.argv[1])
        unclosed.submit(queue, 0, [("object", "stat", messages.stat(1))])
    """
    assert run(code, url).strip() == "200"


def test_forked_child_must_open_its_own_store(url: str) -> None:
    code = """
        import gc, os, sys, zlog
        from zlog._native import messages
        store = zlog.connect(sys.argv[1])
        ask = lambda one: one.execute("object", "stat", messages.stat(1), 30.0)[0]
        print(ask(store), flush=True)
        if os.fork() == 0:
            try:
                ask(store)
            except zlog.StoreUnavailable as error:
                print(error, flush=True)
            store.close()
            del store
            gc.collect()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
        print(ask(store))
    """
    before, refused, after = run(code, url).splitlines()
    assert "before a fork" in refused
    assert before == after == str(-errno.ENOENT)


@pytest.fixture
def ioctx(ceph_cluster: CephCluster) -> Iterator[Any]:
    module = pytest.importorskip("rados")
    with module.Rados(conffile=str(ceph_cluster.conf)) as cluster:
        opened = cluster.open_ioctx(ceph_cluster.pool)
        opened.set_namespace(f"native-{uuid4().hex[:12]}")
        yield opened
        opened.close()


def test_ioctx_can_be_used_as_store(ioctx: Any, ceph_cluster: CephCluster) -> None:
    with zlog.connect(ioctx) as store:
        assert (store.pool, store.namespace) == (ioctx.name, ioctx.nspace)
        seal(store)
        assert write(store, [0]) == 0
        with zlog.connect(ceph_cluster.url(namespace=ioctx.nspace)) as other:
            assert read(other, [0]) == [b"data"]


def test_store_is_independent_of_its_ioctx(ioctx: Any) -> None:
    with zlog.connect(ioctx) as store:
        seal(store)
        ioctx.set_namespace("elsewhere")
        assert write(store, [0]) == 0
        ioctx.close()
        assert read(store, [0]) == [b"data"]


def test_closed_ioctx_is_refused(ioctx: Any) -> None:
    ioctx.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        zlog.connect(ioctx)


def test_object_of_another_type_is_refused() -> None:
    from zlog._native.rados import CephStore

    with pytest.raises(TypeError, match=r"expected a rados\.Ioctx"):
        CephStore.from_ioctx(object())  # type: ignore[arg-type]


def test_ioctx_of_unknown_layout_is_refused(ioctx: Any) -> None:
    from zlog._native.rados import CephStore

    unknown = type(
        "Ioctx", (type(ioctx),), {"__module__": "rados", "__slots__": ("more", "fields")}
    )
    with pytest.raises(StoreUnavailable, match="unknown to zlog") as caught:
        CephStore.from_ioctx(unknown.__new__(unknown))
    assert "ceph://" in caught.value.hint


def test_replica_reads_use_bounded_threads(store: zlog.Store, ceph_cluster: CephCluster) -> None:
    """What is too many at once is refused, until some are answered."""
    queue, request = CompletionQueue(), messages.max_position(1)
    threads = len(list(Path("/proc/self/task").iterdir()))
    ceph_cluster.osd("freeze", 0)
    for token in range(50):
        store.ask_replica(queue, token, OBJECT, "max_position", request)
    more = len(list(Path("/proc/self/task").iterdir())) - threads
    ceph_cluster.osd("thaw", 0)
    codes = sorted(code for code, _ in answers(queue, 50).values())
    assert more <= 4
    assert codes == [-errno.EBUSY] * 46 + [0] * 4

    def is_answered() -> bool:
        store.ask_replica(queue, 50, OBJECT, "max_position", request)
        assert queue.wait(SECONDS)
        return queue.drain()[0][1] == 0

    wait_until(is_answered)


@pytest.mark.parametrize("there", [True, False])
def test_connecting_does_not_change_stderr_flags(url: str, there: bool) -> None:
    """librados makes a pipe non-blocking, and with it stdout where both are one pipe."""
    kept = os.dup(2)
    ends = os.pipe()
    os.dup2(ends[1], 2)
    try:
        with contextlib.suppress(StoreUnavailable):
            zlog.connect(url if there else "ceph://pool?conf=/nowhere").close()
        assert os.get_blocking(2)
    finally:
        os.dup2(kept, 2)
        for fd in (kept, *ends):
            os.close(fd)
