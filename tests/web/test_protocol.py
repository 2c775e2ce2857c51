"""Durable Streams: the protocol's suite, and what one server and one run of it cannot show."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlog
from zlog.web import log_name, path_of

from ..support.ceph import Clusters, ClusterSpec
from ..support.programs import REPOSITORY
from ..support.waiting import wait_until
from .conftest import NODE_MODULES, Server, Starter, events

TEXT = {"Content_Type": "text/plain"}
S = "/v1/stream/s"


@pytest.fixture(params=["embedded", "ceph"])
def shared_store(request: pytest.FixtureRequest, store_at: str, tmp_path: Path) -> str:
    if request.param == "embedded":
        return store_at
    clusters: Clusters = request.getfixturevalue("ceph_clusters")
    return clusters.shared(ClusterSpec()).url(namespace=tmp_path.name)


@pytest.fixture
def modules() -> Path:
    """The folder with the packages of npm, in which node finds them."""
    if not NODE_MODULES.exists():
        if os.environ.get("ZLOG_REQUIRE_NODE"):
            pytest.fail("the packages of npm are missing: run make npm")
        pytest.skip("needs the packages of npm: make npm")
    return NODE_MODULES.parent


@pytest.mark.long
def test_passes_the_conformance_suite(start: Starter, shared_store: str, modules: Path) -> None:
    server = start("--poll-time", "2", "--allow-origin", "*", url=shared_store)
    test = REPOSITORY / "tests" / "web" / "conformance.test.mjs"
    (modules / test.name).write_bytes(test.read_bytes())
    environment = {**os.environ, "ZLOG_SERVER": server.address}
    words = ["npx", "vitest", "run", test.name, "--retry=1", "--testTimeout=30000"]
    done = subprocess.run(
        words,
        cwd=modules,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert "332 passed" in done.stdout


@pytest.mark.long
def test_kills_lose_and_duplicate_nothing(start: Starter, shared_store: str, modules: Path) -> None:
    servers = [start(url=shared_store), start(url=shared_store)]
    script = modules / "load.mjs"
    script.write_bytes((REPOSITORY / "tests" / "web" / "load.mjs").read_bytes())
    words = ["node", str(script), "6000", *(server.address for server in servers)]
    load = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out: list[bytes] = []
    reading = threading.Thread(target=lambda: out.extend(load.communicate()))
    reading.start()
    kills = 0
    while load.poll() is None:
        server, other = servers[kills % 2], servers[1 - kills % 2]
        server.kill()
        before = other.tail("load")
        wait_until(lambda: load.poll() is not None or other.tail("load") != before)  # noqa: B023
        server.start()
        kills += 1
    reading.join()
    assert out[0] == b'{"got":%s,"failures":[]}\n' % str([*range(6000)]).replace(" ", "").encode()
    assert kills > 3


@given(st.binary(min_size=1, max_size=40), st.binary(min_size=1, max_size=40))
def test_names_of_paths_are_valid_and_unique(one: bytes, two: bytes) -> None:
    names = []
    for path in (one, two):
        try:
            path.decode()
        except UnicodeDecodeError:
            with pytest.raises(UnicodeDecodeError):
                log_name(path)
        else:
            names.append(zlog.names.check_log_name(log_name(path)))
            assert path_of(names[-1]).encode() == path
    assert len(names) < 2 or (names[0] == names[1]) == (one == two)


def test_servers_share_all_state(start: Starter) -> None:
    one, two = start(), start()
    producer = {**TEXT, "Producer_Id": "p", "Producer_Epoch": "0"}
    assert one.ask("PUT", S, **TEXT).status == 201
    assert one.ask("POST", S, b"a", **producer, Producer_Seq="0").status == 200
    assert two.ask("POST", S, b"b", **producer, Producer_Seq="1").status == 200
    assert one.ask("POST", S, b"again", **producer, Producer_Seq="1").status == 204
    assert one.ask("POST", S, b"c", **producer, Producer_Seq="2").status == 200
    gap = two.ask("POST", S, b"gap", **producer, Producer_Seq="4")
    assert (gap.status, gap.headers["producer-expected-seq"]) == (409, "3")
    assert two.ask("POST", S, b"d", **TEXT, Stream_Seq="09").status == 204
    assert one.ask("POST", S, b"no", **TEXT, Stream_Seq="05").status == 409
    assert two.ask("POST", S, b"e", **TEXT, Stream_Closed="true").status == 204
    closed = one.ask("POST", S, b"no", **TEXT)
    assert (closed.status, closed.headers["stream-closed"]) == (409, "true")
    assert one.ask("GET", S).body == b"abcde"


def test_deleted_and_created_again_by_another_server(start: Starter) -> None:
    one, two = start(), start()
    for _ in range(2):  # every server has a handle of the old log in the second round
        assert one.ask("PUT", S, b"old", **TEXT).status == 201
        assert two.ask("POST", S, b"!", **TEXT, Stream_Closed="true").status == 204
        assert two.ask("DELETE", S).status == 204
        assert one.ask("GET", S).status == 404
    assert two.ask("PUT", S, b"new", **TEXT).status == 201
    assert one.ask("POST", S, b"!", **TEXT).status == 204
    assert one.ask("GET", S).body == b"new!"


def test_offset_of_deleted_stream_is_refused_by_its_successor(start: Starter) -> None:
    one, two = start(), start()
    old = one.ask("PUT", S, b"old", **TEXT).headers["stream-next-offset"]
    fork = {"Stream_Forked_From": S, "Stream_Fork_Offset": old}
    assert two.ask("PUT", "/v1/stream/fork", **fork).headers["stream-next-offset"] > old
    assert two.ask("GET", f"/v1/stream/fork?offset={old}").status == 200
    for path in ("/v1/stream/fork", S):
        assert two.ask("DELETE", path).status == 204
    assert two.ask("PUT", S, b"new", **TEXT).headers["stream-next-offset"] != old
    for server, query in ((one, ""), (two, "&live=sse"), (two, "&live=long-poll")):
        gone = server.ask("GET", f"{S}?offset={old}{query}")
        assert (gone.status, gone.fields["code"]) == (410, "OffsetOfAnother")
    assert one.ask("PUT", "/v1/stream/fork", **fork).status == 409


def test_readers_of_json_skip_what_is_not_json(server: Server, store_at: str) -> None:
    server.ask("PUT", S, b"[1]", Content_Type="application/json")
    with zlog.connect(store_at) as store, zlog.Log.open(store, "s") as log:
        log.append_many([b"text", b"", b"2,3", b"[4"])
    server.ask("POST", S, b"[5]", Content_Type="application/json")
    assert server.ask("GET", S).body == b"[1,5]"


def test_death_while_creating_or_deleting_is_completed(server: Server, store_at: str) -> None:
    option = {"stream": '{"type":"application/json"}'}
    with zlog.connect(store_at) as store:
        zlog.Log.create(store, "s", ordering="object", options=option).close()
        assert server.ask("GET", S).status == 404
        assert server.ask("PUT", S, b"[1]", Content_Type="application/json").status == 201
        zlog.Log.create(store, "other", ordering="object", options=option).close()
        assert server.ask("PUT", "/v1/stream/other", b"text", **TEXT).status == 201
        with zlog.Log.open(store, "other") as log:
            log.append(b"", tags=["ds:control", "ds:end", "ds:deleted"])
        assert server.ask("GET", "/v1/stream/other").status == 404
        assert zlog.Log.list(store) == ["s"]


def test_large_bodies_are_split_or_refused(server: Server) -> None:
    data = os.urandom(3 << 20)
    assert server.ask("PUT", S).status == 201
    assert server.ask("POST", S, data, Content_Type="application/octet-stream").status == 204
    got, offset = b"", "-1"
    while len(got) < len(data):
        part = server.ask("GET", f"{S}?offset={offset}")
        got, offset = got + part.body, part.headers["stream-next-offset"]
    assert got == data
    assert part.headers["stream-up-to-date"] == "true"
    large = server.ask("POST", S, bytes(9 << 20), Content_Type="application/octet-stream")
    assert (large.status, large.fields["code"]) == (413, "BodyTooLarge")
    json = server.ask(
        "PUT", "/v1/stream/j", b'["%s"]' % (b"x" * (1 << 20)), Content_Type="application/json"
    )
    assert (json.status, json.fields["code"]) == (413, "EntryTooLarge")
    assert server.ask("GET", "/v1/logs").fields["logs"] == ["s"]


def test_fork_keeps_large_part_of_deleted_source(start: Starter) -> None:
    one, two = start(), start()
    data = os.urandom(3 << 20)
    one.ask("PUT", S, data)
    part = {"Stream_Fork_Offset": f"{0:016d}_{0:016d}", "Stream_Fork_Sub_Offset": str(2 << 20)}
    assert two.ask("PUT", "/v1/stream/fork", Stream_Forked_From=S, **part).status == 201
    assert one.ask("DELETE", S).status == 204
    assert two.ask("GET", S).status == 410
    got = one.ask("GET", "/v1/stream/fork")
    rest = one.ask("GET", f"/v1/stream/fork?offset={got.headers['stream-next-offset']}")
    assert got.body + rest.body == data[: 2 << 20]
    assert two.ask("DELETE", "/v1/stream/fork").status == 204
    assert two.ask("GET", "/v1/logs").fields["logs"] == []


def test_trimmed_offsets_are_gone(server: Server) -> None:
    server.ask("PUT", S, b"a", **TEXT)
    first = server.tail("s")
    second = server.ask("POST", S, b"b", **TEXT).headers["stream-next-offset"]
    server.ask("POST", S, b"c", **TEXT)
    assert server.ask("POST", "/v1/logs/s/trim", b'{"before": 2}').status == 204
    assert server.ask("GET", S).body == b"c"
    assert server.ask("GET", f"{S}?offset={second}").body == b"c"
    for query in ("", "&live=sse"):
        gone = server.ask("GET", f"{S}?offset={first}{query}")
        assert (gone.status, gone.fields["code"]) == (410, "Trimmed")
    with server.events(f"{S}?offset=-1&live=sse") as reply:
        assert b"data:c" in reply.read1()


def test_trims_keep_the_state_of_streams(start: Starter, store_at: str) -> None:
    one, two = start(), start()
    fork = "/v1/stream/fork"
    one.ask("PUT", S, b"a", **TEXT)
    assert one.ask("PUT", fork, b"!", Stream_Forked_From=S).status == 201
    one.ask("POST", S, b"b", **TEXT, Stream_Closed="true")
    with zlog.connect(store_at) as store, zlog.Log.open(store, "s") as log:
        log.set_retention(zlog.Retention(entries=0))
        assert log.apply_retention() == 1  # the registration of the fork
        with pytest.raises(zlog.HeldByCursor):
            log.trim_to(2)
        assert two.ask("DELETE", S).status == 204
        assert one.ask("POST", fork, b"!", **TEXT).status == 204
        assert two.ask("GET", fork).body == b"!!"
        one.ask("DELETE", fork)
        assert two.ask("GET", "/v1/logs").fields["logs"] == []


def test_trimmed_stream_stays_closed_after_its_forks(start: Starter) -> None:
    one, two = start(), start()
    one.ask("PUT", S, b"a", **TEXT)
    one.ask("PUT", "/v1/stream/fork", Stream_Forked_From=S)
    one.ask("POST", S, **TEXT, Stream_Closed="true")
    one.ask("DELETE", "/v1/stream/fork")
    assert one.ask("POST", "/v1/logs/s/trim", b'{"before": 4}').status == 409
    assert one.ask("POST", "/v1/logs/s/trim", b'{"before": 2}').status == 204
    assert two.ask("POST", S, b"no", **TEXT).fields["code"] == "StreamClosed"


def test_trim_does_not_expire_a_stream(server: Server) -> None:
    server.ask("PUT", S, b"a", **TEXT, Stream_TTL="1000")
    assert server.ask("POST", "/v1/logs/s/trim", b'{"before": 1}').status == 204
    server.kill()
    server.start()
    assert server.ask("GET", S).status == 200


def test_readers_get_appends_of_other_servers_and_resume_after_a_stop(start: Starter) -> None:
    one, two = start(), start()
    one.ask("PUT", S, b"a", **TEXT)
    with one.events(f"{S}?offset=-1&live=sse") as reply, ThreadPoolExecutor() as pool:
        assert b"data:a" in reply.read1()
        polls = [pool.submit(one.ask, "GET", f"{S}?offset=now&live=long-poll") for _ in range(2)]
        wait_until(lambda: one.waits == 3)
        two.ask("POST", S, b"b", **TEXT)
        assert [poll.result().body for poll in polls] == [b"b", b"b"]
        got = events(reply.read1().decode())
        assert got[0] == ("data", "b")
        poll = pool.submit(one.ask, "GET", f"{S}?offset=now&live=long-poll")
        wait_until(lambda: one.waits == 2)
        assert one.stop() == 0
        assert reply.read() == b""
        assert poll.result().status == 204
    offset = json.loads(got[1][1])["streamNextOffset"]
    assert offset == poll.result().headers["stream-next-offset"]
    two.ask("POST", S, b"c", **TEXT)
    assert two.ask("GET", f"{S}?offset={offset}").body == b"c"
