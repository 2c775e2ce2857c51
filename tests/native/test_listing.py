"""The names of a store's objects: whole, a page at a time, and none of others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import zlog
from zlog._native import messages
from zlog._native.completions import CompletionQueue

from ..support.ceph import CephCluster
from ..support.stores import listed
from .support import answers

OBJECTS = 2500  # more than two pages


def make(store: zlog.Store, name: str) -> None:
    """Make an object."""
    assert store.execute(name, "seal", messages.seal(1, 1, 0, True))[0] == 0


def test_listing_filters_by_prefix(store: zlog.Store) -> None:
    for name in ("a.", "a.1", "a.22", "a.3", "b", "a", "A.1", "a.1.x"):
        make(store, name)
    assert sorted(listed(store, "a.")[0]) == ["a.", "a.1", "a.1.x", "a.22", "a.3"]
    assert listed(store, "c")[0] == []
    assert len(listed(store, "")[0]) == 8
    assert store.execute("a.1", "remove", messages.remove(1))[0] == 0
    assert sorted(listed(store, "a.1")[0]) == ["a.1.x"]


def test_listing_spans_several_pages(store: zlog.Store, host: str) -> None:
    queue = CompletionQueue()
    names = [f"many.{number:05}" for number in range(OBJECTS)]
    seal = messages.seal(1, 1, 0, True)
    store.submit(queue, 0, [(name, "seal", seal) for name in names])
    answers(queue, OBJECTS)
    found, pages = listed(store, "many.")
    assert sorted(found) == names
    assert pages >= 3
    if host != "ceph":  # there they come as they are placed
        assert found == names
    assert sorted(listed(store, "many.0000")[0]) == names[:10]


def test_listing_runs_concurrently_with_other_operations(store: zlog.Store) -> None:
    make(store, "one")
    queue = CompletionQueue()
    stat = messages.stat(1)
    store.submit(queue, 7, [("one", "stat", stat)])
    store.list_objects(queue, 8, "on")
    found = answers(queue, 2)
    assert found[7][0] == 0
    assert found[8] == (0, b"\0one")


def test_listing_pages_through_colliding_hashes(ceph_cluster: CephCluster) -> None:
    """Others may put many objects into one place, by a key for all."""
    rados = pytest.importorskip("rados")
    names = [f"same.{number:04}" for number in range(1100)]
    with (
        rados.Rados(conffile=str(ceph_cluster.conf)) as cluster,
        cluster.open_ioctx(ceph_cluster.pool) as ioctx,
    ):
        ioctx.set_namespace("one-place")
        ioctx.set_locator_key("key")
        for started in [ioctx.aio_write_full(name, b"") for name in names]:
            started.wait_for_complete()
    with zlog.connect(ceph_cluster.url("one-place")) as store:
        make(store, "elsewhere")
        assert sorted(set(listed(store, "same.")[0])) == names
        assert listed(store, "elsewhere")[0] == ["elsewhere"]


@pytest.mark.parametrize("after", [b"nonsense", b"-1", b"4294967296", b"99999999999999999999"])
def test_invalid_listing_cursor_is_refused(ceph_cluster: CephCluster, after: bytes) -> None:
    with zlog.connect(ceph_cluster.url("nowhere")) as store:
        queue = CompletionQueue()
        store.list_objects(queue, 0, "", after)
        assert queue.wait(30)
        ((_, code, _),) = queue.drain()
        assert code < 0


@pytest.mark.parametrize(
    "begin",
    [
        lambda store, queue, token: store.ask_monitor(queue, token, '{"prefix": "health"}'),
        lambda store, queue, token: store.list_objects(queue, token, ""),
    ],
    ids=["ask", "list"],
)
def test_store_can_be_closed_during_operations(
    ceph_cluster: CephCluster,
    begin: Callable[[zlog.Store, CompletionQueue, int], None],
) -> None:
    """The last one lets go of the cluster, in any order."""
    queue = CompletionQueue()
    for token in range(20):
        with zlog.connect(ceph_cluster.url("closed")) as store:
            begin(store, queue, token)
    answers(queue, 20)
