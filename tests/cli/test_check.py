"""The command check: what it prints of what an audit finds."""

from __future__ import annotations

import json

import pytest

import zlog

from ..client import planted
from ..support.logs import leave_hole
from .conftest import Cli, Inside
from .test_terminal import on_terminal


@pytest.fixture
def damaged(orders: zlog.Log) -> zlog.Log:
    """A log of width 2 that has lost position 3, and all of its second object's second record."""
    orders.append_many([b"first %d" % i for i in range(6)])
    orders.append_many([b"second %d" % i for i in range(6)])
    ref = list(orders.view.objects())[1]
    planted.flip(orders.store, ref.name, b"first 3", b"forst 3")
    writer, number = planted.append_at(orders, 7)
    origin = writer + number.to_bytes(8, "little")
    planted.flip(orders.store, ref.name, origin, bytes(8) + origin[8:])
    return orders


def test_check_of_sound_log_is_silent(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"x"] * 100)
    assert inside.ok("check", "orders") == b""


def test_holes_are_reported_without_failure(inside: Inside, orders: zlog.Log) -> None:
    position = leave_hole(orders)
    orders.append(b"x")
    name = next(orders.view.objects()).name
    expected = f"hole: position {position} in {name}: granted, but not written\n"
    assert inside.ok("check", "orders").decode() == expected


def test_lost_data_is_failure(inside: Inside, damaged: zlog.Log) -> None:
    result = inside("check", "orders")
    name = list(damaged.view.objects())[1].name
    assert (result.code, result.err) == (1, "")
    assert result.out.decode().splitlines() == [
        f"lost: position 3 in {name}: stored bytes are damaged or lost",
        f"lost: positions 7 to 11, every 2nd, in {name}: stored bytes are damaged or lost",
    ]


def test_missing_object_is_reported_without_positions(inside: Inside, orders: zlog.Log) -> None:
    ref = list(orders.view.objects())[1]
    planted.remove(orders, ref)
    result = inside("check", "orders")
    assert (result.code, result.out.decode()) == (
        1,
        f"missing-object: {ref.name}: the object does not exist\n",
    )


def test_json_prints_findings_and_summary(inside: Inside, damaged: zlog.Log) -> None:
    result = inside("check", "orders", "--json")
    assert result.code == 1
    first, second, last = map(json.loads, result.out.splitlines())
    name = list(damaged.view.objects())[1].name
    assert first == {
        "log": "orders",
        "kind": "lost",
        "object": name,
        "position": 3,
        "end": 4,
        "detail": "stored bytes are damaged or lost",
        "step": 2,
        "serious": True,
    }
    assert (second["position"], second["end"], second["step"]) == (7, 12, 2)
    assert last["summary"] == {
        "positions": 12,
        "entries": 8,
        "bytes": 5 * len(b"first x") + 3 * len(b"second x"),
        "filled": 0,
        "trimmed": 0,
        "unwritten": 0,
        "lost": 4,
        "unreadable": 0,
        "objects": 2,
        "listed": True,
        "forged": 0,
        "offloaded": 0,
        "files": 0,
    }


def test_summary_is_shown_on_terminal(cli: Cli, orders: zlog.Log) -> None:
    orders.append_many([b"x" * 10] * 1000)
    code, screen = on_terminal(cli, "check", "orders")
    assert code == 0
    assert screen == b"zlog: no problems found: 1,000 entries, 9.8 KiB, in 2 objects\n"
    leave_hole(orders)
    code, screen = on_terminal(cli, "check", "orders")
    assert code == 0
    assert screen.splitlines()[-1].startswith(b"zlog: 1 finding, none of them serious: 1,000 ")
