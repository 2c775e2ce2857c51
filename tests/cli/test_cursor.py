"""cursor, the readers that keep one, and producer."""

from __future__ import annotations

import json
import signal

import pytest

import zlog

from ..support.waiting import wait_until
from .conftest import Cli, Inside, end


def test_cursors_are_set_listed_and_removed(inside: Inside, ten: zlog.Log) -> None:
    inside.ok("cursor", "set", "orders", "billing", "earliest")
    inside.ok("cursor", "set", "orders", "audit", "-3")
    inside.ok("cursor", "set", "orders", "now", "latest")
    inside.ok("cursor", "set", "orders", "billing", "4")
    rows = [line.split() for line in inside.ok("cursor", "ls", "orders").decode().splitlines()]
    assert [row[:3] for row in rows] == [
        ["audit", "7", "3"],
        ["billing", "4", "6"],
        ["now", "10", "0"],
    ]
    first = json.loads(inside.ok("cursor", "ls", "orders", "--json").splitlines()[0])
    assert {"name", "position", "lag", "created", "updated"} == first.keys()
    assert (first["name"], first["lag"]) == ("audit", 3)
    inside.ok("cursor", "rm", "orders", "audit", "now")
    assert [cursor.name for cursor in ten.cursors()] == ["billing"]
    assert inside("cursor", "rm", "orders", "audit").code == 1


def test_new_cursor_starts_at_given_position(inside: Inside, ten: zlog.Log) -> None:
    assert inside.ok("tail", "orders", "--cursor", "a", "--from", "latest") == b""
    assert inside.ok("tail", "orders", "--cursor", "b", "--from", "-1") == b"9\n"
    assert inside.ok("tail", "orders", "--cursor", "b", "--from", "earliest") == b""
    assert {cursor.position for cursor in ten.cursors()} == {10}


def test_tail_starts_at_given_position(inside: Inside, ten: zlog.Log) -> None:
    ten.trim_to(2)
    assert inside.ok("tail", "orders", "--from", "7").split() == [b"7", b"8", b"9"]
    assert len(inside.ok("tail", "orders", "--from", "earliest").split()) == 8
    assert len(inside.ok("tail", "orders", "--from", "@1h").split()) == 8
    assert inside.ok("tail", "orders", "--from", "latest") == b""


def test_read_moves_cursor_only_with_commit(inside: Inside, ten: zlog.Log) -> None:
    assert inside("read", "orders", "--cursor", "nightly").code == 1
    ten.cursor("nightly", create=7)
    for _ in range(2):
        assert inside.ok("read", "orders", "--cursor", "nightly").split() == [b"7", b"8", b"9"]
    assert inside.ok("read", "orders", "--cursor", "nightly", "--commit").count(b"\n") == 3
    assert inside.ok("read", "orders", "--cursor", "nightly", "--commit") == b""
    assert inside.ok("read", "orders", "--cursor", "new", "--commit").count(b"\n") == 10


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_follower_commits_regularly_and_at_end(
    cli: Cli, ten: zlog.Log, number: int, code: int
) -> None:
    with cli.start("tail", "orders", "--cursor", "billing", "--follow") as process:
        assert [process.stdout.readline() for _ in range(10)][-1] == b"9\n"
        wait_until(lambda: ten.cursor("billing", create="earliest").position == 10)
        ten.append(b"ten")
        assert process.stdout.readline() == b"ten\n"
        assert end(process, number) == (code, b"")
    assert ten.cursor("billing").position == 11


def test_entries_that_were_not_read_are_not_committed(cli: Cli, orders: zlog.Log) -> None:
    """The reader of the pipe is gone: entries that did not fit into it are read again."""
    orders.append_many([bytes(1000)] * 2000)
    for words in (["--follow"], []):
        name = f"billing{len(words)}"
        with cli.start("tail", "orders", "--cursor", name, "--raw", *words) as process:
            process.stdout.read(1000)
            process.stdout.close()
            assert process.wait(20) == 141
        assert orders.cursor(name).position < 1000


def test_trim_stops_at_cursor(inside: Inside, ten: zlog.Log) -> None:
    ten.cursor("billing", create=4)
    result = inside("trim", "orders", "--to", "6")
    assert result.code == 1
    assert "a cursor of log 'orders' is at 4" in result.err
    assert "zlog cursor ls" in result.err
    inside.ok("trim", "orders", "--to", "4")
    inside.ok("trim", "orders", "--to", "6", "--past-cursors")
    assert ten.earliest() == 6


def test_trim_ends_at_given_position(inside: Inside, ten: zlog.Log) -> None:
    inside.ok("trim", "orders", "--to", "@1h")
    assert ten.earliest() == 0
    inside.ok("trim", "orders", "--to", "-4")
    assert ten.earliest() == 6
    inside.ok("trim", "orders", "--to", "latest")
    assert ten.earliest() == 10


def test_producers_are_listed(inside: Inside, orders: zlog.Log) -> None:
    assert inside.ok("producer", "ls", "orders") == b""
    orders.append_once([b"a"], producer="crm", sequence=7)
    orders.append_once([b"b"], producer="crm", sequence=7, part=1)
    orders.append_once([b"c"], producer="audit", sequence=3)
    orders.complete_sequences("audit", before=4)
    rows = [line.split() for line in inside.ok("producer", "ls", "orders").decode().splitlines()]
    assert [row[:3] for row in rows] == [["audit", "4", "0"], ["crm", "0", "2"]]
    found = [
        json.loads(line) for line in inside.ok("producer", "ls", "orders", "--json").splitlines()
    ]
    assert [each["name"] for each in found] == ["audit", "crm"]
    assert {"name", "sequence", "parts", "created", "updated"} == found[0].keys()
    assert found[0]["created"] < found[0]["updated"]


def test_unused_producer_is_removed(inside: Inside, orders: zlog.Log) -> None:
    for source in ("a", "b", "c"):
        orders.append_once([source.encode()], producer=source, sequence=1)
    inside.ok("producer", "rm", "orders", "a", "c")
    assert [each.name for each in orders.producers()] == ["b"]
    assert [item.data for item in orders.read_range()] == [b"a", b"b", b"c"]  # type: ignore[union-attr]
    refused = inside("producer", "rm", "orders", "a")
    assert refused.code == 1
    assert "no producer 'a'" in refused.err
    assert "zlog producer ls" in refused.err
