"""retention: what is set, and what --apply trims."""

from __future__ import annotations

import json

import pytest

import zlog
from zlog import Retention

from .conftest import Inside


def shown(inside: Inside) -> str:
    return inside.ok("retention", "orders").decode().strip()


def limit(inside: Inside, *words: str) -> None:
    """Set limits in an embedded store, where they are enforced on request only."""
    result = inside("retention", "orders", *words)
    assert (result.code, result.out) == (0, b"")
    assert "no sequencer enforces this" in result.err
    assert "`zlog retention orders --apply` regularly" in result.err


def test_limits_are_set_shown_and_taken_away(inside: Inside, orders: zlog.Log) -> None:
    assert shown(inside) == "everything is kept"
    limit(inside, "--age", "7d", "--bytes", "1.5G")
    assert shown(inside) == "age 1w, bytes 1,610,612,736 (1.5 GiB)"
    limit(inside, "--age", "off", "--entries", "1M")
    assert shown(inside) == "bytes 1,610,612,736 (1.5 GiB), entries 1,000,000"
    fields = json.loads(inside.ok("retention", "orders", "--json"))
    assert fields == {"age_s": None, "bytes": 1610612736, "entries": 1000000}
    inside.ok("retention", "orders", "--off")
    assert shown(inside) == "everything is kept"
    with zlog.Log.open(orders.store, "orders") as log:
        assert log.retention == Retention()


def test_nothing_is_trimmed_until_it_is_applied(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"x"] * 20)
    orders.cursor("slow", create=12)
    limit(inside, "--entries", "5")
    assert orders.earliest() == 0
    held = inside("retention", "orders", "--apply")
    assert held.err == "zlog: retention goes no further than 12, where cursor 'slow' is\n"
    assert orders.earliest() == 12
    orders.cursor("slow").remove()
    inside.ok("retention", "orders", "--entries", "3", "--apply")
    assert orders.earliest() == 17


@pytest.mark.parametrize(
    "words",
    [
        ["--age", "7"],
        ["--age", "-7d"],
        ["--bytes", "ten"],
        ["--entries", "1T"],
        ["--entries", "0"],
        ["--bytes", "0"],
        ["--age", "0s"],
        ["--off", "--age", "7d"],
    ],
)
def test_what_is_no_limit(inside: Inside, words: list[str]) -> None:
    assert inside("retention", "orders", *words).code == 2
    assert shown(inside) == "everything is kept"
