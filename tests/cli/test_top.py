"""`zlog top`: printed once, and as a view on a terminal."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog._base.names import head_object
from zlog.cli.commands.top.rows import HEAD, look, rows_of, summary
from zlog.groups import Queue
from zlog.overview import overview, rates

from ..client.planted import flip
from ..docs.terminal import Terminal
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


@pytest.fixture
def terminal(cli: Cli, tmp_path: Path) -> Iterator[Terminal]:
    """A shell on a terminal, with the store of ``cli``."""
    with Terminal(tmp_path, cli.environment) as terminal:
        terminal.wait_until_idle(_SECONDS)
        yield terminal


def wait_for(terminal: Terminal, *wanted: str) -> None:
    """Read until all of this was shown."""
    end = time.monotonic() + _SECONDS
    while not all(each in terminal.screen() for each in wanted):
        assert time.monotonic() < end, f"{wanted} not in {terminal.screen()[-2000:]!r}"
        terminal.read(end - time.monotonic())


def check_end(terminal: Terminal, key: str) -> None:
    """See that a key ends the view."""
    terminal.press(key)
    terminal.wait_until_idle(_SECONDS)
    terminal.enter("echo code $?")
    wait_for(terminal, "code 0")


def test_view_sorts_filters_and_opens_log(terminal: Terminal, ten: zlog.Log) -> None:
    ten.cursor("billing", create=4)
    zlog.Log.create(ten.store, "other").close()
    terminal.enter(f"TERM=xterm {ZLOG} top --interval 0.2")
    wait_for(terminal, "orders", "other", "RATE/s", "2 logs", "by rate")
    ten.append_many([b"more"] * 5)
    wait_for(terminal, "15")
    terminal.press("s")
    wait_for(terminal, "by bytes")
    terminal.press("/")
    terminal.press("ord\r")
    wait_for(terminal, "names with 'ord'")
    terminal.press("\r")
    wait_for(terminal, "cursor billing", "at 4, 11 behind", "width 2")
    with Queue(ten, "mail"):
        wait_for(terminal, "group mail", "mode queue, lag 15")
    terminal.press("\x1b")
    wait_for(terminal, "RATE/s")
    check_end(terminal, "q")


def test_control_c_ends_view_and_filter(terminal: Terminal) -> None:
    terminal.enter(f"TERM=xterm {ZLOG} top")
    wait_for(terminal, "orders")
    terminal.press("/")
    wait_for(terminal, "part of a name")
    check_end(terminal, "\x03")
