"""tail: the end of a log, and following it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

import zlog

from .conftest import Cli, Inside, leave_hole


@pytest.fixture
def twelve(orders: zlog.Log) -> zlog.Log:
    orders.append_many([b"%d" % i for i in range(12)])
    return orders


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ([], 2),
        (["-n", "3"], 9),
        (["-n", "0"], 12),
        (["-n", "100"], 0),
        (["--since-start"], 0),
    ],
)
def test_the_last_entries(inside: Inside, twelve: zlog.Log, words: list[str], first: int) -> None:
    result = inside("tail", twelve.name, *words)
    assert (result.code, result.err) == (0, "")
    assert result.out.split() == [b"%d" % i for i in range(first, 12)]


def test_the_start_and_a_number_exclude_each_other(inside: Inside) -> None:
    assert inside("tail", "orders", "-n", "3", "--since-start").code == 2


def read_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def end(process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> tuple[int, bytes]:
    """Send a signal; returns the exit code and what stderr has."""
    process.send_signal(number)
    code = process.wait(10)
    assert process.stderr is not None
    return code, process.stderr.read().strip()


def test_following_prints_entries_as_they_come(cli: Cli, twelve: zlog.Log) -> None:
    with cli.start("tail", "orders", "-n", "2", "--follow") as process:
        assert [read_line(process), read_line(process)] == [b"10\n", b"11\n"]
        for _ in range(3):
            position = twelve.append(b"new")
            assert read_line(process) == b"new\n"
        assert position == 14
        assert end(process) == (130, b"")


def test_following_from_the_start_catches_up_first(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"%d" % i for i in range(5000)])
    with cli.start("tail", "orders", "--since-start", "-f", "--format", r"%p=%s\n") as process:
        assert [read_line(process) for _ in range(5000)] == [
            b"%d=%d\n" % (i, i) for i in range(5000)
        ]
        orders.append(b"new")
        assert read_line(process) == b"5000=new\n"
        assert end(process) == (130, b"")


def test_following_starts_before_there_is_anything(cli: Cli, orders: zlog.Log) -> None:
    with cli.start("tail", "orders", "-F", "--json") as process:
        orders.append(b"first")
        assert json.loads(read_line(process))["data"] == "first"
        assert end(process) == (130, b"")


def test_following_passes_a_hole_after_its_time(cli: Cli, orders: zlog.Log) -> None:
    leave_hole(orders)
    orders.append(b"after")
    with cli.start(
        "tail", "orders", "--since-start", "-F", "--json", "--hole-timeout", "0.05"
    ) as process:
        gap = json.loads(read_line(process))
        assert {
            "gap": "filled",
            "position": 0,
            "end": 1,
            "why": "reader_waited",
        }.items() <= gap.items()
        assert json.loads(read_line(process))["data"] == "after"
        assert end(process) == (130, b"")


def test_a_follower_ends_with_its_reader_although_nothing_new_comes(
    cli: Cli, twelve: zlog.Log
) -> None:
    with cli.start("tail", twelve.name, "-n", "1", "-F") as process:
        assert read_line(process) == b"11\n"
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(10) == 141
        assert process.stderr.read() == b""


def test_a_follower_ends_with_its_log(cli: Cli, orders: zlog.Log) -> None:
    with cli.start("tail", "orders", "-F") as process:
        orders.append(b"last")
        assert read_line(process) == b"last\n"
        zlog.Log.remove(orders.store, "orders")
        assert process.wait(20) == 3


def test_following_into_a_file(cli: Cli, orders: zlog.Log, tmp_path: Path) -> None:
    """Nobody flushes a file but the follower, and it is written to at once all the same."""
    path = tmp_path / "out"
    with path.open("wb") as file, cli.start("tail", "orders", "-F", stdout=file) as process:
        orders.append(b"new")
        deadline = time.monotonic() + 20
        while path.read_bytes() != b"new\n":  # a file can't be waited for
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert end(process) == (130, b"")


def test_tail_of_no_log(cli: Cli) -> None:
    assert cli("tail", "nothere").code == 3
    assert cli("tail", "nothere", "-F").code == 3
