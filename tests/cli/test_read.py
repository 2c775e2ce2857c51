"""read: ranges, tags, formats, gaps, and readers that leave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

import zlog
from zlog.cli.template import iso

from ..support.logs import leave_hole
from .conftest import Cli, Inside


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ([], "0123456789"),
        (["3"], "3"),
        (["-1"], "9"),
        (["-3:-1"], "78"),
        (["-3:@0s"], "789"),
        (["-1:latest", "--format", "%s\\n"], "9"),
        (["8:100"], "89"),
        (["1", "-1", "0:2"], "1901"),
    ],
)
def test_read_prints_range(inside: Inside, ten: zlog.Log, words: list[str], lines: str) -> None:
    assert ten.tail() == 10
    result = inside("read", "orders", *words)
    assert (result.code, result.err) == (0, "")
    assert result.out.split() == [line.encode() for line in lines]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("5:3", "range 5:3 is empty: it ends before it begins"),
        ("-3:-5", "range -3:-5 is empty: it ends before it begins"),
        ("-1:earliest", "range -1:earliest is empty: it ends before it begins"),
        ("-3:@1h", "range -3:@1h is empty: it ends before it begins"),
        ("12:11", "range 12:11 is empty: it ends before it begins"),
        ("100:", "range 100: is empty: the tail is 10"),
        ("11:12", "range 11:12 is empty: the tail is 10"),
    ],
)
def test_always_empty_range_is_reported(
    inside: Inside, ten: zlog.Log, word: str, said: str
) -> None:
    result = inside("read", ten.name, word)
    assert (result.code, result.out, result.err) == (0, b"", f"zlog: {said}\n")


@pytest.mark.parametrize("word", ["10:", "latest", "@0s", "10:20", "3:3", ":earliest"])
def test_a_range_that_is_empty_so_far_is_silent(inside: Inside, ten: zlog.Log, word: str) -> None:
    del ten
    assert inside.ok("read", "orders", word) == b""


def test_empty_range_is_reported_on_terminal(
    inside: Inside, ten: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog.cli.output.stderr_is_terminal", lambda: True)
    assert inside("read", ten.name, "@0s").err == "zlog: range @0s is empty so far\n"
    assert inside("read", ten.name).err == ""


def test_empty_log_has_no_last_entry(inside: Inside) -> None:
    assert inside.ok("read", "orders") == b""
    assert inside.ok("read", "orders", "-10:") == b""
    for position in ("-1", "0"):
        result = inside("read", "orders", position)
        assert result.code == 4
        assert "log 'orders' is empty" in result.err


def test_positions_outside_log_exit_with_4(inside: Inside, ten: zlog.Log) -> None:
    assert ten.tail() == 10
    result = inside("read", "orders", "-11")
    assert (result.code, result.out) == (4, b"")
    assert "position -11 is before the start of log 'orders', whose tail is 10" in result.err
    assert inside.ok("read", "orders", "-11:1") == b"0\n"
    result = inside("read", "orders", "10")
    assert result.code == 4
    message, hint = result.err.splitlines()
    assert message == "zlog: position 10 of log 'orders' is beyond the tail (10)"
    assert "tail orders --follow" in hint


def test_json_lines_carry_position_time_and_data(inside: Inside, orders: zlog.Log) -> None:
    before = datetime.now(timezone.utc)
    orders.append_many(["ünï\n".encode(), b"\xff\0"])
    text, coded = map(json.loads, inside.ok("read", "orders", "--json").splitlines())
    assert (text["position"], text["data"]) == (0, "ünï\n")
    assert (coded["position"], coded["data_b64"]) == (1, "/wA=")
    assert set(text) == {"position", "timestamp", "data"}
    written = datetime.strptime(text["timestamp"], "%Y-%m-%dT%H:%M:%S.%f%z")
    assert abs(written - before) < timedelta(minutes=1)


@pytest.fixture
def gaps(orders: zlog.Log) -> zlog.Log:
    """Positions 0 and 1 trimmed, 2 an entry, 3 filled, 4 an entry, 5 a hole, 6 an entry."""
    orders.append_many([b"0", b"1", b"2"])
    orders.trim_to(2)
    assert leave_hole(orders) == 3
    orders.fill(3)
    orders.append(b"4")
    assert leave_hole(orders) == 5
    orders.append(b"6")
    return orders


def test_gaps_are_json_objects(inside: Inside, gaps: zlog.Log) -> None:
    printed = inside.ok("read", gaps.name, "--json", "--hole-timeout", "never")
    assert [
        (item.get("gap", item.get("data")), item["position"], item.get("end"))
        for item in map(json.loads, printed.splitlines())
    ] == [
        ("trimmed", 0, 2),
        ("2", 2, None),
        ("filled", 3, 4),
        ("4", 4, None),
        ("unwritten", 5, 6),
        ("6", 6, None),
    ]
    filled = json.loads(printed.splitlines()[2])
    with pytest.raises(zlog.Invalidated) as raised:
        gaps.read(3)
    assert raised.value.gap is not None
    assert isinstance(raised.value.gap.detail, zlog.Fill)
    assert filled["by"] == gaps.writer_id
    assert filled["at"] == iso(raised.value.gap.detail.at)
    assert filled["why"] == "asked"


def test_gap_at_single_position_is_json_object(inside: Inside, gaps: zlog.Log) -> None:
    result = inside("read", gaps.name, "1", "--json")
    assert (result.code, "position 1 of log 'orders' was trimmed" in result.err) == (4, True)
    assert json.loads(result.out) == {"gap": "trimmed", "position": 1, "end": 2}


@pytest.mark.parametrize("words", [[], ["--raw"], ["-z"], ["--format", "%s,"]])
def test_gaps_are_reported_on_stderr(inside: Inside, gaps: zlog.Log, words: list[str]) -> None:
    result = inside("read", gaps.name, "--hole-timeout", "never", *words)
    assert result.code == 0
    trimmed, filled, unwritten = result.err.splitlines()
    assert trimmed == "zlog: gap: positions 0 to 1: trimmed"
    assert re.fullmatch(
        rf"zlog: gap: position 3: filled \(by {gaps.writer_id[:8]} at \S+Z,"
        r" because a client asked for it\)",
        filled,
    )
    assert unwritten == "zlog: gap: position 5: unwritten"
    assert bytes(byte for byte in result.out if chr(byte).isdigit()) == b"246"


def test_hole_is_filled_after_timeout(inside: Inside, gaps: zlog.Log) -> None:
    result = inside("read", gaps.name, "5:", "--hole-timeout", "0.01")
    assert result.out == b"6\n"
    assert re.fullmatch(
        r"zlog: gap: position 5: filled \(by [0-9a-f]{8} at \S+Z,"
        r" because a reader had waited for it\)\n",
        result.err,
    )


@pytest.mark.parametrize("words", [["read"], ["tail", "--since-start"]], ids=" ".join)
def test_entries_before_hole_are_printed_while_waiting(
    cli: Cli, orders: zlog.Log, words: list[str]
) -> None:
    orders.append_many([b"a", b"b"])
    (hole,) = orders.reserve()
    orders.append(b"d")
    with cli.start(*words, "orders", "--hole-timeout", "20") as process:
        assert [process.stdout.readline() for _ in "ab"] == [b"a\n", b"b\n"]
        orders.write(hole, b"c")
        assert process.stdout.read() == b"c\nd\n"


@pytest.mark.parametrize("command", ["read", "tail"])
def test_lost_entries_are_reported_as_failure(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, ten: zlog.Log, command: str
) -> None:
    entry = ten.read(0)

    def damaged(*_: object, **__: object) -> Iterator[zlog.Entry | zlog.Gap]:
        loss = zlog.Loss(zlog.LossReason.CORRUPT, ("a.1", "a.2"))
        yield zlog.Gap(0, 2, zlog.GapKind.LOST, loss)
        yield entry._replace(position=2)

    monkeypatch.setattr(zlog.Log, "read_range", damaged)
    result = inside(command, "orders")
    assert result.code == 1
    assert result.out == b"0\n"
    assert result.err.splitlines() == [
        "zlog: gap: positions 0 to 1: lost (bytes are damaged or lost in a.1, a.2)",
        "zlog: some entries are lost or forged; `zlog check orders` shows which",
    ]


def test_closed_pipe_ends_read_silently(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"x" * 1000] * 5000)
    with cli.start("read", "orders") as process:
        assert process.stdout.readline() == b"x" * 1000 + b"\n"
        process.stdout.close()
        assert process.wait(10) == 141
        assert process.stderr.read() == b""


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
def test_read_selects_by_tags(inside: Inside, nine: zlog.Log, words: list[str], lines: str) -> None:
    result = inside("read", nine.name, *words)
    assert (result.code, result.err) == (0, "")
    assert result.out.split() == [line.encode() for line in lines]


def test_tail_prints_last_entries_with_tag(inside: Inside, nine: zlog.Log) -> None:
    assert inside("tail", nine.name, "--tag", "t1", "-n", "2").out.split() == [b"4", b"7"]
    assert inside("tail", nine.name, "--tag", "t1").out.split() == [b"1", b"4", b"7"]
    assert inside("tail", nine.name, "--tag", "t1", "-n", "0").out == b""
    assert inside("tail", nine.name, "--tag", "other").out == b""


def test_cursor_skips_entries_without_tag(inside: Inside, nine: zlog.Log) -> None:
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


def test_follower_selects_by_tags(cli: Cli, orders: zlog.Log) -> None:
    follower = cli.start("tail", orders.name, "--tag", "eu", "-f", "-c", "2")
    for i in range(4):
        orders.append(b"%d" % i, tags=["us" if i % 2 else "eu"])
    out, err = follower.communicate(timeout=60)
    assert (out.split(), err) == ([b"0", b"2"], b"")
