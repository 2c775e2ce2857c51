"""The hosts that tests run on, and the URLs of empty stores there."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

import zlog
from zlog._native.completions import CompletionQueue

from .ceph import Clusters, ClusterSpec

PLAIN = "ceph-plain"  # the methods run in the client, on the cluster of ceph-memstore
MEMSTORE = pytest.param("ceph-memstore", marks=pytest.mark.long)
"""Where a test runs on BlueStore too, which executes the same class."""

STORES = ("mem", "embedded", MEMSTORE, "ceph-bluestore", PLAIN)


def url_of(request: pytest.FixtureRequest, folder: Path) -> str:
    """The URL of an empty store on the host that a test asks for; on Ceph a fresh namespace."""
    if request.param == "mem":
        return "mem://"
    if request.param == "embedded":
        return (folder / "store").as_uri()
    plain = request.param == PLAIN
    spec = ClusterSpec(store="memstore" if plain else request.param.removeprefix("ceph-"))
    clusters: Clusters = request.getfixturevalue("ceph_clusters")
    return clusters.shared(spec).url(namespace=f"test-{uuid4().hex[:12]}", plain=plain)


def listed(store: zlog.Store, prefix: str) -> tuple[list[str], int]:
    """All names of objects that begin so, and how many pages they took."""
    queue = CompletionQueue()
    names: list[str] = []
    after, pages = b"", 0
    while True:
        store.list_objects(queue, 3, prefix, after)
        assert queue.wait(30)
        ((token, code, reply),) = queue.drain()
        assert (token, code) == (3, 0)
        after, *page = bytes(reply).split(b"\0")
        names += (name.decode() for name in page)
        pages += 1
        if not after:
            return names, pages
