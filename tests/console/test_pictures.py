"""The pictures of docs/console.md; ZLOG_PICTURES=1 puts them there."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

import zlog

from ..client.planted import flip
from ..support.console import ConsoleProcess
from ..support.logs import leave_hole
from ..support.programs import REPOSITORY
from .conftest import Visitor, find
from .shop import OTHERS, make_shop, order

BYTES_MAX = 100_000
DOCS = os.environ.get("ZLOG_PICTURES") == "1"

_LOOKS = 50 if DOCS else 5
_HAS_HISTORY = """looks => {
  const canvas = document.querySelector('[data-log="orders"] canvas');
  const { data } = canvas.getContext("2d").getImageData(178 - 3 * looks, 0, 3, canvas.height);
  return data.some(Boolean);
}"""
"""Whether the curve of rates goes back as many looks."""


@pytest.fixture(scope="module")
def busy_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    """A shop that goes on selling, where an entry of the log `shipments` is damaged."""
    folder = tmp_path_factory.mktemp("busy")
    with zlog.connect((folder / "store").as_uri()) as store:
        make_shop(store)
        with zlog.Log.open(store, "shipments") as log:
            log.append(b'{"parcel": "p-000001"}')
            leave_hole(log, 5)
            log.append_many([b'{"parcel": "p-%06d"}' % number for number in range(2, 200)])
            flip(store, next(iter(log.view.objects())).name, b"p-000050", b"p-o00050")
        ended = threading.Event()
        selling = threading.Thread(target=_sell, args=(store, ended))
        selling.start()
        try:
            interval = "0.6" if DOCS else "0.2"
            with ConsoleProcess(store.url, folder / "console", "--interval", interval) as console:
                yield console
        finally:
            ended.set()
            selling.join()


def _sell(store: zlog.Store, ended: threading.Event) -> None:
    """Append to all logs, to each at a pace of its own."""
    logs = [zlog.Log.open(store, name) for name in ("orders", *OTHERS)]
    turn = 0
    while not ended.wait(0.05):
        for pace, log in enumerate(logs):
            if turn % (2 * pace + 1) == 0:
                count = 1 + (turn * (pace + 3)) % 7
                sold = [order(turn * 7 + n) for n in range(count)]
                log.append_many(sold, tags_each=[[json.loads(each)["state"]] for each in sold])
        turn += 1
    for log in logs:
        log.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where pictures go."""
    return REPOSITORY / "docs" / "pictures" if DOCS else tmp_path


def take(page: Page, folder: Path, name: str) -> None:
    """Take a picture of what is in sight."""
    page.locator("#store").evaluate("element => { element.textContent = 'ceph://logs'; }")
    path = folder / f"console-{name}.png"
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        folder.mkdir(exist_ok=True)
        picture.convert("RGB").quantize(method=Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
    assert 10_000 < path.stat().st_size < BYTES_MAX


def test_picture_of_all_logs(busy_shop: ConsoleProcess, visit: Visitor, folder: Path) -> None:
    page = visit(busy_shop)
    expect(page.locator(".logs .body .row")).to_have_count(1 + len(OTHERS))
    page.wait_for_function(_HAS_HISTORY, arg=_LOOKS)
    take(page, folder, "logs")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_picture_of_positions(
    busy_shop: ConsoleProcess, visit: Visitor, folder: Path, look: str
) -> None:
    page = visit(busy_shop, "/#/log/orders", color_scheme=look)
    expect(page.locator("[data-shown]")).to_be_visible()
    expect(page.locator('[data-fact="kept"]')).to_be_visible()
    find(page, "1,004")
    expect(page.locator(".item.chosen")).to_be_visible()
    for _ in range(3):
        page.get_by_role("button", name="Zoom out").click()
    page.wait_for_function(
        """() => {
          const [start, end] = document.querySelector('[data-shown]').dataset.shown.split('-');
          return end - start === 2048;
        }"""
    )
    take(page, folder, "positions" if look == "light" else "positions-dark")


def test_picture_of_tail(busy_shop: ConsoleProcess, visit: Visitor, folder: Path) -> None:
    page = visit(busy_shop, "/#/log/orders?tab=tail", color_scheme="dark")
    expect(page.locator("#tail .item").nth(60)).to_be_attached()
    take(page, folder, "tail")


def test_picture_of_check(busy_shop: ConsoleProcess, visit: Visitor, folder: Path) -> None:
    page = visit(busy_shop, "/#/log/shipments?tab=check")
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("#check-summary")).to_contain_text("serious")
    expect(page.locator('[data-fact="kept"]')).to_be_visible()
    take(page, folder, "check")


def test_picture_of_cursors(busy_shop: ConsoleProcess, visit: Visitor, folder: Path) -> None:
    page = visit(busy_shop, "/#/log/orders?tab=cursors")
    expect(page.get_by_text("Kept: 30 d.")).to_be_visible()
    take(page, folder, "cursors")


@pytest.mark.parametrize("place", ["/", "/#/log/orders", "/#/log/orders?tab=tail"])
def test_narrow_windows_need_no_horizontal_scrolling(
    busy_shop: ConsoleProcess, visit: Visitor, tmp_path: Path, place: str
) -> None:
    page = visit(busy_shop, place, viewport={"width": 400, "height": 800})
    expect(page.locator("#page > *").first).to_be_visible()
    expect(page.locator(".item, .logs .body .row").first).to_be_visible()
    page.screenshot(path=tmp_path / "narrow.png")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if place == "/":
        for column in ("Entries/s", "Tail", "Bytes", "Lag", "Full", "Epoch"):
            expect(page.get_by_role("button", name=column)).to_be_in_viewport(ratio=1)
    else:
        expect(page.locator(".strip .part, #tail")).to_be_in_viewport(ratio=0.6)
