"""What a reader holds in memory: some windows, however large the entries turn out to be."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import zlog
from zlog import Entry
from zlog._read.iterate import WINDOW_BYTES

UNITS = (1, 4)
READ = """
    import pathlib, sys, zlog
    with zlog.connect(sys.argv[1]) as store, zlog.Log.open(store, "orders") as log:
        reader = getattr(log, sys.argv[2])()
        first = next(reader)
        status = pathlib.Path("/proc/self/status").read_text()
        print(status.partition("RssAnon:")[2].split()[0])
"""


@pytest.mark.parametrize("read", ["read_range", "follow", "read_columns"])
def test_entries_that_are_larger_than_expected_end_a_window(tmp_path: Path, read: str) -> None:
    with zlog.connect(tmp_path) as store, zlog.Log.create(store, "orders", width=4) as log:
        for _ in range(200):
            log.append(bytes(1 << 20))
    done = subprocess.run(
        [sys.executable, "-I", "-c", textwrap.dedent(READ), str(tmp_path), read],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 120 << 10, "in KiB: six windows and the interpreter at most"


@pytest.mark.parametrize("large", [range(40), range(37, 40), range(1, 40, 7)])
def test_windows_of_all_sizes_are_read_whole(memory: zlog.Store, large: range) -> None:
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
