"""A store whose files are read by a process that has it open.

Closing them ends all locks that this process has on them (fcntl(2)), and the next one to open the
store must not take itself for the only one.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from pathlib import Path

import pytest

import zlog

from .support import finish, start

ROUNDS = int(os.environ.get("ZLOG_COPY_ROUNDS", "6"))
WRITERS = 3

# Opens the store, copies its files, and appends until standard input ends; prints what was
# acknowledged.
COPY_AND_APPEND = """
    import select, shutil, sys, zlog
    path, copy, name = sys.argv[1:]
    with zlog.connect(path + "/") as store, zlog.Log.open(store, "orders") as log:
        shutil.copytree(path, copy, dirs_exist_ok=True)
        number = 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            data = f"{name}.{number}"
            print(log.append(data.encode()), data, flush=True)
            number += 1
"""


@pytest.mark.long
def test_copying_files_does_not_disturb_writers(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with zlog.connect(folder) as store:
        zlog.Log.create(store, "orders", width=2).close()
    acknowledged: dict[int, bytes] = {}

    def note(line: str) -> None:
        position, data = line.split()
        assert acknowledged.setdefault(int(position), data.encode()) == data.encode()

    for number in range(ROUNDS):
        processes: list[subprocess.Popen[str]] = []
        for i in range(WRITERS):  # each opens the store after those before it have copied its files
            process = start(COPY_AND_APPEND, folder, tmp_path / f"copy{i}", f"{number}.{i}")
            assert process.stdout is not None
            for _ in range(5):
                note(process.stdout.readline())
            processes.append(process)
        for process in processes:
            for line in finish(process).splitlines():
                note(line)
    with zlog.connect(folder) as store, zlog.Log.open(store, "orders") as log:
        there = {
            item.position: item.data for item in log.read_range(0) if isinstance(item, zlog.Entry)
        }
        assert acknowledged.items() <= there.items()
        assert list(log.check()) == []


def test_copying_process_stays_listed_as_reader(tmp_path: Path) -> None:
    """A process that has copied the files stays listed as a reader, and not as a dead one."""
    code = """
        import fcntl, os, shutil, struct, sys
        from zlog._native.local import EmbeddedStore
        with EmbeddedStore(sys.argv[1]):
            shutil.copytree(sys.argv[1], sys.argv[2])
            print(os.getpid(), flush=True)
            sys.stdin.read()
    """
    process = start(code, tmp_path / "store", tmp_path / "copy")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    with (tmp_path / "store" / "lock.mdb").open("rb+") as file:
        for byte in (0, pid):  # LMDB's own test: who could lock it alone?
            asked = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi", 1, 0, byte, 1, 0))
            assert struct.unpack_from("h", asked)[0] != fcntl.F_UNLCK
    finish(process)
