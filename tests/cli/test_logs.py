"""create, ls, info, views, reconfigure, rm, fill, trim."""

from __future__ import annotations

import json

import pytest

import zlog

from ..client.faulty import Refusing
from ..support.logs import leave_hole
from .conftest import Inside


def test_create_makes_log(inside: Inside) -> None:
    words = ("--stripe-records", "2", "--stripe-bytes", "1M", "--option", "team=billing")
    inside.ok("create", "invoices", "--width", "3", *words, "--option", "a=b=c")
    found = json.loads(inside.ok("info", "invoices", "--json"))
    assert found["width"] == 3
    assert found["options"] == {
        "stripe_records": "2",
        "stripe_bytes": "1048576",
        "team": "billing",
        "a": "b=c",
    }


def test_create_existing_log_needs_exist_ok(inside: Inside, orders: zlog.Log) -> None:
    orders.append(b"kept")
    assert inside("create", "orders").code == 5
    inside.ok("create", "orders", "--exist-ok")
    assert inside.ok("read", "orders") == b"kept\n"


def test_ls_lists_names_in_order(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"12", b"345"])
    inside.ok("create", "billing")
    assert inside.ok("ls") == b"billing\norders\n"
    assert [json.loads(line) for line in inside.ok("ls", "--json").splitlines()] == [
        {"name": "billing"},
        {"name": "orders"},
    ]
    long = inside.ok("ls", "--long").decode().splitlines()
    assert [line.split() for line in long] == [
        ["billing", "0", "0", "0", "B", "-", "store:"],
        ["orders", "2", "2", "5", "B", "-", "store:"],
    ]
    stats = [json.loads(line) for line in inside.ok("ls", "-l", "--json").splitlines()]
    assert [(stat["name"], stat["tail"], stat["bytes"]) for stat in stats] == [
        ("billing", 0, 0),
        ("orders", 2, 5),
    ]


def test_log_ordered_by_its_object(inside: Inside, orders: zlog.Log) -> None:
    assert inside("create", "a", "--ordering", "object", "--width", "2").code == 2
    inside.ok("create", "a", "--ordering", "object")
    inside.ok("append", "a", stdin=b"0\n1\n")
    shown = inside.ok("info", "a").decode().splitlines()
    assert "sequencer   none: ordered by its object" in shown
    assert "ordering    object (log)" in shown
    assert inside.ok("ls", "-l").splitlines()[0].endswith(b"  ordered by its object")
    for command in (["info", "a"], ["ls", "-l"], ["views", "a"], ["access", "show", "a"]):
        first = inside.ok(*command, "--json").splitlines()[0]
        assert json.loads(first)["ordering"] == "object"
    refused = inside("append", "a", "--exclusive", stdin=b"2\n")
    assert "`zlog reconfigure a --ordering sequencer`" in refused.err
    inside.ok("reconfigure", "a", "orders", "--ordering", "sequencer")
    assert inside.ok("views", "a").split(b"\n")[1].startswith(b"2  store:  ")
    assert zlog.Log.open(orders.store, "orders").view == orders.view


def test_info_json_matches_stat(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"12", b"345", b"6"])
    orders.trim_to(1)
    stat = orders.stat()
    found = json.loads(inside.ok("info", "orders", "--json"))
    assert found.pop("settings")["width"] == {"value": "2", "origin": "log", "pattern": None}
    assert found == {
        **stat._asdict(),
        "log_id": f"{stat.log_id:016x}",
        "offloaded": stat.offloaded._asdict(),
        "offload_folders": [],
        "promoted_from": [],
        "ordering": "sequencer",
        "read_only": False,
        "writer": None,
        "options": {},
        "mac_key_id": None,
        "store": inside.url,
    }
    assert (found["tail"], found["entries"], found["trim_point"]) == (3, 2, 1)


def test_info_prints_readable_values(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"x"] * 1234)
    lines = inside.ok("info", "orders").decode().splitlines()
    found = {line[:11].strip(): line[11:].strip() for line in lines}
    assert found["tail"] == "1,234"
    assert found["sequencer"] == "shared through the store"
    assert found["layout"] == "1 stripe, 2 objects, width 2, stripe unit 1"


