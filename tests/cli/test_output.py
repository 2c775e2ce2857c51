"""Data reaches a slow reader whole, also where librados shares stdout."""

from __future__ import annotations

import array
import fcntl
import os
import subprocess
import termios
from concurrent.futures import ThreadPoolExecutor

import pytest

import zlog
from zlog.cli.output import Output

from ..support.ceph import CephCluster
from ..support.waiting import wait_until
from .conftest import Cli

PIPE_BYTES = 1 << 16


def waiting(fd: int) -> int:
    """How many bytes a pipe holds."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def drain(fd: int) -> bytes:
    """What a pipe gives until its writers have closed it."""
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


@pytest.mark.parametrize("buffering", [0, 8192])
def test_nonblocking_pipe_receives_all_output(buffering: int) -> None:
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    lines = [b"%d\n" % number for number in range(PIPE_BYTES)]

    def write() -> None:
        with os.fdopen(sink, "wb", buffering) as stream, Output(stream) as out:
            for line in lines:
                out.write(line)

    with ThreadPoolExecutor() as executor:
        writing = executor.submit(write)
        wait_until(lambda: waiting(source) == PIPE_BYTES or writing.done())
        assert drain(source) == b"".join(lines)
        writing.result()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_stdout_shared_with_stderr_is_complete(ceph_cluster: CephCluster, unbuffered: str) -> None:
    url = ceph_cluster.url(f"output-{unbuffered}")
    entries = [b"%06d" % number + b"x" * 93 for number in range(5000)]
    with zlog.connect(url) as store, zlog.Log.create(store, "orders") as log:
        log.append_many(entries)
    cli = Cli(url)
    cli.environment["PYTHONUNBUFFERED"] = unbuffered
    source, sink = os.pipe()
    with cli.start("read", "orders", stdout=sink, stderr=subprocess.STDOUT) as command:
        wait_until(lambda: waiting(source) == PIPE_BYTES or command.poll() is not None)
        blocking = os.get_blocking(sink)
        os.close(sink)
        assert drain(source) == b"".join(entry + b"\n" for entry in entries)
    assert (command.returncode, blocking) == (0, True)
