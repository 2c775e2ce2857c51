"""Reads and changes one replica of an object, on the disk of a stopped OSD.

Only an OSD that is stopped lets its disk be opened.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from .ceph import CephCluster, ceph

STARTED_SECONDS = 60.0

LOOKS = 16
"""Looks of an audit at random replicas: of three, all of them miss one in one of 650 audits."""


class Placement(NamedTuple):
    """Where the replicas of an object are; the first of ``acting`` is the primary one."""

    pgid: str
    acting: list[int]


def placement(cluster: CephCluster, name: str, namespace: str) -> Placement:
    """Where an object's replicas are."""
    words = ceph(cluster, "osd", "map", cluster.pool, name, namespace, "-f", "json")
    found = json.loads(words)
    return Placement(found["pgid"], found["acting"])


def is_clean(cluster: CephCluster, pgid: str) -> bool:
    """Whether all OSDs of a placement group have all of it."""
    found = json.loads(ceph(cluster, "tell", pgid, "query", "-f", "json"))
    return str(found["state"]) == "active+clean"


class Disk:
    """The objects of one namespace on the disk of an OSD that is stopped."""

    def __init__(self, cluster: CephCluster, osd: int, namespace: str) -> None:
        self._conf = cluster.conf
        self._data = cluster.conf.parent / "data" / f"osd.{osd}"
        self._namespace = namespace
        self._found: dict[str, str] = {}

    def get(self, name: str, kind: str, key: str = "") -> bytes:
        """What is stored: of the ``kind`` bytes, attr or omap."""
        return self._run(self._find(name), f"get-{kind}", *_keys(kind, key))

    def set(self, name: str, kind: str, value: bytes, key: str = "") -> None:
        """Store something else there."""
        with NamedTemporaryFile() as file:
            Path(file.name).write_bytes(value)
            self._run(self._find(name), f"set-{kind}", *_keys(kind, key), file.name)

    def remove_key(self, name: str, key: str) -> None:
        """Remove a key."""
        self._run(self._find(name), "rm-omap", key)

    def keys(self, name: str) -> list[str]:
        """All keys of an object."""
        return self._run(self._find(name), "list-omap").decode().split()

    def _find(self, name: str) -> str:
        if name not in self._found:
            self._found[name] = self._look_for(name)
        return self._found[name]

    def _look_for(self, name: str) -> str:
        for line in self._run("--op", "list", name).decode().splitlines():
            pgid, found = json.loads(line)
            if found["oid"] == name and found["namespace"] == self._namespace:
                return json.dumps([pgid, found])
        raise LookupError(f"no {name!r} in namespace {self._namespace!r} at {self._data}")

    def _run(self, *words: str) -> bytes:
        tool = ["ceph-objectstore-tool", "--no-mon-config", "--data-path", str(self._data), *words]
        environment = {**os.environ, "CEPH_CONF": str(self._conf)}
        return subprocess.run(tool, check=True, capture_output=True, env=environment).stdout


def _keys(kind: str, key: str) -> list[str]:
    """An attribute's or a key's name, as an OSD stores it."""
    return [] if kind == "bytes" else [f"_{key}" if kind == "attr" else key]


@contextmanager
def opened_disk(cluster: CephCluster, osd: int, namespace: str) -> Iterator[Disk]:
    """Stop an OSD, and start it again afterwards."""
    cluster.osd("stop", osd, wait=STARTED_SECONDS)
    try:
        yield Disk(cluster, osd, namespace)
    finally:
        cluster.osd("start", osd, wait=STARTED_SECONDS)
