"""append: what goes in comes out again, promptly, and failures tell how far it got."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

import zlog
from zlog.cli.batches import Batches, Limits, Splitter
from zlog.cli.input import Input

from ..support.programs import ZLOG
from .conftest import Cli, Inside, end

LINES = b"first\r\nwith \0 NUL\n\n\xff\xfe no UTF-8\n\tlast\n"


def test_read_adds_missing_final_newline(inside: Inside) -> None:
    data = LINES + b"no newline at the end"
    inside.ok("append", "orders", stdin=data)
    assert inside.ok("read", "orders") == data + b"\n"
    inside.ok("create", "kept")
    inside.ok("append", "kept", "--keep-newline", "--max-bytes", "16M", stdin=data)
    assert inside.ok("read", "kept", "--raw") == data


def test_null_option_separates_multiline_entries(inside: Inside) -> None:
    data = b"two\nlines\0\0one\0"
    inside.ok("append", "orders", "--null", stdin=data)
    assert inside.ok("read", "orders", "--null") == data
    assert inside.ok("read", "orders", "0", "--raw") == b"two\nlines"


def test_files_are_appended_in_order(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2")
    (tmp_path / "b").write_bytes(b"4\n")
    inside.ok("append", "orders", str(tmp_path / "a"), "-", str(tmp_path / "b"), stdin=b"3\n")
    assert inside.ok("read", "orders") == b"1\n2\n3\n4\n"


def test_messages_are_appended_in_order(inside: Inside) -> None:
    words = ["-m", "first", "--message", "two\nlines", "-m", "", "-m", "-m", "-m", "ü"]
    assert inside.ok("append", "orders", *words, "--positions", stdin=b"ignored\n") == (
        b"0\n1\n2\n3\n4\n"
    )
    assert inside.ok("read", "orders", "-z") == "first\0two\nlines\0\0-m\0ü\0".encode()


def test_message_keeps_arbitrary_bytes(cli: Cli) -> None:
    line = f"{ZLOG} append orders -m $'\\xff'"
    subprocess.run(["bash", "-c", line], env=cli.environment, check=True)
    assert cli.ok("read", "orders", "-r") == b"\xff"


def test_oversized_message_is_refused(inside: Inside) -> None:
    result = inside("append", "orders", "--max-bytes", "3", "-m", "abc", "-m", "abcd")
    assert result.code == 1
    assert "message 2: entry of 4 bytes exceeds 3 bytes" in result.err
    assert inside.ok("read", "orders") == b""


def test_missing_file_hint_suggests_message(inside: Inside) -> None:
    result = inside("append", "orders", "paid in full")
    assert result.code == 1
    _, reason, hint = result.err.splitlines()
    assert reason == "zlog: paid in full: No such file or directory"
    assert hint.endswith(" To append text, use: zlog append orders -m 'paid in full'")


def test_whole_file_is_one_entry(inside: Inside, tmp_path: Path) -> None:
    data = os.urandom(200_000)
    (tmp_path / "photo").write_bytes(data)
    (tmp_path / "empty").write_bytes(b"")
    inside.ok("append", "orders", "--whole", str(tmp_path / "photo"), str(tmp_path / "empty"))
    assert inside.ok("read", "orders", "0", "--raw") == data
    assert inside.ok("read", "orders", "1", "--raw") == b""


def test_many_lines_are_appended_in_batches(inside: Inside, orders: zlog.Log) -> None:
    data = b"".join(b"line %d\n" % i for i in range(30_000))
    inside.ok("append", "orders", "--batch", "1000", stdin=data)
    assert orders.tail() == 30_000
    assert inside.ok("read", "orders") == data
    assert len({item.timestamp for item in orders.read_range(0, 30_000)}) >= 30  # type: ignore[union-attr]


def test_lines_of_slow_pipe_are_appended_immediately(cli: Cli) -> None:
    with cli.start("append", "orders", "--positions") as process:
        for number in range(3):
            process.stdin.write(b"line\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"%d\n" % number  # before the next one is sent
        process.stdin.write(b"no newline")
        process.stdin.close()
        assert process.stdout.read() == b"3\n"
        assert process.wait(10) == 0


class Trickle(Input):
    """An input that always has one more line in a moment."""

    def ready(self, seconds: float) -> bool:
        time.sleep(min(seconds, 0.001))
        return True

    def read(self) -> bytes:
        return b"x\n"


def test_steady_trickle_is_not_delayed() -> None:
    trickle = Trickle(os.devnull)
    batches = Batches(trickle, Splitter(b"\n"), bytes, Limits(4096, 1 << 20, 9, 9))
    with closing(trickle):
        assert 1 < len(next(iter(batches))) < 1000


@pytest.mark.parametrize(
    ("words", "stdin", "reason"),
    [
        (
            ["--json"],
            b'{"data": "a"}\n{"data": "b"}\n{"dat": "c"}\n{"data": "d"}\n',
            "stdin, line 3",
        ),
        (["--json"], b'{"data": "a"}\n{"data": "b"}\n{"dat', "line 3: not JSON: Untermi"),
        (
            ["--json"],
            b'{"data": "a"}\n{"data": "b"}\n{"data": "c", "data_b64": ""}\n',
            "both data and data_b64 are given",
        ),
        (
            ["--max-bytes", "10"],
            b"a\nb\n" + b"c" * 11 + b"\nd\n",
            "line 3: entry of 11 bytes exceeds 10 bytes",
        ),
        (
            ["--max-bytes", "10"],
            b"a\nb\n" + b"c" * 99,
            "stdin, line 3: entry exceeds 10 bytes",
        ),
    ],
)
def test_bad_input_ends_append_after_the_earlier_entries(
    inside: Inside, words: list[str], stdin: bytes, reason: str
) -> None:
    result = inside("append", "orders", *words, stdin=stdin)
    assert result.code == 1
    assert "the first 2 entries of the input are in the log" in result.err
    assert reason in result.err
    assert all(line.startswith("zlog: ") for line in result.err.splitlines())
    assert inside.ok("read", "orders") == b"a\nb\n"


def test_oversized_file_is_refused(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 100)
    result = inside("append", "orders", "--whole", "--max-bytes", "99", str(tmp_path / "large"))
    assert result.code == 1
    assert "exceeds 99 bytes" in result.err


def test_failure_reports_appended_entries(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def fail_later(_log: zlog.Log, batch: list[bytes], **_: object) -> list[int]:
        calls.append(len(batch))
        if len(calls) == 1:
            return [0, 1]
        error = zlog.StoreTimeout("no answer")
        error.positions = (2, None, 4, None)
        raise error

    monkeypatch.setattr(zlog.Log, "append_many", fail_later)
    result = inside("append", "orders", "--batch", "2", "--positions", stdin=b"a\nb\nc\nd\n")
    assert result.code == 6
    assert result.out == b"0\n1\n2\n"
    account, reason = result.err.splitlines()[:2]
    assert account == (
        "zlog: the first 3 entries of the input are in the log, and 1 entry after a missing one;"
        " up to 2 more may be"
    )
    assert reason == "zlog: no answer"


def test_moved_entries_are_reported(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line for each run of them."""
    moved = [5, 1, 2, 8, 9, 4]
    monkeypatch.setattr(zlog.Log, "append_many", lambda _log, _batch, **_: moved)
    result = inside("append", "orders", "--positions", stdin=b"a\nb\nc\nd\ne\nf\n")
    assert (result.code, result.out) == (0, b"5\n1\n2\n8\n9\n4\n")
    notes = [line.split(" (")[0] for line in result.err.splitlines() if "moved" in line]
    assert notes == [
        "zlog: entry 1 moved to position 5, above 3 later entries",
        "zlog: entries 4 to 5 moved to positions 8 to 9, above 1 later entry",
    ]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signal_reports_appended_entries(
    cli: Cli, orders: zlog.Log, number: int, code: int
) -> None:
    with cli.start("append", "orders", "--positions") as process:
        process.stdin.write(b"kept\n")
        process.stdin.flush()
        process.stdout.readline()
        said = b"zlog: the first entry of the input is in the log"
        assert end(process, number) == (code, said)
    assert orders.read(0).data == b"kept"


