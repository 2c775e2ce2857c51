"""`zlog top`: printed once, and as a view on a terminal."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import zlog
from zlog._base.names import head_object
from zlog.cli.commands.top.rows import HEAD, look, rows_of, summary
from zlog.overview import overview, rates

from ..client.planted import flip
from ..support.programs import ZLOG
from .conftest import Cli

_SECONDS = 30


def test_output_matches_api(cli: Cli, ten: zlog.Log) -> None:
    ten.trim_to(2)
    ten.cursor("billing", create=4)
    zlog.Log.create(ten.store, "empty").close()
    found = json.loads(cli.ok("top", "--once", "--json", "--sort", "name"))
    seen = overview(ten.store, content=True)
    assert [log["name"] for log in found["logs"]] == [log.name for log in seen.logs]
    shown, log = found["logs"][1], seen.logs[1]
    stat = ten.stat()
    assert shown["name"] == stat.name == "orders"
    assert shown["tail"] == log.tail == stat.tail == 10
    assert shown["trim_point"] == log.trim_point == 2
    assert shown["cursors"][0]["lag"] == shown["lag"] == log.lag == 6
    assert log.content is not None
    assert shown["content"]["entries"] == log.content.entries == stat.entries
    assert shown["content"]["bytes"] == log.content.bytes == stat.bytes
    assert shown["positions_per_second"] == 0
    table = cli.ok("top", "--once").decode().splitlines()
    assert table[0].startswith(cli.url)
    assert table[1].split()[:2] == ["LOG", "RATE/s"]
    assert len(table) == 4


def test_rates_compare_same_log(ten: zlog.Log) -> None:
    (before,) = overview(ten.store, content=True).logs
    ten.append_many([b"x" * 50] * 20)
    (after,) = overview(ten.store, content=True).logs
    positions, size = rates(before, after)
    seconds = after.at - before.at
    assert positions == pytest.approx(20 / seconds)
    assert size == pytest.approx(1000 / seconds)
    zlog.Log.remove(ten.store, "orders")
    with zlog.Log.create(ten.store, "orders") as anew:
        anew.append(b"first")
    (other,) = overview(ten.store, content=True).logs
    assert rates(after, other) == (0, 0)


def test_first_poll_has_no_rate(ten: zlog.Log) -> None:
    seen = asyncio.run(look(ten.store, "*", None))
    (row,) = rows_of(None, seen)
    assert row.cells()[HEAD.index("RATE/s")] == ""
    assert "entries/s" not in summary(seen, [row])
    again = rows_of(seen, asyncio.run(look(ten.store, "*", None)))
    assert again[0].cells()[HEAD.index("RATE/s")] == "0"
    assert "0 entries/s" in summary(seen, again)


def test_unreadable_log_does_not_hide_others() -> None:
    with zlog.connect("mem://") as store:
        zlog.Log.create(store, "broken").close()
        with zlog.Log.create(store, "orders") as log:
            log.append(b"entry")
        flip(store, head_object("broken"), b"broken", b"brokem")
        seen = {log.name: log for log in overview(store).logs}
    assert seen["orders"].tail == 1
    assert seen["broken"].error


@contextmanager
def view(cli: Cli, *words: str, columns: int = 80, end: bytes = b"q") -> Iterator[Screen]:
    """Run the view on a terminal of 24 lines, and end it with a key."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [ZLOG, "top", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=cli.environment,
        start_new_session=True,
    )
    os.close(theirs)
    screen = Screen(ours)
    try:
        yield screen
        os.write(ours, end)
        screen.drain()
        assert process.wait(_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


class Screen:
    """What a program writes to a terminal, without the codes that place and colour it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)
        self.text = ""

    def press(self, keys: str) -> None:
        """Type, having forgotten what was shown."""
        self.text = ""
        os.write(self._descriptor, keys.encode())

    def wait_for(self, *wanted: str) -> None:
        """Read until all of this was shown."""
        end = time.monotonic() + _SECONDS
        while not all(each in self.text for each in wanted):
            assert time.monotonic() < end, f"{wanted} not in {self.text[-2000:]!r}"
            self._read()
            time.sleep(0.02)

    def drain(self) -> None:
        """Read until the program has closed the terminal."""
        end = time.monotonic() + _SECONDS
        while self._read() and time.monotonic() < end:
            time.sleep(0.02)

    def _read(self) -> bool:
        try:
            chunk = os.read(self._descriptor, 65536).decode(errors="replace")
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.text += re.sub(r"\x1b\[[0-9;?>=]*[a-zA-Z]|\x1b[()=>][0-9A-B]?", "", chunk)
        return bool(chunk)


def test_view_sorts_filters_and_opens_log(cli: Cli, ten: zlog.Log) -> None:
    ten.cursor("billing", create=4)
    zlog.Log.create(ten.store, "other").close()
    with view(cli, "--interval", "0.2") as screen:
        screen.wait_for("orders", "other", "RATE/s", "2 logs", "by rate")
        ten.append_many([b"more"] * 5)
        screen.wait_for("15")
        screen.press("s")
        screen.wait_for("by bytes")
        screen.press("/")
        screen.press("ord\r")
        screen.wait_for("orders")
        screen.press("\r")
        screen.wait_for("cursor billing", "at 4, 11 behind", "width 2")
        screen.press("\x1b")
        screen.wait_for("RATE/s")


def test_control_c_ends_view_and_filter(cli: Cli) -> None:
    with view(cli, end=b"\x03") as screen:
        screen.wait_for("orders")
        screen.press("/")
        screen.wait_for("part of a name")
