"""delivery: who delivers to a log exactly once is listed, and removed when it is gone."""

from __future__ import annotations

import json
from pathlib import Path

import zlog

from ..conformance.stored import damage_file
from .conftest import Inside


def test_sources_are_listed(inside: Inside, orders: zlog.Log) -> None:
    assert inside.ok("delivery", "ls", "orders") == b""
    orders.deliver([b"a"], source="crm", batch=7)
    orders.deliver([b"b"], source="crm", batch=7, part=1)
    orders.deliver([b"c"], source="audit", batch=3)
    orders.deliveries_done("audit", before=4)
    rows = [line.split() for line in inside.ok("delivery", "ls", "orders").decode().splitlines()]
    assert [row[:3] for row in rows] == [["audit", "4", "0"], ["crm", "0", "2"]]
    found = [
        json.loads(line) for line in inside.ok("delivery", "ls", "orders", "--json").splitlines()
    ]
    assert [each["name"] for each in found] == ["audit", "crm"]
    assert {"name", "batch", "parts", "created", "updated"} == found[0].keys()
    assert found[0]["created"] < found[0]["updated"]


def test_a_source_that_is_gone_is_removed(inside: Inside, orders: zlog.Log) -> None:
    for source in ("a", "b", "c"):
        orders.deliver([source.encode()], source=source, batch=1)
    inside.ok("delivery", "rm", "orders", "a", "c")
    assert [each.name for each in orders.sources()] == ["b"]
    assert [item.data for item in orders.read_range()] == [b"a", b"b", b"c"]  # type: ignore[union-attr]
    refused = inside("delivery", "rm", "orders", "a")
    assert refused.code == 1
    assert "no source of deliveries 'a'" in refused.err
    assert "zlog delivery ls" in refused.err
    assert inside("delivery", "rm", "orders", "a b").code == 2


def test_the_hint_of_a_full_log_can_be_followed(inside: Inside, orders: zlog.Log) -> None:
    for number in range(1024):
        orders.deliveries_done(f"query-{number}", before=0)
    assert len(inside.ok("delivery", "ls", "orders").splitlines()) == 1024
    inside.ok("delivery", "rm", "orders", "query-7")
    assert orders.deliver([b"x"], source="more", batch=0) == 1


def test_a_damaged_source_can_be_removed(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with zlog.connect(folder.as_uri()) as store, zlog.Log.create(store, "orders") as log:
        log.deliver([b"a"], source="crm", batch=1)
        log.deliver([b"b"], source="audit", batch=1)
    assert damage_file(folder, b"s.crm", b"s.crn") >= 1  # the checksum covers the key
    inside = Inside(folder.as_uri())
    assert inside("delivery", "ls", "orders").code == 1
    inside.ok("delivery", "rm", "orders", "crn")
    assert inside.ok("delivery", "ls", "orders").decode().split()[0] == "audit"
