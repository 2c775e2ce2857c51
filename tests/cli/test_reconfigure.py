"""reconfigure: another width, other settings; and what create says of full stripes."""

from __future__ import annotations

import json

import pytest

import zlog

from .conftest import Inside


def info(inside: Inside) -> dict[str, object]:
    found: dict[str, object] = json.loads(inside.ok("info", "orders", "--json"))
    return found


def test_the_width_changes_from_a_position_on(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"a", b"b", b"c"])
    inside.ok("reconfigure", "orders", "--width", "16")
    assert orders.append(b"d") == 3
    assert inside.ok("read", "orders") == b"a\nb\nc\nd\n"
    assert (info(inside)["width"], info(inside)["stripes"]) == (16, 2)
    epoch = info(inside)["epoch"]
    inside.ok("reconfigure", "orders", "--width", "16")
    assert info(inside)["epoch"] == epoch


def test_a_new_stripe_of_the_same_width(
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
        assert f"width {width}, unit 1 from position 1 on" in told
    inside.ok("reconfigure", "orders", "--width", "3", "--roll")
    orders.append(b"b")
    assert (info(inside)["stripes"], info(inside)["width"]) == (2, 3)


def test_settings_change_without_a_new_stripe(inside: Inside, orders: zlog.Log) -> None:
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


def test_stripes_of_a_log_end_as_its_creation_says(inside: Inside) -> None:
    inside.ok("create", "small", "--width", "1", "--stripe-records", "2", "--stripe-bytes", "1M")
    with zlog.connect(inside.url) as store, zlog.Log.open(store, "small") as log:
        for _ in range(10_000):
            log.append(b"y")
            if len(log.view.stripes) > 3:
                break
        assert log.stat().stripes > 3


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["--width", "0"],
        ["--width", "2000"],
        ["--stripe-bytes", "0"],
        ["--stripe-records", "0"],
        ["--option", "stripe_bytes=many"],
        ["--option", "nothing"],
    ],
)
def test_what_can_not_be_is_a_usage_error(
    inside: Inside, orders: zlog.Log, wrong: list[str]
) -> None:
    epoch = orders.view.epoch
    assert inside("reconfigure", "orders", *wrong).code == 2
    assert zlog.Log.open(orders.store, "orders").view.epoch == epoch