def test_views_are_listed(inside: Inside) -> None:
    (view,) = [json.loads(line) for line in inside.ok("views", "orders", "--json").splitlines()]
    assert view["epoch"] == 1
    stripe = {"id": 1, "start": 0, "end": None, "width": 2, "stripe_unit": 1}
    assert view["stripes"] == [{**stripe, "file": None}]
    assert inside.ok("views", "orders").split()[:2] == [b"1", b"store:"]


def test_rm_without_terminal_needs_yes(inside: Inside) -> None:
    result = inside("rm", "orders")
    assert result.code == 2
    assert "--yes" in result.err
    assert inside.ok("ls") == b"orders\n"
    inside.ok("create", "other")
    inside.ok("rm", "orders", "other", "--yes")
    assert inside.ok("ls") == b""
    assert inside("rm", "orders", "--yes").code == 3


def test_interrupted_removal_is_reported_with_fix(inside: Inside, orders: zlog.Log) -> None:
    with pytest.raises(zlog.ClassNotLoaded):
        zlog.Log.remove(Refusing(orders.store, "directory_remove", first=2), "orders")
    told = inside("ls", "--long")
    assert (told.code, told.out) == (0, b"")
    assert "was removed, but its removal is not finished" in told.err
    assert "run `zlog rm orders` to finish" in told.err
    for words in (["info", "orders"], ["info", "--match", "*"], ["read", "*"], ["tail", "ord*"]):
        assert "run `zlog rm orders` to finish" in inside(*words).err
    seen = inside("doctor")
    assert b"warning  removal: the removal of log orders is not finished" in seen.out
    assert b"`zlog rm orders` to finish" in seen.out
    inside.ok("rm", "--yes", "orders")
    assert inside("ls", "--long") == (0, b"", "")


def test_fill_and_trim_leave_gaps(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"0", b"1", b"2", b"3"])
    hole = leave_hole(orders)
    inside.ok("fill", "orders", str(hole))
    inside.ok("fill", "orders", str(hole))
    inside.ok("trim", "orders", "2", "3")
    inside.ok("trim", "orders", "--to", "1")
    items = [json.loads(line) for line in inside.ok("read", "orders", "--json").splitlines()]
    assert [item.get("gap", item.get("data")) for item in items] == [
        "trimmed",
        "1",
        "trimmed",
        "filled",
    ]


def info(inside: Inside) -> dict[str, object]:
    found: dict[str, object] = json.loads(inside.ok("info", "orders", "--json"))
    return found


def test_reconfigure_changes_width(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"a", b"b", b"c"])
    inside.ok("reconfigure", "orders", "--width", "16")
    assert orders.append(b"d") == 3
    assert inside.ok("read", "orders") == b"a\nb\nc\nd\n"
    assert (info(inside)["width"], info(inside)["stripes"]) == (16, 2)
    epoch = info(inside)["epoch"]
    inside.ok("reconfigure", "orders", "--width", "16")
    assert info(inside)["epoch"] == epoch


def test_roll_starts_stripe_of_same_width(
    inside: Inside, orders: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append(b"a")
    width = str(orders.view.live_stripe.width)
    with monkeypatch.context() as patched:
        patched.setattr("zlog.cli.output.stderr_is_terminal", lambda: True)
        told = inside("reconfigure", "orders", "--width", width).err
        assert "has these settings already; --roll starts a new stripe anyway" in told
        assert orders.stat().stripes == 1
        told = inside("reconfigure", "orders", "--roll").err
        assert f"width {width}, stripe unit 1 from position 1 on" in told
    inside.ok("reconfigure", "orders", "--width", "3", "--roll")
    orders.append(b"b")
    assert (info(inside)["stripes"], info(inside)["width"]) == (2, 3)


def test_settings_change_without_new_stripe(inside: Inside, orders: zlog.Log) -> None:
    orders.append(b"a")
    inside.ok(
        "reconfigure",
        "orders",
        "--stripe-bytes",
        "64M",
        "--option",
        "team=billing",
        "--option",
        "x=",
    )
    assert info(inside)["options"] == {"stripe_bytes": str(64 << 20), "team": "billing", "x": ""}
    inside.ok("reconfigure", "orders", "--stripe-records", "9", "--unset", "x", "--unset", "team")
    assert info(inside)["options"] == {"stripe_bytes": str(64 << 20), "stripe_records": "9"}
    assert info(inside)["stripes"] == 1
