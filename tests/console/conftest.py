"""Fixtures of the console's tests: a browser, and consoles that real processes serve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import zlog
import zlog.overview
from zlog.overview import LogOverview

from ..support.browser import Visit, chromium
from ..support.console import ConsoleProcess
from .shop import make_shop


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A headless Chromium. It ends with the package: tests elsewhere run event loops."""
    with chromium() as running:
        yield running


expect.set_options(timeout=30_000)  # machines are busy
Visitor = Callable[..., Page]
"""Opens a page of a console: (console, place="/", **options of the browser)."""
Server = Callable[..., ConsoleProcess]
"""Starts a console of the test's own store: (*options)."""


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visitor]:
    """Opens pages; in the end nothing may have gone wrong in them, nor asked another host."""
    visits: list[Visit] = []

    def open_page(console: ConsoleProcess, place: str = "/", **options: Any) -> Page:
        visits.append(Visit(browser, console.address, **options))
        return visits[-1].open(place)

    yield open_page
    wrongs = [wrong for each in visits for wrong in each.wrongs]
    for each in visits:
        each.close()
    assert not wrongs


def find(page: Page, position: str) -> None:
    """Have the page of a log find a position."""
    page.get_by_role("textbox", name="Position").fill(position)
    page.get_by_role("button", name="Find").click()


def overview(store: zlog.Store) -> tuple[LogOverview, ...]:
    """Look at all logs, in a thread: Playwright runs an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(zlog.overview.overview, store, content=True).result().logs


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zlog.Store]:
    """A store that tests only read."""
    with zlog.connect((tmp_path_factory.mktemp("shop") / "store").as_uri()) as store:
        make_shop(store)
        yield store


@pytest.fixture(scope="package")
def shop_console(
    shop: zlog.Store, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConsoleProcess]:
    """A console of that store."""
    with ConsoleProcess(
        shop.url, tmp_path_factory.mktemp("console"), "--interval", "0.3"
    ) as console:
        yield console


@pytest.fixture
def store(tmp_path: Path) -> Iterator[zlog.Store]:
    """An embedded store of the test's own."""
    with zlog.connect((tmp_path / "store").as_uri()) as opened:
        yield opened


@pytest.fixture
def serve(store: zlog.Store, tmp_path: Path) -> Iterator[Server]:
    with ExitStack() as stack:
        yield lambda *options, **more: stack.enter_context(
            ConsoleProcess(store.url, tmp_path / "console", "--interval", "0.2", *options, **more)
        )
