"""Processes of several containers, whose pids are the same, share an embedded store."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import zlog

from .support import finish, start

APPEND_AND_READ = """
    import os, sys, zlog
    with zlog.connect(sys.argv[1] + "/") as store, zlog.Log.open(store, "orders") as log:
        print(os.getpid(), flush=True)
        sys.stdin.readline()
        for number in range(100):
            position = log.append(b"%d" % number)
            assert log.read(position).data == b"%d" % number
        sys.stdin.readline()
"""


def test_processes_with_equal_pid_share_store(tmp_path: Path) -> None:
    container = ["unshare", "--pid", "--fork"]  # a PID namespace of its own: its pid is 1
    if not shutil.which("unshare") or subprocess.run([*container, "true"]).returncode != 0:
        pytest.skip("may not make a PID namespace here")
    with zlog.connect(tmp_path) as store:
        log = zlog.Log.create(store, "orders")
        processes = [start(APPEND_AND_READ, tmp_path, launcher=container) for _ in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "1\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        for process in processes:
            finish(process)
        assert sum(isinstance(item, zlog.Entry) for item in log.read_range(0)) == 200
        log.close()
