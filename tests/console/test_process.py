"""The process: how it begins, what it says, and that it ends at once."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

import zlog
from zlog.cli.exit_codes import ExitCode

from ..cli.conftest import Cli
from ..support.console import ConsoleProcess
from .conftest import Server, Visitor

END_SECONDS = 5.0
"""Much more than it takes, much less than streams say they are alive."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_process_ends_immediately_with_open_streams(
    shop: zlog.Store, tmp_path: Path, visit: Visitor, number: int
) -> None:
    console = ConsoleProcess(shop.url, tmp_path)
    page = visit(console, "/#/log/orders?tab=tail", refused=["ERR_"])
    expect(page.locator("#tail .item")).to_have_count(50)
    doctor = visit(console, "/#/doctor", refused=["ERR_"])
    expect(doctor.get_by_text("is open")).to_be_visible()
    began = time.monotonic()
    assert console.end(number) == 0
    assert time.monotonic() - began < END_SECONDS
    assert len(console.said.splitlines()) == 1, console.said
    expect(page.locator("#state")).to_contain_text("does not answer")
    expect(page.locator("#tail-state")).to_contain_text("does not answer")


def test_page_reconnects_to_restarted_process(
    store: zlog.Store, tmp_path: Path, visit: Visitor
) -> None:
    zlog.Log.create(store, "old").close()
    zlog.Log.create(store, "orders").close()
    console = ConsoleProcess(store.url, tmp_path)
    page = visit(console, refused=["ERR_"])
    expect(page.locator(".logs .body .row")).to_have_count(2)
    assert console.end() == 0
    expect(page.locator("#state")).to_contain_text("does not answer")
    zlog.Log.remove(store, "old")
    listen = urlsplit(console.address).netloc
    with Cli(store.url).start("console", "--listen", listen) as again:
        try:
            expect(page.locator("#state")).to_contain_text("1 log ·")
            expect(page.locator(".logs .body .row")).to_have_count(1)
        finally:
            again.terminate()


def test_address_in_use_is_reported(shop: zlog.Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        result = Cli(shop.url)("console", "--listen", listen)
    assert result.code == ExitCode.FAILURE
    assert f"can't serve the console on {listen}: Address already in use" in result.err
    assert "--listen" in result.err


def test_missing_store_is_reported(tmp_path: Path) -> None:
    result = Cli((tmp_path / "none").as_uri())("console", "--listen", "127.0.0.1:0")
    assert result.code == ExitCode.UNREACHABLE
    assert not (tmp_path / "none").exists()


def test_missing_package_error_has_install_hint(shop: zlog.Store) -> None:
    code = (
        f"import sys; sys.modules['starlette'] = None; sys.argv = ['zlog', '--store',"
        f" {shop.url!r}, 'console']; from zlog.cli.main import main; main()"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "zlog: the console needs the packages starlette and uvicorn" in done.stderr
    assert "pip install 'starlette>=" in done.stderr


def test_match_option_filters_names(shop: zlog.Store, tmp_path: Path, visit: Visitor) -> None:
    with ConsoleProcess(shop.url, tmp_path, "--match", "s*s") as console:
        page = visit(console)
        expect(page.locator(".logs .body .name")).to_have_text(["sessions", "shipments"])


def test_recreated_log_replaces_old_one(store: zlog.Store, serve: Server, visit: Visitor) -> None:
    with zlog.Log.create(store, "orders") as log:
        log.append_many([b"old"] * 50)
    console = serve()
    page = visit(console, "/#/log/orders", refused=["404"])
    expect(page.locator("#range")).to_contain_text("of 50 positions")
    zlog.Log.remove(store, "orders")
    with zlog.Log.create(store, "orders") as log:
        log.append_many([b"new"] * 7)
    expect(page.locator("#range")).to_contain_text("of 7 positions")
    assert console.get("logs/orders/entries")["tail"] == 7


def test_removed_store_is_reported(tmp_path: Path, visit: Visitor) -> None:
    folder = tmp_path / "store"
    with zlog.connect(folder.as_uri()) as store, zlog.Log.create(store, "orders") as log:
        log.append_many([b"entry"] * 5)
    with ConsoleProcess(folder.as_uri(), tmp_path / "console", "--interval", "0.2") as console:
        page = visit(console, "/#/log/orders", refused=["50"])
        expect(page.locator("#range")).to_contain_text("of 5 positions")
        shutil.rmtree(folder)
        expect(page.locator("#state")).to_contain_text("can't read the logs")
        expect(page.locator("#problem")).to_be_visible()