def test_signal_reports_batch_in_flight(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also with --whole: what was sent and not answered is counted as open."""
    for name in "ab":
        (tmp_path / name).write_bytes(b"x")
    calls: list[int] = []

    def stop_later(_log: zlog.Log, batch: list[bytes], **_: object) -> list[int]:
        calls.append(len(batch))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return [len(calls)]

    monkeypatch.setattr(zlog.Log, "append_many", stop_later)
    result = inside("append", "orders", "--whole", str(tmp_path / "a"), str(tmp_path / "b"))
    assert result.code == 143
    expected = "the first entry of the input is in the log; up to 1 more may be"
    assert result.err == f"zlog: {expected}\n"


@pytest.mark.parametrize("missing", ["nothere", ""])
def test_unreadable_files_are_found_before_sending(
    inside: Inside, orders: zlog.Log, tmp_path: Path, missing: str
) -> None:
    (tmp_path / "a").write_bytes(b"1\n")
    result = inside("append", "orders", str(tmp_path / "a"), str(tmp_path / missing))
    assert result.code == 1
    account, reason = result.err.splitlines()[:2]
    assert account == "zlog: no entry of the input is in the log"
    assert reason.startswith(f"zlog: {tmp_path / missing}: ")
    assert orders.tail() == 0


def test_full_disk_reports_appended_entries(cli: Cli, orders: zlog.Log) -> None:
    with (
        Path("/dev/full").open("wb") as full,
        cli.start("append", "orders", "--positions", stdout=full) as process,
    ):
        _, said = process.communicate(b"a\nb\n")
        assert process.returncode == 1
    assert said.decode().splitlines() == [
        "zlog: the first 2 entries of the input are in the log",
        "zlog: stdout: No space left on device",
    ]
    assert orders.tail() == 2


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("append orders <&-", 1, "stdin: closed"),
        ("append orders --positions <<< x >&-", 1, "stdout: closed"),
        ("append orders <<< x >&-", 0, ""),
        ("append orders <<< x 2>&-", 0, ""),
        ("read orders >&-", 0, ""),
        ("ls >&-", 1, "stdout: closed"),
        ("rm orders <&-", 2, "needs --yes"),
    ],
)
def test_closed_standard_streams_are_handled(cli: Cli, line: str, code: int, said: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{ZLOG} {line}"], capture_output=True, env=cli.environment, check=False
    )
    assert done.returncode == code
    assert said in done.stderr.decode()
    assert "internal" not in done.stderr.decode()


def test_tags_are_appended_and_shown(inside: Inside) -> None:
    line = b'{"data": "json", "tags": ["c", "\xc3\xa9"]}\n{"data": "none"}\n'
    inside.ok("append", "orders", "--tag", "b", "--tag", "a", "-m", "both")
    inside.ok("append", "orders", "--tag", "a", "--json", "--exclusive", stdin=line)
    inside.ok("append", "orders", "--json", stdin=line)
    shown = inside.ok("read", "orders", "--format", "%s:%T\\n").decode().splitlines()
    assert shown == ["both:a,b", "json:a,c,é", "none:a", "json:c,é", "none:"]
    found = [
        json.loads(each).get("tags") for each in inside.ok("read", "orders", "--json").splitlines()
    ]
    assert found == [["a", "b"], ["a", "c", "é"], ["a"], ["c", "é"], None]
    inside.ok("create", "copy")
    inside.ok("append", "copy", "--json", stdin=inside.ok("read", "orders", "--json"))
    assert inside.ok("read", "copy", "--format", "%s:%T\\n").decode().splitlines() == shown


def test_invalid_tag_is_reported(inside: Inside) -> None:
    for bad in (b'"a"', b'[""]', b"[1]"):
        result = inside("append", "orders", "--json", stdin=b'{"data": "x", "tags": %s}\n' % bad)
        assert result.code == 1
        assert "stdin, line 1: " in result.err
    assert inside.ok("read", "orders") == b""


def test_conditional_append_prints_its_result_as_json(inside: Inside) -> None:
    inside.ok("create", "seats", "--ordering", "object")
    take = ["append", "seats", "--tag", "seat.7", "--unless-tag", "seat.7", "--result-json"]
    assert json.loads(inside.ok(*take, "-m", "Ada", "-m", "Bob")) == {"positions": [0, 1]}
    refused = inside(*take, "-m", "Eve")
    assert (refused.code, json.loads(refused.out)) == (
        11,
        {"conflict": {"position": 0, "tags": ["seat.7"]}},
    )
    assert inside.ok("read", "seats") == b"Ada\nBob\n"
