"""Chromium, as Debian packages it, driven by Playwright. Nothing is downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

REQUIRED = "ZLOG_REQUIRE_CHROMIUM"
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a headless Chromium; where there is none the test is skipped, unless it must run."""
    program = shutil.which("chromium")
    if program is None:
        reason = f"no Chromium: install Debian's package chromium{_ubuntu()}"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def _ubuntu() -> str:
    release = Path("/etc/os-release")
    is_ubuntu = release.exists() and "ID=ubuntu" in release.read_text().splitlines()
    return " (Ubuntu has it as a snap only)" if is_ubuntu else ""


class Visit:
    """One browser's visit of a console, with all that goes wrong in its pages.

    Args:
        browser: see there.
        address: of the console, as `http://127.0.0.1:7462`.
        refused: what the console may say that the browser complains of: its refusals, such as
            "404", or that it is gone, "ERR_".
        options: of Playwright's `new_context`.

    Attributes:
        wrongs: errors on the browser's console, of scripts and of the page's policy, and requests
            to other hosts than the console.
    """

    def __init__(
        self, browser: Browser, address: str, refused: Sequence[str] = (), **options: Any
    ) -> None:
        self.address = address
        self._refused = refused
        self.wrongs: list[str] = []
        given: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, **options}
        self._context = browser.new_context(ignore_https_errors=True, **given)
        self._context.set_default_timeout(30_000)
        self._context.on("console", self._said)
        self._context.on("weberror", lambda error: self.wrongs.append(str(error.error)))
        self._context.on("request", self._asked)

    def open(self, place: str = "/") -> Page:
        """Open a page: an address behind the console's, such as `/#/doctor`."""
        page = self._context.new_page()
        page.goto(self.address + place)
        return page

    def close(self) -> None:
        """Close all pages."""
        self._context.close()

    def _said(self, message: ConsoleMessage) -> None:
        loading = message.text.startswith("Failed to load resource")
        if loading and any(each in message.text for each in self._refused):
            return
        if message.type == "error":
            self.wrongs.append(f"{message.text} ({message.location})")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.address}/", "data:", "blob:")):
            self.wrongs.append(f"a request to {request.url}")
