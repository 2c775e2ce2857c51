"""The kinds of stores to measure, and the Ceph clusters for some of them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import REPOSITORY

_CLUSTER = str(REPOSITORY / "ceph-dev" / "cluster")
_MEMSTORE_SIZE = "osd:memstore device bytes=1099511627776"
"""Memstore counts removed objects as still stored, and refuses writes when it is full."""


@contextmanager
def running_store(kind: str, folder: Path) -> Iterator[str]:
    """Create a store for a ``with`` block in a folder, and return its URL.

    A store on Ceph is a cluster of one OSD.
    """
    if kind == "embedded":
        yield (folder / kind).as_uri()
        return
    with TemporaryDirectory(prefix="zlog-", dir=folder) as own:
        words = ["--dir", own, "--json", "--store", kind, "--osds", "1"]
        words += ["--set", _MEMSTORE_SIZE] if kind == "memstore" else []
        if library := os.environ.get("ZLOG_CLASS"):
            words += ["--class", library]
        up = subprocess.run([_CLUSTER, "up", *words], stdout=subprocess.PIPE, check=True)
        try:
            yield json.loads(up.stdout)["url"]
        finally:
            subprocess.run([_CLUSTER, "down", "--dir", own], stdout=subprocess.DEVNULL, check=True)
