"""An OSD with the class of one layout, and what it is looked at with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import said
from stores import ceph_store

from zlog.cli.bench.limits import Limits
from zlog.cli.bench.usage import Processes
from zlog.cli.ceph import Target


class Osd:
    """A cluster of one OSD, and the program that loads it.

    Attributes:
        layout: of its object class.
        limits: the program.
    """

    def __init__(self, layout: str, url: str, folder: Path) -> None:
        self.layout = layout
        self._socket = folder / "run" / "osd.0.asok"
        at = Target.parse(url)
        place = ("rados", at.conf or "-", at.client_id, at.pool, f"bench-layouts-{layout}")
        self.limits = Limits(place)
        self.limits.osds = Processes([int((folder / "run" / "osd.0.pid").read_text())])

    def wal_bytes(self) -> int | None:
        """Bytes that BlueStore's database has written ahead so far; None on memstore."""
        found = json.loads(said("ceph", "--admin-daemon", str(self._socket), "perf", "dump"))
        return found["bluefs"]["bytes_written_wal"] if "bluefs" in found else None


@contextmanager
def running(store: str, layout: str, library: Path, folder: Path) -> Iterator[Osd]:
    """Start an OSD for the length of a ``with`` block.

    A fresh one for each kind of operation: memstore loses count of its bytes, and then takes itself
    for full.

    Raises:
        ProgramFailed: it can't be started.
    """
    where = folder / f"{store}-{layout}"
    with ceph_store(store, where, library=library) as url:
        osd = Osd(layout, url, where)
        with osd.limits:
            yield osd
