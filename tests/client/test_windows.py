"""What a reader holds in memory: some windows, however large the entries turn out to be."""

from __future__ import annotations

import itertools
import platform
from pathlib import Path

import pytest

import zlog
from zlog import Entry
from zlog._read.iterate import WINDOW_BYTES

from ..native.support import run

READ = """
    import pathlib, sys, zlog
    with zlog.connect(sys.argv[1]) as store, zlog.Log.open(store, "orders") as log:
        reader = getattr(log, sys.argv[2])()
        first = next(reader)
        status = pathlib.Path("/proc/self/status").read_text()
        print(status.partition("RssAnon:")[2].split()[0])
"""
READ_AGAIN = """
    import resource, sys, zlog
    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    with zlog.connect(sys.argv[1]) as store, zlog.Log.open(store, "orders") as log:
        counts = [faults()]
        for _ in range(3):
            assert sum(1 for _ in log.read_range()) == 2048
            counts.append(faults())
    print(counts[-1] - counts[-2])
"""


@pytest.mark.parametrize("read", ["read_range", "follow", "read_columns"])
def test_unexpectedly_large_entries_end_window(tmp_path: Path, read: str) -> None:
    with zlog.connect(tmp_path) as store, zlog.Log.create(store, "orders", width=4) as log:
        for _ in range(200):
            log.append(bytes(1 << 20))
    anonymous = int(run(READ, tmp_path, read))
    assert anonymous < 120 << 10, "in KiB: six windows and the interpreter at most"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc has its own ways")
def test_replies_reuse_freed_memory(tmp_path: Path) -> None:
    with zlog.connect(tmp_path) as store, zlog.Log.create(store, "orders") as log:
        log.append_many([bytes(16 << 10)] * 2048)
    assert int(run(READ_AGAIN, tmp_path)) < 2048, "page faults, for 32 MiB"


@pytest.mark.parametrize("large", [range(40), range(37, 40), range(1, 40, 7)])
def test_windows_of_all_sizes_are_read_completely(memory: zlog.Store, large: range) -> None:
    with zlog.Log.create(memory, "orders", width=3, entry_bytes_max=8 << 20) as log:
        entries = [b"%d" % i * (WINDOW_BYTES // 20 if i in large else 1) for i in range(40)]
        for entry in entries:
            log.append(entry)
        for start in (0, 5, 39):
            items = [*log.read_range(start)]
            assert [item.position for item in items] == [*range(start, 40)]
            assert [item.data for item in items if isinstance(item, Entry)] == entries[start:]
        columns = [*log.read_columns()]
        assert [p for window in columns for p in window.positions] == [*range(40)]
        assert b"".join(bytes(window.data) for window in columns) == b"".join(entries)
        followed = [*itertools.islice(log.follow(), 40)]
        assert [item.data for item in followed if isinstance(item, Entry)] == entries
