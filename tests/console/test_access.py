"""Who may look: on loopback only this machine's own names, elsewhere only who knows the token."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import zlog
from zlog.cli.exit_codes import ExitCode

from ..cli.conftest import Cli
from ..support.certificates import Authority
from ..support.console import ConsoleProcess
from ..support.waiting import wait_until
from .conftest import Server, Visitor

TOKEN = "a-token-of-24-characters"

PROTECTED = (
    *("about", "watch", "doctor", "logs/orders", "logs/orders/map", "logs/orders/entries"),
    *("logs/orders/data/0", "logs/orders/find", "logs/orders/views", "logs/orders/tail"),
    *("logs/orders/check", "logs/none", "none"),
)


@pytest.fixture(scope="module")
def guarded(shop: zlog.Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    """A console on all addresses, with a token that a file has."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text(f"{TOKEN}\n")
    options = ("--token-file", str(folder / "token"), "--allow-changes")
    with ConsoleProcess(shop.url, folder, *options, listen="0.0.0.0") as console:
        assert console.token == ""  # it is not printed
        yield console


def test_requests_without_token_are_refused(guarded: ConsoleProcess) -> None:
    for path in PROTECTED:
        assert guarded.ask(f"/api/{path}").status == 401
        for given in (
            "",
            "Bearer",
            "Bearer wrong",
            f"Basic {TOKEN}",
            f"Bearer {TOKEN}x",
            "x",
        ):
            assert guarded.ask(f"/api/{path}", {"Authorization": given}).status == 401
        for cookie in ("", TOKEN, "\xe9", "0" * 64):
            assert guarded.ask(f"/api/{path}", {"Cookie": f"zlog-console={cookie}"}).status == 401
    assert guarded.post("logs/orders/append", {"data": "x"}).status == 401


def test_requests_with_token_are_accepted(guarded: ConsoleProcess) -> None:
    for kind in ("Bearer", "bearer"):
        answer = guarded.ask("/api/about", {"Authorization": f"{kind} {TOKEN}"})
        assert (answer.status, answer.fields["changes"]) == (200, True)
    for wrong in ({"token": "wrong"}, {"token": 1}, {}, {"token": "\ud800"}):
        assert guarded.post("session", wrong).status == 401
    for invalid in (b"{", b"[]", b'"x"'):
        assert guarded.post("session", invalid).status == 400
    assert guarded.post("session", b"x" * (9 << 20)).status == 413
    assert guarded.ask("/api/session", body=b"{}").status == 403  # without the header
    answer = guarded.post("session", {"token": TOKEN})
    cookie, *flags = answer.headers["set-cookie"].split("; ")
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=strict"} <= set(flags)
    assert guarded.ask("/api/about", {"Cookie": cookie}).status == 200


def test_browser_accepts_token_in_address(guarded: ConsoleProcess, visit: Visitor) -> None:
    page = visit(guarded, f"/#token={TOKEN}", refused=["401"])
    expect(page.locator('[data-log="orders"]')).to_be_visible()
    assert TOKEN not in page.url
    page.reload()  # the cookie lets it in
    expect(page.locator('[data-log="orders"]')).to_be_visible()


def test_browser_accepts_typed_token(guarded: ConsoleProcess, visit: Visitor) -> None:
    page = visit(guarded, "/#token=wrong-wrong-wrong", refused=["401"])
    expect(page.locator(".notice")).to_contain_text("the token is wrong")
    page.get_by_label("Token").fill("also wrong")
    page.get_by_role("button", name="Enter").click()
    expect(page.locator(".notice")).to_have_count(2)
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Enter").click()
    expect(page.locator('[data-log="orders"]')).to_be_visible()


def test_loopback_refuses_other_host_names(shop_console: ConsoleProcess) -> None:
    for path in ("/", "/static/main.js", "/api/about", "/api/logs/orders/entries"):
        for name in ("evil.example", "evil.example:7462", "127.0.0.1.evil.example", "", "[::2]"):
            assert shop_console.ask(path, {"Host": name}).status == 421
        for name in ("localhost", "localhost:1", "127.0.0.1", "127.0.0.2:7462", "[::1]:7462"):
            assert shop_console.ask(path, {"Host": name}).status == 200


def test_printed_loopback_address_works(serve: Server, visit: Visitor) -> None:
    page = visit(serve(listen="127.0.0.2"))
    expect(page.get_by_text("There are no logs yet")).to_be_visible()


def test_wildcard_listen_prints_reachable_addresses(serve: Server) -> None:
    console = serve(listen="0.0.0.0")
    port = console.address.rpartition(":")[2]
    wait_until(lambda: len(console.said.splitlines()) == 3)
    first, second, third = console.said.splitlines()
    place = f"{port}/#token={console.token}"
    assert first == f"zlog: console at http://{socket.gethostname()}:{place}"
    assert second == f"zlog: on this machine, also at http://127.0.0.1:{place}"
    assert "--tls-cert" in third
    assert "SSH" in third


def test_cross_site_requests_are_refused(
    shop_console: ConsoleProcess, guarded: ConsoleProcess, browser: Browser
) -> None:
    """A GET needs no leave of theirs, such as an image, or a link that a script follows."""
    check = f"{shop_console.address}/api/logs/orders/check"
    page = browser.new_page()
    page.goto(f"{guarded.address}/static/api.js")
    with page.expect_response(check) as answer:
        page.evaluate("address => { location = address; }", check)
    page.close()
    assert answer.value.status == 403
    for site, status in (
        ("cross-site", 403),
        ("same-site", 403),  # another port of this machine
        ("same-origin", 200),
        ("none", 200),  # a person typed the address
    ):
        assert shop_console.ask("/api/about", {"Sec-Fetch-Site": site}).status == status
        assert shop_console.ask("/", {"Sec-Fetch-Site": site}).status == 200  # a link
        with_token = {"Sec-Fetch-Site": site, "Authorization": f"Bearer {TOKEN}"}
        assert guarded.ask("/api/about", with_token).status == status


def test_responses_have_security_headers(guarded: ConsoleProcess) -> None:
    for path, status in (("/", 200), ("/static/main.js", 200), ("/api/about", 401), ("/no", 404)):
        answer = guarded.ask(path)
        assert answer.status == status
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert guarded.ask("/static/../access.py").status == 404
    assert guarded.ask("/static/%2e%2e/access.py").status == 404


def test_console_serves_tls(serve: Server, visit: Visitor, tmp_path: Path) -> None:
    certificate = Authority(tmp_path, "ca").sign("console")
    console = serve("--tls-cert", certificate, listen="0.0.0.0")
    assert console.address.startswith("https://")
    page = visit(console, f"/#token={console.token}", refused=["401"])
    expect(page.get_by_text("There are no logs yet")).to_be_visible()
    answer = console.post("session", {"token": console.token})
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--token-file", "{short}"],
            "must contain a token of at least 16 printable ASCII characters",
        ),
        (["--token-file", "{binary}"], "must contain a token"),
        (["--tls-key", "{short}"], "--tls-key needs --tls-cert"),
        (["--tls-cert", "{short}"], "can't speak TLS with"),
        (["--listen", "7462"], "HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "99999"),
    ],
)
def test_invalid_options_are_usage_errors(
    shop: zlog.Store, tmp_path: Path, options: list[str], words: str
) -> None:
    short, binary = tmp_path / "short", tmp_path / "binary"
    short.write_text("too-short")
    binary.write_bytes(b"\xff" * 40)
    given = [each.format(short=short, binary=binary) for each in options]
    result = Cli(shop.url)("console", *given)
    assert result.code == ExitCode.USAGE, result.err
    assert words in result.err
