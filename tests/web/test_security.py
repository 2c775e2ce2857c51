"""Tokens, rights, limits, and requests that no proper client sends."""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from ..support.certificates import Authority
from ..support.programs import ZLOG
from ..support.waiting import wait_until
from .conftest import Server, Starter

S = "/v1/stream/s"


def line(name: str, token: str, rights: str, patterns: str) -> str:
    return f"{name} sha256:{hashlib.sha256(token.encode()).hexdigest()} {rights} {patterns}\n"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens"
    file.write_text(
        "# of the tests\n"
        + line("admin", "admin-secret", "all", "*")
        + line("shop", "shop-secret", "read,append", "orders,shop.2f*")
    )
    return file


def test_tokens_grant_rights_on_logs(start: Starter, tokens: Path) -> None:
    server = start("--tokens", str(tokens), "--access-log")

    def ask(token: str, method: str, path: str, body: bytes = b"", **headers: str) -> int:
        return server.ask(method, path, body, Authorization=f"Bearer {token}", **headers).status

    text = {"Content_Type": "text/plain"}
    for path in ("orders", "other"):
        assert ask("admin-secret", "PUT", f"/v1/logs/{path}") == 201
    assert ask("admin-secret", "PUT", "/v1/stream/shop/1", **text) == 201
    assert ask("shop-secret", "POST", "/v1/stream/shop/1", b"x", **text) == 204
    assert ask("shop-secret", "GET", "/v1/stream/shop/1") == 200
    assert ask("shop-secret", "POST", "/v1/logs/orders/entries", b"x") == 201
    for method, path in (
        *(("PUT", "/v1/stream/shop/2"), ("DELETE", "/v1/stream/shop/1"), ("GET", "/v1/logs/other")),
        *(("POST", "/v1/logs/orders/trim"), ("DELETE", "/v1/logs/orders"), ("GET", S)),
        *(("POST", "/v1/logs/other/entries"), ("PUT", "/v1/logs/orders2")),
    ):
        assert ask("shop-secret", method, path) == 403, (method, path)
    assert ask("admin-secret", "PUT", "/v1/stream/private", **text) == 201
    fork = {"Stream_Forked_From": "/v1/stream/private"}
    tokens.write_text(tokens.read_text() + line("forker", "forker-secret", "all", "mine"))
    wait_until(lambda: ask("forker-secret", "GET", "/v1/logs") == 200)
    assert ask("forker-secret", "PUT", "/v1/stream/mine", **fork) == 403
    listed = server.ask("GET", "/v1/logs", Authorization="bearer shop-secret")
    assert listed.fields["logs"] == ["orders", "shop.2f1"]
    assert listed.headers["x-content-type-options"] == "nosniff"
    cached = server.ask("GET", "/v1/logs/orders/entries", Authorization="bearer shop-secret")
    assert cached.headers["cache-control"].startswith("private")
    for given in ("", "Bearer", "Bearer wrong", "Basic shop-secret", "Bearer \xff"):
        denied = server.ask("GET", "/v1/logs", Authorization=given)
        assert (denied.status, denied.headers["www-authenticate"][:6]) == (401, "Bearer")
    tokens.write_text(line("admin", "admin-secret", "all", "*"))  # revokes the others
    wait_until(lambda: ask("shop-secret", "GET", "/v1/logs") == 401)
    tokens.write_text("broken\n")
    wait_until(lambda: ask("admin-secret", "GET", "/v1/logs") == 503)
    assert '"token": "shop"' in server.said
    assert "secret" not in server.said


