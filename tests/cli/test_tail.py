"""tail: the end of a log, and following it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zlog

from ..support.logs import leave_hole
from ..support.waiting import wait_until
from .conftest import Cli, Inside, Running, end


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
def test_tail_prints_last_entries(
    inside: Inside, twelve: zlog.Log, words: list[str], first: int
) -> None:
    result = inside("tail", twelve.name, *words)
    assert (result.code, result.err) == (0, "")
    assert result.out.split() == [b"%d" % i for i in range(first, 12)]


def read_line(process: Running) -> bytes:
    return process.stdout.readline()


def test_follow_prints_new_entries(cli: Cli, twelve: zlog.Log) -> None:
    with cli.start("tail", "orders", "-n", "2", "--follow") as process:
        assert [read_line(process), read_line(process)] == [b"10\n", b"11\n"]
        for _ in range(3):
            position = twelve.append(b"new")
            assert read_line(process) == b"new\n"
        assert position == 14
        assert end(process) == (130, b"")


def test_follow_passes_hole_after_timeout(cli: Cli, orders: zlog.Log) -> None:
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


def test_follower_ends_when_log_is_removed(cli: Cli, orders: zlog.Log) -> None:
    with cli.start("tail", "orders", "-F") as process:
        orders.append(b"last")
        assert read_line(process) == b"last\n"
        zlog.Log.remove(orders.store, "orders")
        assert process.wait(20) == 3


def test_follow_flushes_to_file(cli: Cli, orders: zlog.Log, tmp_path: Path) -> None:
    """Only the follower flushes the file, and it is written to at once all the same."""
    path = tmp_path / "out"
    with path.open("wb") as file, cli.start("tail", "orders", "-F", stdout=file) as process:
        orders.append(b"new")
        wait_until(lambda: path.read_bytes() == b"new\n")
        assert end(process) == (130, b"")


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["-c", "3"], [b"9", b"10", b"11"]),
        (["--since-start", "--count", "2"], [b"0", b"1"]),
        (["-n", "5", "--count", "2"], [b"7", b"8"]),
        (["-n", "1", "--count", "5"], [b"11"]),
        (["--since-start", "-f", "--count", "12"], [b"%d" % i for i in range(12)]),
        (["-n", "2", "--exit-at-tail"], [b"10", b"11"]),
        (["-n", "2", "-f", "-e"], [b"10", b"11"]),
        (["-n", "0", "-e"], []),
    ],
)
def test_tail_ends_at_count_or_tail(
    inside: Inside, twelve: zlog.Log, words: list[str], lines: list[bytes]
) -> None:
    result = inside("tail", twelve.name, *words)
    assert (result.code, result.err) == (0, "")
    assert result.out.split() == lines


@pytest.mark.parametrize("words", [["--count", "2"], ["--count", "2", "-f"]])
def test_gaps_are_shown_but_not_counted(inside: Inside, twelve: zlog.Log, words: list[str]) -> None:
    twelve.trim(1)
    result = inside("tail", "orders", "--since-start", *words)
    assert result.out.split() == [b"0", b"2"]
    assert result.err == "zlog: gap: position 1: trimmed\n"


def test_exit_at_tail_includes_concurrent_appends(
    inside: Inside, twelve: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --exit-at-tail the tail of the beginning counts."""
    read_range = zlog.Log.read_range

    def append_meanwhile(log: zlog.Log, *args: int, **more: Any) -> Iterator[zlog.Entry | zlog.Gap]:
        yield from read_range(log, *args, **more)
        if log.tail() < 14:
            twelve.append(b"new")

    monkeypatch.setattr(zlog.Log, "read_range", append_meanwhile)
    assert inside.ok("tail", "orders", "-n", "1").split() == [b"11"]
    assert inside.ok("tail", "orders", "-n", "2", "-e").split() == [b"11", b"new", b"new"]


@pytest.mark.parametrize("words", [[], ["-f"]])
def test_start_beyond_tail_is_reported(cli: Cli, twelve: zlog.Log, words: list[str]) -> None:
    with cli.start("tail", "orders", "--from", "13", *words) as tailing:
        assert tailing.stderr is not None
        said = tailing.stderr.readline()
        assert said.startswith(b"zlog: --from is beyond the tail of log 'orders', which is 12")
        assert (b"waiting for position 13" in said) is bool(words)
        if words:
            assert end(tailing) == (130, b"")
    assert twelve.tail() == 12


def test_tail_of_missing_log_fails(cli: Cli) -> None:
    assert cli("tail", "nothere").code == 3
    assert cli("tail", "nothere", "-F").code == 3
