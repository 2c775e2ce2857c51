"""The stores that are measured, by their kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..support.ceph import ClusterSpec, running_cluster

_ROOM = "osd:memstore device bytes=1099511627776"
"""For memstore, which counts what was removed as still there, and stops when it is full."""


@contextmanager
def running_store(kind: str, folder: Path) -> Iterator[str]:
    """Make a store for the length of a ``with`` block, in a folder; gives its URL."""
    if kind == "embedded":
        yield (folder / kind).as_uri()
        return
    spec = ClusterSpec(kind, options=(_ROOM,) if kind == "memstore" else ())
    with running_cluster(spec, folder) as cluster:
        yield cluster.url()