@pytest.mark.parametrize(
    "words",
    [
        ["--listen", "0.0.0.0:0"],
        ["--tokens", "{file}"],
        ["--listen", "nowhere"],
        ["--listen", "127.0.0.1:0", "--tls-cert", "{file}"],
    ],
)
def test_unsafe_or_wrong_options_are_refused(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("name sha256:123 read *\n")
    given = [word.format(file=file) for word in words]
    url = (tmp_path / "store").as_uri()
    words = [ZLOG, "--store", url, "http", *given]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


def test_pages_of_other_sites_are_refused(start: Starter) -> None:
    closed, open_ = start(), start("--allow-origin", "https://shop.example")
    assert closed.ask("GET", "/v1/logs", Host="evil.example").status == 421
    assert closed.ask("POST", S, b"x", Origin="https://evil.example").status == 403
    assert closed.ask("PUT", S, Origin=closed.address).status == 403
    preflight = closed.ask("OPTIONS", S)
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    allowed = open_.ask("OPTIONS", S, Origin="https://shop.example")
    assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
    refused = open_.ask("GET", "/v1/logs", Origin="https://evil.example")
    assert (refused.status, "access-control-allow-origin" in refused.headers) == (403, False)


def test_tls_protects_tokens(start: Starter, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    server = start("--tls-cert", authority.sign("server"))
    trusting = ssl.create_default_context(cafile=authority.certificate)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusting)
    connection.request("PUT", S)
    assert connection.getresponse().status == 201
    connection.close()


def test_waits_and_rates_are_limited_for_each_token(start: Starter) -> None:
    server, slow = start("--waits", "1"), start("--rate", "1")
    assert server.ask("PUT", S, Content_Type="text/plain").status == 201
    with server.events(f"{S}?offset=-1&live=sse"):
        more = server.ask("GET", f"{S}?offset=-1&live=sse")
        assert (more.status, more.fields["code"]) == (429, "TooManyWaits")
    many = [slow.ask("GET", S) for _ in range(30)]
    assert {each.status for each in many} == {200, 429}
    assert next(each for each in many if each.status == 429).headers["retry-after"] == "1"


def send(server: Server, data: bytes) -> bytes:
    """Send bytes, and return all that the server sends until it closes the connection."""
    got = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        try:
            connection.sendall(data)
            while part := connection.recv(65536):
                got += part
        except ConnectionError:
            pass
    return got


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * (1 << 20),
        b"\x00\xff\r\n\r\n",
        b"GET /v1/logs HTTP/1.1\r\nhost: localhost\r\n",  # and nothing more
        b"PUT /v1/stream/s HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nbody",
        b"",
    ],
    ids=["endless", "malformed", "unfinished", "short", "silent"],
)
@pytest.mark.long
def test_connections_without_proper_request_are_closed(server: Server, request_: bytes) -> None:
    assert not send(server, request_).startswith(b"HTTP/1.1 200")
    assert server.ask("GET", "/v1/logs").fields["logs"] == []


def test_connections_are_limited(start: Starter) -> None:
    server = start("--connections", "3")
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]

    def refused() -> bool:
        try:
            return server.ask("GET", "/v1/logs").status != 200
        except (ConnectionError, http.client.HTTPException):
            return True

    wait_until(refused)
    for connection in idle:
        connection.close()
    wait_until(lambda: not refused())


@pytest.mark.long
def test_mutated_requests_never_fail_the_server(server: Server) -> None:
    """Requests with random changes, over raw connections, and two at once on some of them."""
    chance = random.Random(37)
    bodies = (b"[1,2]", b"text", bytes(range(256)))
    for _ in range(int(os.environ.get("ZLOG_EXAMPLES", "3000"))):
        data = b""
        for _ in range(chance.randint(1, 2)):
            method = chance.choice([b"GET", b"PUT", b"POST", b"HEAD", b"DELETE", b"OPTIONS"])
            path = chance.choice(
                [b"/v1/stream/a%2f", b"/v1/logs", b"/v1/logs/b/entries", b"/v1/logs/b"]
            )
            body = chance.choice(bodies)
            fields = [
                b"host: localhost",
                b"connection: close",
                b"content-length: %d" % len(body),
                b"content-type: " + chance.choice([b"application/json", b"text/plain", b"a/b"]),
                b"stream-ttl: %d" % chance.randint(0, 100),
                b"producer-id: p\r\nproducer-epoch: 0\r\nproducer-seq: %d" % chance.randint(0, 3),
                b"content-encoding: gzip",
                b"stream-seq: a",
            ]
            kept = fields[:3] + [each for each in fields[3:] if chance.random() < 0.4]
            query = chance.choice(
                [b"", b"?offset=-1", b"?offset=now&live=sse&x=", b"?limit=3&start=1"]
            )
            data += b"%s %s%s HTTP/1.1\r\n" % (method, path, query)
            data += b"\r\n".join(kept) + b"\r\n\r\n" + body
        changed = bytearray(data)
        for _ in range(chance.randint(0, 3)):
            at = chance.randrange(len(changed))
            changed[at : at + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 2))
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(bytes(changed[: chance.randint(1, len(changed) * 2)]))
            connection.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                assert b"HTTP/1.1 500" not in connection.recv(65536)
    assert server.ask("GET", "/v1/logs").status == 200
    assert "Exception" not in server.said
