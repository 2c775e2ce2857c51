"""The last transaction is durable before LMDB's meta page is, and made again where that is lost."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from zlog import StoreUnavailable
from zlog._native import messages
from zlog._native.local import EmbeddedStore
from zlog.store import restore

from .support import OBJECT, SECONDS, read, run, seal, write

PAGE = 4096
META_END = 512
"""LMDB's part of a meta page lies below."""

TITLE = b"zlog redo log"

TRIM_MANY = messages.trim(1, 1, range(10, 20))


def meta_pages(directory: Path) -> list[bytes]:
    """Return LMDB's part of both meta pages."""
    data = (directory / "data.mdb").read_bytes()
    return [data[page : page + META_END] for page in (0, PAGE)]


def fail_power(directory: Path, copy: Path, meta: list[bytes]) -> Path:
    """Copy a store as a loss of power leaves it: its last meta page was not on the disk yet."""
    copy.mkdir()
    shutil.copy(directory / "data.mdb", copy)
    with (copy / "data.mdb").open("r+b") as file:
        for number, page in enumerate(meta):
            file.seek(number * PAGE)
            file.write(page)
    return copy


def have_booted(directory: Path) -> None:
    """Have what is noted come from another run of the kernel."""
    path = directory / "data.mdb"
    boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    path.write_bytes(path.read_bytes().replace(boot, bytes(len(boot))))


def write_and_fail_power(path: Path, data: bytes) -> Path:
    """Make a store with two entries, and lose the power in the transaction of the second."""
    with EmbeddedStore(path / "store") as store:
        seal(store)
        assert write(store, [0], b"first") == 0
        meta = meta_pages(path / "store")
        assert write(store, [1], data) == 0
        return fail_power(path / "store", path / "failed", meta)


@pytest.mark.parametrize("size", [5, 3000, 50_000], ids="{} B".format)
def test_acknowledged_entries_survive_loss_of_meta_page(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    folder = write_and_fail_power(tmp_path, data)
    with EmbeddedStore(folder) as store:
        assert read(store, [0, 1, 2]) == [b"first", data, None]
        assert write(store, [2], b"third") == 0
    with EmbeddedStore(folder) as store:
        assert read(store, [0, 1, 2]) == [b"first", data, b"third"]


def test_large_transaction_bypasses_redo_log(tmp_path: Path) -> None:
    """So its meta page is on the disk already, and nothing is noted of it."""
    large = b"large" * 20_000
    folder = write_and_fail_power(tmp_path, large)
    with EmbeddedStore(folder) as store:
        assert read(store, [0, 1]) == [b"first", None]
    with EmbeddedStore(tmp_path / "store") as store:
        assert read(store, [0, 1]) == [b"first", large]


def test_removals_are_replayed(tmp_path: Path) -> None:
    with EmbeddedStore(tmp_path / "store") as store:
        seal(store)
        for position in range(30):
            assert write(store, [position]) == 0
        meta = meta_pages(tmp_path / "store")
        assert store.execute(OBJECT, "trim", TRIM_MANY, SECONDS)[0] == 0
        expected = [store.execute(OBJECT, "stat", messages.stat(1)), read(store, range(30))]
        folder = fail_power(tmp_path / "store", tmp_path / "failed", meta)
    with EmbeddedStore(folder) as store:
        assert expected == [store.execute(OBJECT, "stat", messages.stat(1)), read(store, range(30))]


def test_two_transactions_are_replayed_in_order(tmp_path: Path) -> None:
    """Of the younger one, which may have been under way, the meta page was lost as well."""
    with EmbeddedStore(tmp_path / "store") as store:
        seal(store)
        meta = meta_pages(tmp_path / "store")
        assert write(store, [0], b"first") == 0
        assert write(store, [1], b"second") == 0
        folder = fail_power(tmp_path / "store", tmp_path / "failed", meta)
    with EmbeddedStore(folder) as store:
        assert read(store, [0, 1]) == [b"first", b"second"]


@pytest.mark.parametrize("size", [5, 50_000], ids="{} B".format)
def test_incomplete_transaction_is_not_replayed(tmp_path: Path, size: int) -> None:
    folder = write_and_fail_power(tmp_path, b"x" * size)
    path = folder / "data.mdb"
    data = path.read_bytes()
    last = data.find(b"xxxxx", 0 if size < PAGE else data.find(TITLE))
    path.write_bytes(data[:last] + b"y" + data[last + 1 :])
    with EmbeddedStore(folder) as store:
        assert read(store, [0, 1]) == [b"first", None]
        assert write(store, [1], b"another") == 0


def test_read_only_open_requires_prior_replay(tmp_path: Path) -> None:
    folder = write_and_fail_power(tmp_path, b"second")
    with EmbeddedStore(folder, read_only=True) as store:
        assert read(store, [1]) == [None]  # in this run of the kernel no power was lost
    have_booted(folder)
    with pytest.raises(StoreUnavailable, match="power failed in its last transaction"):
        EmbeddedStore(folder, read_only=True)
    EmbeddedStore(folder).close()
    with EmbeddedStore(folder, read_only=True) as store:
        assert read(store, [0, 1]) == [b"first", b"second"]


def test_restore_replays_last_transaction(tmp_path: Path) -> None:
    folder = write_and_fail_power(tmp_path, b"second")
    (tmp_path / "new").mkdir()
    restore(tmp_path / "new", folder)
    with EmbeddedStore(tmp_path / "new") as store:
        assert read(store, [0, 1]) == [b"first", b"second"]


def test_compaction_clears_redo_log(tmp_path: Path) -> None:
    """Its transactions have other numbers, which would be those of earlier changes."""
    with EmbeddedStore(tmp_path) as store:
        seal(store)
        for position in range(5):
            assert write(store, [position]) == 0
        store.compact()
        noted = (tmp_path / "data.mdb").read_bytes()
        assert Path("/proc/sys/kernel/random/boot_id").read_bytes().strip() not in noted
        assert write(store, [5], b"after") == 0
    with EmbeddedStore(tmp_path) as store:
        assert read(store, [4, 5, 6]) == [b"data", b"after", None]


COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static int count;
int fdatasync(int fd) { return count++, ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
#define COUNTED(name)                                                            \\
  ssize_t name(int fd, const void* data, size_t bytes, off64_t at) {             \\
    count += (fcntl(fd, F_GETFL) & O_DSYNC) != 0;                                \\
    return ((ssize_t(*)(int, const void*, size_t, off64_t))dlsym(RTLD_NEXT, #name))( \\
        fd, data, bytes, at);                                                    \\
  }
COUNTED(pwrite) COUNTED(pwrite64)
__attribute__((destructor)) static void tell(void) { printf("%d\\n", count); }
"""
"""Counts what waits for the disk, and tells when the process ends."""

APPEND = """
    import sys
    from zlog._native.local import EmbeddedStore
    from zlog._native.writes import encode_write
    store = EmbeddedStore(sys.argv[1])
    for position in range(100):
        request = encode_write(1, 1, bytes(16), 1, [position], [position], [b"x" * 100])
        assert store.execute("object", "write", request, 30.0)[0] == 0
"""


def test_append_is_synced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedStore(tmp_path / "store") as store:
        seal(store)
    source, counter = tmp_path / "count.c", tmp_path / "count.so"
    source.write_text(COUNTER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", counter, source, "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(counter))
    assert 100 <= int(run(APPEND, tmp_path / "store")) < 110
