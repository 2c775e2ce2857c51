"""An embedded store on a disk without a free byte: what makes space works, again and again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog import StoreUnavailable
from zlog._native.local import EmbeddedStore
from zlog.admin import space_inside
from zlog.cli.commands.doctor.diagnosis import Level
from zlog.cli.commands.doctor.directory import examine_disk

from .support import read, run, seal, write


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("may not mount a file system here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill_up(disk: Path) -> None:
    """Take what is left of the disk."""
    with (disk / "filler").open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
    status = os.statvfs(disk)
    assert status.f_bavail == 0


def append_until_full(log: zlog.Log) -> int:
    """Fill the store, with entries of every size in the end; return the last position."""
    positions = [0]

    def append(entries: list[bytes]) -> None:
        while True:
            positions.append(log.append_many(entries)[-1])

    for entries in ([bytes(100_000)], [bytes(3000)] * 10, [bytes(3000)], [b"x"]):
        with pytest.raises(StoreUnavailable, match="the store is full"):
            append(entries)
    return positions[-1]


REMOVE = """
    import sys, zlog
    with zlog.connect(sys.argv[1] + "/") as store:
        zlog.Log.remove(store, "orders")
"""


def test_trim_frees_space_on_full_disk(disk: Path) -> None:
    with zlog.connect(disk / "store") as store, zlog.Log.create(store, "orders") as log:
        for turn in range(30):
            if turn == 0:
                log.append_many([bytes(1000)] * 2000)
                fill_up(disk)
            last = append_until_full(log)
            log.trim_to(last - 10)
            assert log.append(b"there is space") > last
            assert log.append_many([bytes(1000)] * 100)
        assert {finding.kind for finding in log.check()} <= {zlog.FindingKind.HOLE}


def test_space_inside_file_is_reported(disk: Path) -> None:
    with zlog.connect(disk / "store") as store, zlog.Log.create(store, "orders") as log:
        log.append_many([bytes(1000)] * 4000)
        fill_up(disk)
        last = append_until_full(log)
        found = examine_disk(disk / "store", space_inside(store))
        assert (found.level, found.text.partition(":")[0]) == (Level.FAILURE, "full")
        log.trim_to(last - 10)
        found = examine_disk(disk / "store", space_inside(store))
        assert (found.level, "free inside the store" in found.text) == (Level.WARNING, True)
        log.append_many([bytes(1000)] * (space_inside(store) // 2000))


def test_removing_log_frees_space_on_full_disk(disk: Path) -> None:
    with zlog.connect(disk / "store") as store:
        with zlog.Log.create(store, "orders", width=4) as log:
            log.append_many([bytes(1000)] * 4000)
            fill_up(disk)
            append_until_full(log)
        run(REMOVE, disk / "store")
        with zlog.Log.create(store, "others") as log:
            log.append_many([bytes(1000)] * 1000)


def test_compact_needs_space_for_a_copy(disk: Path) -> None:
    with EmbeddedStore(disk / "store") as store:
        seal(store)
        for position in range(40):
            assert write(store, [position], bytes(180_000)) == 0
        with pytest.raises(StoreUnavailable, match="no space for the copy") as refused:
            store.compact()
        assert "Trim" not in refused.value.hint  # it frees no space of the disk
        assert not (disk / "store" / "data.mdb.new").exists()
        assert read(store, range(40)) == [bytes(180_000)] * 40
        assert write(store, [40]) == 0
