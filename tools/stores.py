"""Stores for the tools: the one that is named, else a cluster of their own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import ROOT, said

_CLUSTER = ROOT / "ceph-dev" / "cluster"
_MEMSTORE_BYTES = "1T"
"""Room that memstore is told to have: it counts what was removed as still there, and stops."""


def store_parser(tool: str) -> argparse.ArgumentParser:
    """A parser with the options that say which store a tool works in."""
    parser = argparse.ArgumentParser(
        prog=tool, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--store", help="URL of an empty store; else a cluster is started")
    parser.add_argument("--osds", type=int, default=1, help="of the cluster that is started")
    parser.add_argument("--folder", type=Path, help="where that cluster lives, on a disk")
    parser.add_argument("--class", dest="library", help="libcls_zlog.so for it; built if not given")
    return parser


@contextmanager
def empty_store(options: argparse.Namespace) -> Iterator[str]:
    """The URL of the store; a cluster of its own for the length of the run if none is named."""
    if options.store:
        yield options.store
        return
    with ceph_store("bluestore", options.folder, options.library, options.osds) as url:
        yield url


@contextmanager
def ceph_store(
    kind: str, folder: Path | None, library: Path | str | None = None, osds: int = 1
) -> Iterator[str]:
    """Start a cluster for the length of a ``with`` block; gives the URL of its pool.

    Args:
        kind: ``memstore`` or ``bluestore``.
        folder: where it lives; None: where ``ceph-dev/cluster`` has it.
        library: the object class; None: the one of ``$ZLOG_CLASS``, else it is built.
        osds: how many it has.

    Raises:
        ProgramFailed: it can't be started, or ended.
    """
    words = ["--store", kind, "--osds", str(osds)]
    if kind == "memstore":
        words += ["--osd-bytes", _MEMSTORE_BYTES]
    if library:
        words += ["--class", str(library)]
    where = ["--dir", str(folder)] if folder else []
    try:
        yield said(sys.executable, str(_CLUSTER), "up", *where, *words).strip()
    finally:
        said(sys.executable, str(_CLUSTER), "down", *where)
