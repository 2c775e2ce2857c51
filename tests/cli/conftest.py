"""Fixtures of the command line's tests: the command as a process, and inside this one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

import zlog
from zlog.cli.main import command
from zlog.offload import Offloader

from ..support.programs import ZLOG

SECONDS_MAX = 60


def all_commands(
    command: click.Command = command, name: str = "zlog"
) -> Iterator[tuple[str, click.Command]]:
    """Iterate over the command and all commands in it, each with the words that call it."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from all_commands(inner, f"{name} {word}")


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: bytes
    err: str


class Command:
    """The command ``zlog`` with a store.

    Args:
        url: of the store.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, *words: str, stdin: bytes = b"") -> Result:
        raise NotImplementedError

    def ok(self, *words: str, stdin: bytes = b"") -> bytes:
        """Run a command that has to succeed in silence; returns its stdout."""
        result = self(*words, stdin=stdin)
        assert (result.code, result.err) == (0, "")
        return result.out


class Running(subprocess.Popen[bytes]):
    """The command while it runs, with pipes for stdin, stdout and stderr."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


class Cli(Command):
    """The command as a process of its own, as users have it."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.environment = {**os.environ, "ZLOG_STORE": url, "TERM": "xterm"}

    def __call__(self, *words: str, stdin: bytes = b"") -> Result:
        done = subprocess.run(
            [ZLOG, *words],
            input=stdin,
            capture_output=True,
            env=self.environment,
            timeout=SECONDS_MAX,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def start(self, *words: str, **others: Any) -> Running:
        """Start a command whose stdin, stdout and stderr are pipes."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return Running([ZLOG, *words], env=self.environment, **{**pipes, **others})


class Inside(Command):
    """The command inside this process: quicker, and its surroundings can be replaced."""

    def __call__(self, *words: str, stdin: bytes = b"") -> Result:
        done = CliRunner().invoke(command, ["--store", self.url, *words], input=stdin)
        return Result(done.exit_code, done.stdout_bytes, done.stderr)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An embedded store of the test's own."""
    return (tmp_path / "store").as_uri()


@pytest.fixture
def orders(url: str) -> Iterator[zlog.Log]:
    """A log ``orders`` in that store, opened beside the command."""
    with (
        zlog.connect(url) as store,
        zlog.Log.create(store, "orders", width=2, stripe_unit=1) as log,
    ):
        yield log


@pytest.fixture
def ten(orders: zlog.Log) -> zlog.Log:
    """The log ``orders``, with ten entries."""
    orders.append_many([b"%d" % number for number in range(10)])
    return orders


@pytest.fixture
def offloaded(orders: zlog.Log, tmp_path: Path) -> zlog.StripeFile:
    """The file of the first stripe of ``orders``. It has ten entries, and the live stripe four."""
    orders.append_many([b"%d" % number for number in range(10)])
    orders.roll()
    orders.append_many([b"last"] * 4)
    assert len([*Offloader(orders, str(tmp_path / "files")).run()]) == 1
    (file,) = orders.stripe_files()
    return file


@pytest.fixture
def cli(url: str, orders: zlog.Log) -> Cli:
    """The command as a process, and the log ``orders``."""
    assert orders.tail() == 0
    return Cli(url)


@pytest.fixture
def inside(url: str, orders: zlog.Log) -> Inside:
    """The command in this process, and the log ``orders``."""
    assert orders.tail() == 0
    return Inside(url)


def end(process: Running, number: int = signal.SIGINT) -> tuple[int, bytes]:
    """Send a signal; returns the exit code and what stderr has."""
    process.send_signal(number)
    code = process.wait(20)
    return code, process.stderr.read().strip()
