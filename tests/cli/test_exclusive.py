"""append --exclusive, writer, fence and read-only: one writer, or none, and others who are told."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

import zlog
from zlog.cli.exclusive import ExclusiveAppends
from zlog.cli.tally import Tally

from ..support.logs import data_of
from .conftest import Cli, Inside, end


def writer_of(cli: Cli | Inside) -> Any:
    """The log's writer, as JSON has it."""
    return json.loads(cli.ok("access", "show", "orders", "--json"))["writer"]


def refused(cli: Cli | Inside, why: str) -> str:
    """An append is refused; returns the hint."""
    result = cli("append", "orders", "-m", "other")
    assert (result.code, result.out) == (8, b"")
    account, reason, hint = result.err.splitlines()
    assert account == "zlog: no entry of the input is in the log"
    assert why in reason
    return hint


def test_exclusive_append_takes_and_releases_log(cli: Cli, orders: zlog.Log) -> None:
    lines = b"".join(b"line %d\n" % i for i in range(100_000))
    printed = cli.ok("append", "orders", "--exclusive", "--positions", stdin=lines)
    assert printed == b"".join(b"%d\n" % i for i in range(100_000))
    assert cli.ok("read", "orders") == lines
    assert writer_of(cli) is None
    assert orders.append(b"shared") == 100_000
    names = [view.writer and view.writer.name for view in orders.views()]
    assert sum(name is not None for name in names) == 1


def test_keep_option_holds_log_and_names_writer(inside: Inside, orders: zlog.Log) -> None:
    orders.append(b"shared")
    inside.ok("append", "orders", "--exclusive", "--keep", "--name", "ann", stdin=b"a\nb\n")
    hint = refused(inside, "log 'orders' is exclusive to its writer, ann (since ")
    assert "`zlog append orders --exclusive`" in hint
    assert "`zlog access fence orders`" in hint
    inside.ok("append", "orders", "--exclusive", "--keep", "--name", "bob", stdin=b"c\n")
    refused(inside, "bob (since ")
    inside.ok("access", "fence", "orders")
    inside.ok("access", "fence", "orders")
    inside.ok("append", "orders", "-m", "d")
    assert data_of(orders.read_range()) == [b"shared", b"a", b"b", b"c", b"d"]


def test_access_show_reports_writer(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"x"] * 3)
    shown = inside.ok("access", "show", "orders").decode()
    assert "writer  none: any client appends\n" in shown
    assert "tail    3\n" in shown
    with orders.writer("ann") as writer:
        writer.append(b"y")
        view = orders.view
        assert view.writer is not None
        fields = json.loads(inside.ok("access", "show", "orders", "--json"))
        assert fields.pop("writer").keys() == {"name", "id", "since"}
        assert fields == {
            "log": "orders",
            "ordering": "sequencer",
            "read_only": False,
            "epoch": view.epoch,
            "confirmed": 4,
            "stripe": {"id": view.live_stripe.id, "start": 3, "width": 2, "stripe_unit": 1},
        }
        lines = inside.ok("access", "show", "orders").decode().splitlines()
        assert [line.split()[0] for line in lines] == (
            ["log", "writer", "id", "since", "epoch", "confirmed", "stripe"]
        )
        assert [line.split()[1] for line in lines[:3]] == ["orders", "ann", writer.id]


def test_info_ls_and_doctor_report_writer(inside: Inside, orders: zlog.Log) -> None:
    with orders.writer("ann") as writer:
        writer.append(b"y")
        info = inside.ok("info", "orders").decode()
        assert "  none: its writer grants positions\n" in info
        assert "\nwriter       ann, since " in info
        assert json.loads(inside.ok("info", "orders", "--json"))["writer"]["name"] == "ann"
        assert b"  writer ann\n" in inside.ok("ls", "--long")
        assert json.loads(inside.ok("ls", "--long", "--json"))["writer"]["id"] == writer.id
        assert b"writer ann  " in inside.ok("views", "orders").splitlines()[-1]
        last = inside.ok("views", "orders", "--json").splitlines()[-1]
        assert json.loads(last)["writer"]["id"] == writer.id
        assert b"exclusive: log orders; `zlog access show LOG` shows who" in inside.ok("doctor")
        assert inside.ok("check", "orders") == b""
        with zlog.Log.create(orders.store, "other") as other, other.writer("bob"):
            assert b"exclusive: 2 logs (orders, other); " in inside.ok("doctor")


def test_access_makes_log_read_only_and_writable(inside: Inside, orders: zlog.Log) -> None:
    former = orders.writer("ann")
    former.append(b"a")
    inside.ok("access", "read-only", "orders")
    inside.ok("access", "read-only", "orders")
    with pytest.raises(zlog.Fenced, match="read-only"):
        former.append(b"x")
    assert "`zlog access read-only orders --off`" in refused(inside, "is read-only")
    assert inside("append", "orders", "--exclusive", "-m", "x").code == 8
    assert b"writer  none: the log is read-only\n" in inside.ok("access", "show", "orders")
    assert b"  none: the log is read-only\n" in inside.ok("info", "orders")
    assert b"  read-only\n" in inside.ok("ls", "--long")
    assert b"read-only: log orders\n" in inside.ok("doctor")
    assert inside.ok("check", "orders") == b""
    inside.ok("access", "read-only", "orders", "--off")
    inside.ok("access", "read-only", "orders", "--off")
    inside.ok("append", "orders", "-m", "b")
    assert inside.ok("read", "orders") == b"a\nb\n"


