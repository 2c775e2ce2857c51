"""create, ls, info, views, rm, fill, trim, check."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import zlog

from .conftest import Cli, Invoke, leave_hole


def test_create_makes_a_log(cli: Cli) -> None:
    cli.ok("create", "invoices", "--width", "3", "--option", "team=billing", "--option", "a=b=c")
    found = json.loads(cli.ok("info", "invoices", "--json"))
    assert found["width"] == 3
    assert found["options"] == {"team": "billing", "a": "b=c"}


def test_create_again_is_an_error_unless_allowed(cli: Cli, orders: zlog.Log) -> None:
    orders.append(b"kept")
    assert cli("create", "orders").code == 5
    cli.ok("create", "orders", "--exist-ok")
    assert cli.ok("read", "orders") == b"kept\n"


def test_ls_gives_names_in_order(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"12", b"345"])
    cli.ok("create", "billing")
    assert cli.ok("ls") == b"billing\norders\n"
    assert [json.loads(line) for line in cli.ok("ls", "--json").splitlines()] == [
        {"name": "billing"},
        {"name": "orders"},
    ]
    long = cli.ok("ls", "--long").decode().splitlines()
    assert [line.split() for line in long] == [
        ["billing", "0", "0", "0", "B", "store:"],
        ["orders", "2", "2", "5", "B", "store:"],
    ]
    stats = [json.loads(line) for line in cli.ok("ls", "-l", "--json").splitlines()]
    assert [(stat["name"], stat["tail"], stat["bytes"]) for stat in stats] == [
        ("billing", 0, 0),
        ("orders", 2, 5),
    ]


def test_info_as_json_has_what_stat_has(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"12", b"345", b"6"])
    orders.trim_to(1)
    stat = orders.stat()
    found = json.loads(cli.ok("info", "orders", "--json"))
    assert found == {
        **stat._asdict(),
        "log_id": f"{stat.log_id:016x}",
        "options": {},
        "store": cli.url,
    }
    assert (found["tail"], found["entries"], found["trim_point"]) == (3, 2, 1)


def test_info_for_people(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"x"] * 1234)
    lines = cli.ok("info", "orders").decode().splitlines()
    found = {line[:11].strip(): line[11:].strip() for line in lines}
    assert found["tail"] == "1,234"
    assert found["sequencer"] == "shared through the store"
    assert found["layout"] == "1 stripe, 2 objects, width 2"


def test_views(cli: Cli) -> None:
    (view,) = [json.loads(line) for line in cli.ok("views", "orders", "--json").splitlines()]
    assert view["epoch"] == 1
    assert view["stripes"] == [{"id": 1, "start": 0, "end": None, "width": 2}]
    assert cli.ok("views", "orders").split()[:2] == [b"1", b"store:"]


def test_rm_without_a_terminal_needs_yes(cli: Cli) -> None:
    result = cli("rm", "orders")
    assert result.code == 2
    assert "--yes" in result.err
    assert cli.ok("ls") == b"orders\n"
    cli.ok("create", "other")
    cli.ok("rm", "orders", "other", "--yes")
    assert cli.ok("ls") == b""
    assert cli("rm", "orders", "--yes").code == 3


def test_fill_and_trim(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"0", b"1", b"2", b"3"])
    hole = leave_hole(orders)
    cli.ok("fill", "orders", str(hole))
    cli.ok("fill", "orders", str(hole))
    cli.ok("trim", "orders", "2", "3")
    cli.ok("trim", "orders", "--to", "1")
    items = [json.loads(line) for line in cli.ok("read", "orders", "--json").splitlines()]
    assert [item.get("gap", item.get("data")) for item in items] == [
        "trimmed",
        "1",
        "trimmed",
        "filled",
    ]


@pytest.mark.parametrize(
    "words", [["fill", "orders", "0"], ["trim", "orders", "0"], ["trim", "orders", "--to", "1"]]
)
def test_beyond_the_tail_nothing_is_filled_or_trimmed(cli: Cli, words: list[str]) -> None:
    result = cli(*words)
    assert result.code == 1
    assert "the tail of log 'orders' is 0" in result.err


def test_check_of_a_sound_log_says_nothing(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"x"] * 100)
    assert cli.ok("check", "orders") == b""


def test_check_tells_of_holes_which_are_no_failure(cli: Cli, orders: zlog.Log) -> None:
    position = leave_hole(orders)
    orders.append(b"x")
    assert cli.ok("check", "orders").startswith(f"hole: position {position} in ".encode())


def test_check_fails_when_data_is_lost(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_log: zlog.Log) -> Iterator[zlog.Finding]:
        yield zlog.Finding(zlog.FindingKind.LOST, "zlog.x", 4, 9, "damaged")
        yield zlog.Finding(zlog.FindingKind.MISSING_OBJECT, "zlog.y", None, None, "gone")

    invoke("create", "orders")
    monkeypatch.setattr(zlog.Log, "check", damaged)
    result = invoke("check", "orders")
    assert result.code == 1
    assert (
        result.out
        == b"lost: positions 4 to 8 in zlog.x: damaged\nmissing-object: in zlog.y: gone\n"
    )
    first = json.loads(invoke("check", "orders", "--json").out.splitlines()[0])
    assert first == {
        "kind": "lost",
        "object": "zlog.x",
        "position": 4,
        "end": 9,
        "detail": "damaged",
        "serious": True,
    }
