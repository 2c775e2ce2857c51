"""The plain API for all logs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

import zlog

from ..support.programs import ZLOG
from .conftest import Server, Starter

ENTRIES = "/v1/logs/orders/entries"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture
def orders(server: Server) -> Server:
    """A server with an empty log `orders`, which is ordered by its object."""
    assert server.ask("PUT", "/v1/logs/orders", b'{"ordering": "object"}').status == 201
    return server


def lines(body: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in body.splitlines()]


def test_logs_are_created_listed_described_and_removed(server: Server) -> None:
    made = server.ask("PUT", "/v1/logs/a", b'{"width": 2, "options": {"team": "x"}}')
    assert (made.status, made.headers["location"]) == (201, f"{server.address}/v1/logs/a")
    server.ask("PUT", "/v1/logs/b")
    server.ask("PUT", "/v1/stream/c/d")
    assert server.ask("GET", "/v1/logs?count=2").fields == {"logs": ["a", "b"], "next": "b"}
    assert server.ask("GET", "/v1/logs?after=b").fields == {"logs": ["c.2fd"], "next": None}
    info = server.ask("GET", "/v1/logs/a").fields
    assert (info["width"], info["options"], info["tail"]) == (2, {"team": "x"}, 0)
    assert server.ask("GET", "/v1/logs/c.2fd").fields["stream"] == "c/d"
    assert server.ask("PUT", "/v1/logs/a").fields["code"] == "LogExists"
    assert server.ask("DELETE", "/v1/logs/a").status == 204
    assert server.ask("GET", "/v1/logs/a").fields["code"] == "LogNotFound"
    assert server.ask("DELETE", "/v1/logs/c.2fd").fields["code"] == "IsAStream"
    assert server.ask("POST", "/v1/logs/c.2fd/entries", b"x").fields["code"] == "IsAStream"


def test_entries_of_every_format_come_back_in_every_format(orders: Server) -> None:
    text = b'{"data": "one", "tags": ["a"]}\n\n{"gap": "filled", "end": 3}\n{"data_b64": "/w=="}\n'
    assert orders.ask("POST", ENTRIES, text, Content_Type=NDJSON).fields == {"positions": [0, 1]}
    table = pa.table({"data": [b"two", b"three"], "tags": [["b"], None]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = bytes(sink.getvalue())
    assert orders.ask("POST", f"{ENTRIES}?tag=c", body, Content_Type=ARROW).status == 201
    raw = orders.ask("POST", f"{ENTRIES}?tag=d&tag=e", b"four", Content_Type="text/plain")
    assert raw.fields == {"positions": [4]}
    found = lines(orders.ask("GET", ENTRIES).body)
    assert [each.get("data", each.get("data_b64")) for each in found] == [
        *("one", "/w==", "two", "three", "four")
    ]
    assert [each.get("tags") for each in found] == [["a"], None, ["b", "c"], ["c"], ["d", "e"]]
    arrow = orders.ask("GET", ENTRIES, Accept=f"text/html, {ARROW}")
    assert pa.ipc.open_stream(arrow.body).read_all().to_pydict()["data"][1:3] == [b"\xff", b"two"]
    assert orders.ask("GET", ENTRIES, Accept="application/octet-stream").body == (
        b"one\xfftwothreefour"
    )
    assert orders.ask("GET", ENTRIES, Accept="image/png").status == 406
    one = orders.ask("GET", f"{ENTRIES}/4")
    assert (one.body, one.headers["zlog-tags"]) == (b"four", '["d", "e"]')


def test_reads_select_by_position_tag_and_time(orders: Server) -> None:
    for i in range(6):
        orders.ask("POST", f"{ENTRIES}?tag=t{i % 2}&tag=all", b"%d" % i)
    times = [each["timestamp"] for each in lines(orders.ask("GET", ENTRIES).body)]

    def data(query: str) -> str:
        found = lines(orders.ask("GET", f"{ENTRIES}?{query}").body)
        return "".join(str(each["data"]) for each in found)

    assert data("start=2&end=4") == "23"
    assert data("tag=t1") == "135"
    assert data("tag=t1&tag=all&match=all&limit=2") == "13"
    assert data(f"since={times[2]}&until={times[5]}") == "234"
    page = orders.ask("GET", f"{ENTRIES}?limit=4")
    assert (page.headers["zlog-next"], page.headers["zlog-tail"]) == ("4", "6")
    for wrong in (
        "start=-1",
        "start=1&since=x",
        "since=noon",
        "limit=0",
        "match=some",
        "end=1&end=2",
        "tga=t1",
        "tag=%ff",
    ):
        assert orders.ask("GET", f"{ENTRIES}?{wrong}").status == 400, wrong


def test_conditions_are_those_of_python(orders: Server) -> None:
    orders.ask("POST", f"{ENTRIES}?tag=course", b"x")
    differs = orders.ask("POST", f"{ENTRIES}?expect=0", b"y")
    assert (differs.status, differs.fields["code"], differs.fields["position"]) == (
        409,
        "Conflict",
        1,
    )
    unless = 'unless=["course"]'.replace('"', "%22")
    assert orders.ask("POST", f"{ENTRIES}?{unless}", b"y").status == 409
    assert orders.ask("POST", f"{ENTRIES}?{unless}&after=0", b"y").fields == {"positions": [1]}
    for wrong in ("unless=course", "unles=x"):
        refused = orders.ask("POST", f"{ENTRIES}?{wrong}", b"y")
        assert (refused.status, wrong[:5] in refused.fields["message"]) == (400, True)


def test_gaps_are_reported(orders: Server, store_at: str) -> None:
    for i in range(4):
        orders.ask("POST", ENTRIES, b"%d" % i)
    with zlog.connect(store_at) as store, zlog.Log.open(store, "orders") as log:
        log.trim(2)
        log.reconfigure(ordering="sequencer")
        log.fill(log.reserve()[0])
    assert orders.ask("POST", "/v1/logs/orders/trim", b'{"before": 1}').status == 204
    found = lines(orders.ask("GET", ENTRIES).body)
    printed = subprocess.check_output([ZLOG, "--store", store_at, "read", "orders", "--json"])
    assert found == lines(printed)
    assert [(each["position"], each.get("gap")) for each in found] == [
        *((0, "trimmed"), (1, None), (2, "trimmed"), (3, None), (4, "filled"))
    ]
    raw = orders.ask("GET", ENTRIES, Accept="application/octet-stream")
    assert json.loads(raw.headers["zlog-gaps"]) == [
        *([0, 1, "trimmed"], [2, 3, "trimmed"], [4, 5, "filled"])
    ]
    assert orders.ask("GET", f"{ENTRIES}/2").fields["code"] == "Invalidated"
    beyond = orders.ask("POST", "/v1/logs/orders/trim", b'{"before": 9}')
    assert (beyond.status, beyond.fields["code"]) == (400, "BeyondTail")


def test_only_complete_ranges_are_cached_forever(orders: Server) -> None:
    for i in range(4):
        orders.ask("POST", ENTRIES, b"%d" % i)
    fixed = orders.ask("GET", f"{ENTRIES}?start=1&end=3")
    assert fixed.headers["cache-control"] == "public, max-age=31536000, immutable"
    again = orders.ask("GET", f"{ENTRIES}?start=1&end=3", If_None_Match=fixed.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert "immutable" in orders.ask("GET", f"{ENTRIES}?limit=2").headers["cache-control"]
    for growing in ("", "?end=9", "?since=2020-01-01T00:00:00Z"):
        reply = orders.ask("GET", ENTRIES + growing)
        assert reply.headers["cache-control"] == "public, no-cache"
        orders.ask("POST", ENTRIES, b"more")
        changed = orders.ask("GET", ENTRIES + growing, If_None_Match=reply.headers["etag"])
        assert changed.status == 200


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_bodies_are_compressed_on_request(orders: Server, coding: str) -> None:
    pack, unpack = {
        "gzip": (gzip.compress, gzip.decompress),
        "zstd": (zstandard.compress, zstandard.decompress),
    }[coding]
    data = b"x" * 5000
    assert orders.ask("POST", ENTRIES, pack(data), Content_Encoding=coding).status == 201
    reply = orders.ask("GET", f"{ENTRIES}/0", Accept_Encoding=f"br, {coding}")
    assert (reply.headers["content-encoding"], unpack(reply.body)) == (coding, data)
    assert orders.ask("GET", f"{ENTRIES}/0").body == data
    bomb = orders.ask("POST", ENTRIES, pack(bytes(9 << 20)), Content_Encoding=coding)
    assert bomb.status == 413
    for wrong in (pack(data)[:-3], b"no"):
        assert orders.ask("POST", ENTRIES, wrong, Content_Encoding=coding).status == 400
    assert orders.ask("GET", "/v1/logs/orders").fields["tail"] == 1


@pytest.mark.long
def test_description_is_accurate(start: Starter, tmp_path: Path) -> None:
    """Schemathesis sends what the document allows, and what it does not allow."""
    server = start("--poll-time", "0.1", "--events-time", "1")
    program = Path(sys.executable).with_name("schemathesis")
    words = [str(program), "run", f"{server.address}/openapi.json", "--url", server.address]
    words += ["--max-examples", os.environ.get("ZLOG_EXAMPLES", "100"), "--continue-on-failure"]
    # What the document allows can be refused for reasons that it cannot express.
    words += ["--exclude-checks", "positive_data_acceptance"]
    words += ["--seed", "1", "--no-color", "--generation-database", "none"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
