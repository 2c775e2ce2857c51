"""Stores for the tools: the one that is named, else a cluster of their own."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLUSTER = Path(__file__).resolve().parents[1] / "ceph-dev" / "cluster"


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Give a tool the options that say which store it works in."""
    parser.add_argument("--store", help="URL of an empty store; else a cluster is started")
    parser.add_argument("--osds", type=int, default=1, help="of the cluster that is started")
    parser.add_argument("--folder", type=Path, help="where that cluster lives, on a disk")
    parser.add_argument("--class", dest="library", help="libcls_zlog.so for it; built if not given")


@contextmanager
def empty_store(options: argparse.Namespace) -> Iterator[str]:
    """The URL of the store; a cluster of its own for the length of the run if none is named."""
    if options.store:
        yield options.store
        return
    folder = ["--dir", str(options.folder)] if options.folder else []
    library = ["--class", options.library] if options.library else []
    words = ["up", *folder, *library, "--store", "bluestore", "--osds", str(options.osds)]
    try:
        yield _cluster(*words).strip()
    finally:
        _cluster("down", *folder)


def _cluster(*words: str) -> str:
    command = [sys.executable, str(_CLUSTER), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return done.stdout
