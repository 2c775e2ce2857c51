"""Tags on the command line: read and tail by tags, the last ones, cursors."""

from __future__ import annotations

import pytest

import zlog

from .conftest import Cli, Inside


@pytest.fixture
def nine(orders: zlog.Log) -> zlog.Log:
    """Entry i has the tag ``t{i % 3}``, and ``even`` if it is."""
    for i in range(9):
        orders.append(b"%d" % i, tags=[f"t{i % 3}", *([] if i % 2 else ["even"])])
    orders.append(b"none")
    return orders


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["--tag", "t1"], "147"),
        (["--tag", "t1", "--tag", "even"], "0124678"),
        (["--tag", "t1", "--tag", "even", "--match", "all"], "4"),
        (["2:6", "--tag", "t2"], "25"),
        (["--tag", "t0", "--reverse"], "630"),
        (["3:6", "0:2", "--reverse"], "54310"),
        (["--tag", "other"], ""),
    ],
)
def test_read_by_tags(inside: Inside, nine: zlog.Log, words: list[str], lines: str) -> None:
    result = inside("read", nine.name, *words)
    assert (result.code, result.err) == (0, "")
    assert result.out.split() == [line.encode() for line in lines]


def test_a_gap_that_may_hide_an_entry_is_told(inside: Inside, nine: zlog.Log) -> None:
    nine.trim_to(4)
    result = inside("read", nine.name, "2:", "--tag", "t2")
    assert result.out.split() == [b"5", b"8"]
    assert "positions 2 to 3: trimmed" in result.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["3", "--tag", "t0"], "--tag needs ranges"),
        (["--match", "all"], "--match needs --tag"),
        (["--reverse", "--cursor", "c"], "exclude each other"),
        (["--tag", ""], "1 to 128"),
    ],
)
def test_what_makes_no_sense_is_refused(inside: Inside, words: list[str], said: str) -> None:
    result = inside("read", "orders", *words)
    assert result.code == 2
    assert said in result.err


def test_the_last_with_a_tag(inside: Inside, nine: zlog.Log) -> None:
    assert inside("tail", nine.name, "--tag", "t1", "-n", "2").out.split() == [b"4", b"7"]
    assert inside("tail", nine.name, "--tag", "t1").out.split() == [b"1", b"4", b"7"]
    assert inside("tail", nine.name, "--tag", "t1", "-n", "0").out == b""
    assert inside("tail", nine.name, "--tag", "other").out == b""


def test_a_cursor_passes_what_has_not_the_tag(inside: Inside, nine: zlog.Log) -> None:
    words = ["read", nine.name, "--tag", "t0", "--cursor", "one", "--commit"]
    assert inside(*words).out.split() == [b"0", b"3", b"6"]
    assert nine.cursor("one").position == 10
    nine.append(b"9", tags=["t0"])
    assert inside(*words).out.split() == [b"9"]
    tail = ["tail", nine.name, "--tag", "t0", "--cursor", "two"]
    assert inside(*tail, "--count", "2").out.split() == [b"0", b"3"]
    assert nine.cursor("two").position == 4  # --count leaves the rest for the next time
    assert inside(*tail).out.split() == [b"6", b"9"]
    assert nine.cursor("two").position == 11


def test_a_follower_by_tags(cli: Cli, orders: zlog.Log) -> None:
    follower = cli.start("tail", orders.name, "--tag", "eu", "-f", "-c", "2")
    for i in range(4):
        orders.append(b"%d" % i, tags=["us" if i % 2 else "eu"])
    out, err = follower.communicate(timeout=60)
    assert (out.split(), err) == ([b"0", b"2"], b"")