def test_mirror_refuses_exclusive_and_read_only(inside: Inside, orders: zlog.Log) -> None:
    orders.append(b"x")
    inside.ok("mirror", "orders", "--to", inside.url, "--as", "copy")
    assert inside("append", "copy", "--exclusive", "-m", "x").code == 8
    assert inside("access", "read-only", "copy").code == 8
    assert b"none: a mirror" in inside.ok("access", "show", "copy")


def test_fenced_writer_reports_appended_entries(cli: Cli, orders: zlog.Log) -> None:
    with cli.start("append", "orders", "--exclusive", "--positions") as process:
        process.stdin.write(b"kept\n")
        process.stdin.flush()
        process.stdout.readline()
        latter = orders.writer("latter")
        process.stdin.write(b"late\n")
        process.stdin.close()
        assert process.wait(20) == 8
        account, reason, hint = process.stderr.read().decode().splitlines()
    first = "zlog: the first entry of the input is in the log"
    assert account in (first, f"{first}; up to 1 more may be")
    assert "is no longer the writer of log 'orders': latter (since" in reason
    assert "`zlog access show orders`" in hint
    assert latter.append(b"next") == 1
    assert data_of(orders.read_range()) == [b"kept", b"next"]


@pytest.mark.parametrize("keep", [False, True])
def test_signal_reports_appended_entries(cli: Cli, keep: bool) -> None:
    words = ["--keep", "--name", "ann"] if keep else []
    with cli.start("append", "orders", "--exclusive", "--positions", *words) as process:
        process.stdin.write(b"kept\n")
        process.stdin.flush()
        process.stdout.readline()
        said = b"zlog: the first entry of the input is in the log"
        assert end(process, signal.SIGTERM) == (143, said)
    writer = writer_of(cli)
    assert writer["name"] == "ann" if keep else writer is None


def failing(_writer: zlog.Writer, _batch: list[bytes], **_: object) -> Future[range]:
    future: Future[range] = Future()
    future.set_exception(zlog.StoreTimeout("no answer"))
    return future


@pytest.mark.parametrize("fails", [False, True])
def test_failed_release_is_reported(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    def not_now(_writer: zlog.Writer) -> None:
        raise zlog.StoreTimeout("not now")

    monkeypatch.setattr(zlog.Writer, "release", not_now)
    if fails:
        monkeypatch.setattr(zlog.Writer, "submit_many", failing)
    result = inside("append", "orders", "--exclusive", stdin=b"a\n")
    assert result.code == 6
    kept = "zlog: log 'orders' is still exclusive: `zlog access fence orders` opens it to all"
    assert kept in result.err.splitlines()
    assert "not now" in result.err
    assert writer_of(inside) is not None


class SlowWriter:
    """A writer without a store. What becomes of a batch is known once it is asked for.

    Attributes:
        asked: positions of those batches that were waited for.
        under_way: entries that were handed in and not waited for, at the most.
        interrupted: whether waiting is.
        released: whether the log was given back.
    """

    fenced = None

    def __init__(self) -> None:
        self.asked: list[range] = []
        self.under_way = 0
        self.interrupted = False
        self.released = False
        self._end = 0

    def submit_many(self, batch: list[bytes], **_: object) -> object:
        positions = range(self._end, self._end + len(batch))
        self._end = positions.stop
        self.under_way = max(self.under_way, self._end - sum(map(len, self.asked)))

        def result() -> range:
            if self.interrupted:
                raise KeyboardInterrupt
            self.asked.append(positions)
            return positions

        return SimpleNamespace(done=lambda: False, result=result)

    def flush(self) -> None:
        """Nothing is left."""

    def close(self) -> None:
        """Nothing is open."""

    def release(self) -> None:
        self.released = True

    def appends(self, show: Callable[[Any], None] | None = None) -> ExclusiveAppends:
        view = SimpleNamespace(writer=None)
        log = SimpleNamespace(view=view, name="orders", writer=lambda _: self)
        return ExclusiveAppends(cast("zlog.Log", log), None, (), Tally(), show, keep=False)


@pytest.mark.parametrize(("size", "most"), [(10, 32_768), (1 << 14, 1024)])
def test_batches_in_flight_are_limited(size: int, most: int) -> None:
    writer, shown = SlowWriter(), list[range]()
    with writer.appends(shown.append) as appends:
        for _ in range(100):
            appends.append([bytes(size)] * 512)
        appends.settle()
    assert writer.under_way == most
    assert shown == writer.asked == [range(i, i + 512) for i in range(0, 51_200, 512)]
    assert writer.released


def test_second_signal_does_not_wait(capsys: pytest.CaptureFixture[str]) -> None:
    writer = SlowWriter()
    writer.interrupted = True

    def interrupted() -> None:
        with writer.appends() as appends:
            appends.append([b"x"])
            appends.settle()

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not writer.released
    assert "is still exclusive: `zlog access fence orders`" in capsys.readouterr().err


def test_remarks_are_shown_on_terminal(
    inside: Inside, orders: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog.cli.output.stderr_is_terminal", lambda: True)
    words = ["append", "orders", "--exclusive", "--name", os.urandom(4).hex(), "--keep"]
    kept = "zlog: log 'orders' stays exclusive: `zlog access fence orders` opens it to all\n"
    assert kept in inside(*words, "-m", "x").err
    assert f"zlog: took the log from {words[4]}\n" in inside(*words, "-m", "x").err
    assert (
        f"no longer belongs to {words[4]}: any client may append\n"
        in inside("access", "fence", "orders").err
    )
    assert "has no exclusive writer\n" in inside("access", "fence", "orders").err
    assert "is read-only from position 2 on\n" in inside("access", "read-only", "orders").err
    assert "is open to all clients\n" in inside("access", "read-only", "orders", "--off").err
    assert orders.append(b"x") == 2
