"""What a person at a terminal sees: a pseudo-terminal stands for one."""

from __future__ import annotations

import os
import pty
import subprocess
import time

import pytest

import zlog
from zlog.cli.progress import Progress

from ..support.programs import ZLOG
from .conftest import Cli

DIM, BOLD = b"\x1b[2m", b"\x1b[1m"


def on_terminal(cli: Cli, *words: str, answer: bytes = b"") -> tuple[int, bytes]:
    """Run a command with a terminal for stdin, stdout and stderr; returns code and screen."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [ZLOG, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=cli.environment
    )
    os.close(theirs)
    if answer:
        os.write(ours, answer)
    screen = b""
    try:
        while chunk := os.read(ours, 4096):
            screen += chunk
    except OSError:
        pass  # how Linux says that the last process has closed the terminal
    os.close(ours)
    return process.wait(10), screen.replace(b"\r\n", b"\n")


def test_entries_are_escaped_and_gaps_dimmed(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"gone", b"gone", "ünï\x1b[31m\xff".encode()])
    orders.trim_to(2)
    code, screen = on_terminal(cli, "read", "orders")
    assert code == 0
    dimmed, entry = screen.splitlines()
    assert dimmed.startswith(DIM + b"-- positions 0 to 1: trimmed --")
    assert entry.decode() == r"ünï\x1b[31mÿ"
    assert on_terminal(cli, "read", "orders", "2", "--raw")[1] == "ünï\x1b[31m\xff".encode()


def test_info_is_bold_only_on_terminal(cli: Cli) -> None:
    assert BOLD in on_terminal(cli, "info", "orders")[1]
    assert BOLD not in cli.ok("info", "orders")


def test_rm_asks_for_confirmation(cli: Cli) -> None:
    code, screen = on_terminal(cli, "rm", "orders", answer=b"n\n")
    assert (code, b"Remove log 'orders'" in screen) == (1, True)
    assert cli.ok("ls") == b"orders\n"
    code, screen = on_terminal(cli, "rm", "orders", answer=b"y\n")
    assert (code, b"removed log 'orders'" in screen) == (0, True)
    assert cli.ok("ls") == b""


def test_append_prompts_and_prints_summary(cli: Cli) -> None:
    code, screen = on_terminal(cli, "append", "orders", answer=b"one\ntwo\n\x04")
    assert code == 0
    assert b"type entries, one per line" in screen
    assert b"appended 2 entries from position 0 to 1" in screen
    assert cli.ok("read", "orders") == b"one\ntwo\n"


def test_progress_bar_appears_after_delay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress(100, "reading") as progress:
        progress.advance(10)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        progress.advance(10)
        progress.advance(80)
    shown = capsys.readouterr()
    assert "reading" in shown.err
    assert "100/100" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(("total", "hidden"), [(None, False), (0, False), (100, True)])
def test_progress_bar_hidden_without_total_or_with_data(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    total: int | None,
    hidden: bool,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    now = time.monotonic()
    with Progress(total, "reading", hidden=hidden) as progress:
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        progress.advance(50)
    assert capsys.readouterr().err == ""
