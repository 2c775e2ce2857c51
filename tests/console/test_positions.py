"""The strip of a log's positions: its data is Log.position_map's, and so is what is drawn."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import zlog
from zlog.offload import Offloader

from ..support.console import ConsoleProcess
from ..support.logs import leave_hole
from ..support.waiting import wait_until
from .conftest import Server, Visitor, find

STATES = (
    *("written", "filled", "trimmed", "unwritten"),
    *("lost", "unreadable", "unknown", "offloaded"),
)
TAIL = 6039


@pytest.fixture
def orders(shop: zlog.Store) -> Iterator[zlog.Log]:
    """The log with positions in many states, for readers that change nothing."""
    with zlog.Log.open(zlog.ReadOnlyStore(shop), "orders", hole_timeout=0) as log:
        yield log


@pytest.fixture
def page(shop_console: ConsoleProcess, visit: Visitor) -> Page:
    """Its tab of positions, with all of them shown."""
    opened = visit(shop_console, "/#/log/orders")
    shows(opened, 0, TAIL)
    return opened


def strip(page: Page) -> Locator:
    return page.locator(".strip .part")


def shows(page: Page, start: int, end: int) -> None:
    """Wait until a range is drawn as the server has told it."""
    expect(page.locator("[data-shown]")).to_have_attribute("data-shown", f"{start}-{end}")
    expect(page.locator("#range")).to_contain_text(f"{start:,} … {end - 1:,} of")


def shown(page: Page) -> tuple[int, int]:
    """The range that is drawn, once it is the one that is asked for."""
    range_ = page.locator("#range").inner_text().split(" of")[0].replace(",", "").split(" … ")
    start, end = int(range_[0]), int(range_[1]) + 1
    shows(page, start, end)
    return start, end


def click_at(page: Page, position: float, start: int, end: int) -> None:
    """Click at a position of the strip."""
    box = strip(page).bounding_box()
    assert box is not None
    x = box["width"] * (position - start) / (end - start)
    strip(page).click(position={"x": x, "y": box["height"] / 2})


def colours(page: Page) -> dict[str, str]:
    """The states by the colours in which they are drawn."""
    return dict(
        page.evaluate(
            """names => {
              const style = getComputedStyle(document.documentElement);
              return names.map(name => [style.getPropertyValue(`--state-${name}`), name]);
            }""",
            list(STATES),
        )
    )


def drawn(page: Page, x: float, y: float, of: Locator | None = None) -> str:
    """Return the colour of a pixel of the strip, or of another canvas; x and y are 0 to 1."""
    return str(
        (of or strip(page)).evaluate(
            """(canvas, [x, y]) => {
              const at = [Math.floor(x * canvas.width), Math.floor(y * canvas.height)];
              const [r, g, b] = canvas.getContext("2d").getImageData(...at, 1, 1).data;
              return "#" + [r, g, b].map(each => each.toString(16).padStart(2, "0")).join("");
            }""",
            [x, y],
        )
    )


@pytest.mark.parametrize(
    ("start", "end", "cells"), [(0, None, 400), (980, 1040, 60), (3500, 4100, 7), (0, 100, 4096)]
)
def test_map_matches_position_map(
    orders: zlog.Log,
    shop_console: ConsoleProcess,
    start: int,
    end: int | None,
    cells: int,
) -> None:
    more = {} if end is None else {"end": end}
    told = shop_console.get("logs/orders/map", start=start, cells=cells, **more)
    found = orders.position_map(start, end, cells=cells)
    for what in ("start", "end", "looked", *STATES):
        assert told["cells"][what] == [getattr(cell, what) for cell in found.cells]
    for what in ("start", "end", "tail", "trim_point"):
        assert told[what] == getattr(found, what)
    assert [stripe["id"] for stripe in told["stripes"]] == [each.id for each in found.stripes]
    assert [stripe["width"] for stripe in told["stripes"]] == [each.width for each in found.stripes]


def test_drawn_colours_match_positions(page: Page, orders: zlog.Log) -> None:
    """Of single positions each is a column of one colour."""
    for start in (696, 996, 2012, 3504):
        find(page, str(start + 8))
        for _ in range(4):
            strip(page).focus()
            page.keyboard.press("+")
        first, end = shown(page)
        assert end - first == 16
        assert first <= start + 8 < end
        expect(page.locator("#exact")).to_have_text("every position was looked at")
        names = colours(page)
        cells = orders.position_map(first, end, cells=16).cells
        for at, cell in enumerate(cells):
            (state,) = [name for name in STATES if getattr(cell, name)]
            assert names[drawn(page, (at + 0.5) / 16, 0.3)] == state


def runs(page: Page) -> list[tuple[str, int]]:
    """The colours from left to right in the middle of the strip, each with its pixels."""
    pixels = strip(page).evaluate(
        """canvas => {
          const row = [0, Math.floor(0.3 * canvas.height), canvas.width, 1];
          return [...canvas.getContext("2d").getImageData(...row).data];
        }"""
    )
    each = (bytes(pixels[at : at + 3]).hex() for at in range(0, len(pixels), 4))
    return [(f"#{colour}", len([*same])) for colour, same in groupby(each)]


def test_only_holes_look_like_holes(page: Page) -> None:
    """Columns of 4 to 5 pixels touch each other; lines between wider ones look like no state."""
    names = colours(page)
    find(page, "5000")
    start, end = shown(page)
    assert end - start == 256
    found = runs(page)
    assert [names[colour] for colour, _ in found] == ["written", "unwritten", "written"]
    assert abs(found[1][1] - 12 * sum(pixels for _, pixels in found) / 256) <= 1
    strip(page).focus()
    for _ in range(4):
        page.keyboard.press("+")
    start, end = shown(page)
    assert end - start == 16
    found = runs(page)
    lines = [colour for colour, pixels in found if pixels == 1]
    assert len(lines) == 16
    assert not {*lines} & {*names}


CROSSINGS = """async ([marks, width]) => {
  const { placed } = await import("/static/strip.js");
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "11px system-ui, sans-serif";
  const labels = placed(pen, marks, width, 3, 2);
  const shown = labels.filter((label) => label.row >= 0);
  const end = (label) => label.left + label.long;
  const crossed = shown.filter((one) => shown.some((other) =>
    (other.row >= one.row && one.left <= other.at && other.at <= end(one))
    || (one !== other && other.row === one.row && one.left < end(other) && other.left < end(one))));
  return { shown: shown.map((label) => label.text), crossed: crossed.map((label) => label.text) };
}"""
"""Which labels are shown, and which of them a line or another label crosses."""


def test_lines_do_not_cross_labels(page: Page) -> None:
    def place(*marks: tuple[str, float]) -> list[str]:
        given = [{"text": text, "at": at} for text, at in marks]
        found = page.evaluate(CROSSINGS, [given, 400])
        assert not found["crossed"], marks
        return sorted(found["shown"])

    assert place(("trim point", 100), ("billing", 120)) == ["billing", "trim point"]
    near_the_tail = [("fraud-model", 300.0), ("warehouse", 385.0), ("billing", 398.0)]
    assert place(*near_the_tail) == ["billing", "fraud-model", "warehouse"]
    near_the_trim_point = [("trim point", 100.0), ("a", 104.0), ("b", 112.0), ("c", 118.0)]
    assert len(place(*near_the_trim_point, *near_the_tail)) == 7
    draw = random.Random(7)
    for count in range(1, 30):
        place(*((f"cursor-{n}", draw.uniform(0, 400)) for n in range(count)))


def test_click_opens_entries_at_position(page: Page, orders: zlog.Log) -> None:
    click_at(page, 3490, 0, TAIL)
    chosen = page.locator(".item.chosen, .item").first
    expect(chosen).to_have_attribute("data-position", one_of(range(3450, 3530)))
    first = int(chosen.get_attribute("data-position") or "")
    rows = page.locator("#items .item")
    items = list(orders.read_range(first, first + 100))
    expect(rows).to_have_count(len(items))
    for row, item in zip(rows.all(), items, strict=True):
        assert row.get_attribute("data-position") == str(item.position)
        if isinstance(item, zlog.Entry):
            assert row.locator("pre").inner_text() == item.data.decode()
            assert row.locator(".tags span").all_inner_texts() == sorted(item.tags)
            assert f"{item.timestamp:%Y-%m-%d %H:%M:%S}" in row.inner_text()
        else:
            assert item.kind.value in row.inner_text()
    page.get_by_role("button", name="After").click()
    expect(rows.first).to_have_attribute("data-position", str(first + 100))
    page.get_by_role("button", name="Before").click()
    expect(rows.first).to_have_attribute("data-position", str(first))


def one_of(positions: range) -> re.Pattern[str]:
    return re.compile("|".join(map(str, positions)))


def test_wheel_keys_and_buttons_zoom(page: Page) -> None:
    strip(page).hover(position={"x": 300, "y": 60})
    ranges = [(0, TAIL)]
    while ranges[-1][1] - ranges[-1][0] > 16:
        page.mouse.wheel(0, -100)
        ranges.append(shown_after(page, *ranges[-1]))
    assert len(ranges) == 10  # halved each time
    page.get_by_role("button", name="All positions").click()
    shows(page, 0, TAIL)
    page.get_by_role("button", name="Zoom in").click()
    shows(page, 1510, 4530)
    page.get_by_role("button", name="Left").click()
    shows(page, 755, 3775)
    page.get_by_role("button", name="Right").click()
    shows(page, 1510, 4530)
    page.keyboard.press("ArrowRight")
    shows(page, 1812, 4832)
    page.keyboard.press("Home")
    shows(page, 0, 3020)
    page.keyboard.press("End")
    shows(page, 3019, TAIL)
    page.keyboard.press("-")
    shows(page, 0, TAIL)
    page.keyboard.press("+")
    shows(page, 1510, 4530)
    page.keyboard.press("0")
    shows(page, 0, TAIL)


def shown_after(page: Page, start: int, end: int) -> tuple[int, int]:
    """The range that is drawn after another one."""
    expect(page.locator("[data-shown]")).not_to_have_attribute("data-shown", f"{start}-{end}")
    return shown(page)


def test_drag_moves_and_overview_jumps(page: Page) -> None:
    page.keyboard.press("+")
    shows(page, 1510, 4530)
    box = strip(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 50, steps=4)
    page.mouse.up()
    start, _ = shown_after(page, 1510, 4530)
    assert abs(start - (1510 + 3020 / 4)) < 20
    page.locator(".strip .whole").click(position={"x": 5, "y": 10})
    shows(page, 0, 3020)


def test_tooltip_shows_numbers_of_column(page: Page, orders: zlog.Log) -> None:
    find(page, "2009")
    start, end = shown(page)
    box = strip(page).bounding_box()
    assert box is not None
    x = box["width"] * (2009.5 - start) / (end - start)
    strip(page).hover(position={"x": x, "y": 60})
    (stripe,) = orders.stripes(2009, 2010)
    (cell,) = orders.position_map(2009, 2010, cells=1).cells
    assert cell.unwritten == 1
    expect(page.locator(".tip")).to_have_text(
        "position 2,009\nunwritten (hole): 1\n"
        f"stripe of epoch {stripe.id}, {stripe.width} × {stripe.stripe_unit}"
    )


def test_offloaded_positions_are_drawn_and_missing_file_is_reported(
    store: zlog.Store, serve: Server, visit: Visitor, tmp_path: Path
) -> None:
    with zlog.Log.create(store, "orders", width=2) as log:
        log.append_many([b"entry"] * 8)
        log.roll()
        log.append_many([b"entry"] * 8)
        assert [*Offloader(log, str(tmp_path / "files")).run()]
        (file,) = log.stripe_files()
    page = visit(serve(), "/#/log/orders")
    shows(page, 0, 16)
    names = colours(page)
    assert [names[drawn(page, x, 0.3)] for x in (0.22, 0.78)] == ["offloaded", "written"]
    expect(page.locator('[data-fact="offloaded"] dd')).to_have_text("40 B")
    page.get_by_role("tab", name="Layouts").click()
    expect(page.get_by_text("0 … 7 × 2 (offloaded), 8 …").first).to_be_visible()
    Path(file.url.removeprefix("file://")).unlink()
    page.get_by_role("tab", name="Check").click()
    page.get_by_role("button", name="Check now").click()
    expect(page.locator("tr", has_text=file.url)).to_contain_text("fix: restore the file")


def test_find_accepts_position_and_time(page: Page, orders: zlog.Log) -> None:
    find = page.get_by_role("button", name="Find")
    page.get_by_role("textbox", name="Position").fill("5,039")
    find.click()
    expect(page.locator(".item.chosen")).to_have_attribute("data-position", "5039")
    shows(page, 5039 - 128, 5039 + 128)
    page.get_by_role("textbox", name="Position").fill("-3")
    find.click()
    expect(page.get_by_text("-3 is no position")).to_be_visible()
    when = orders.read(2500).timestamp.replace(microsecond=0)
    page.get_by_label("Time (UTC)").fill(f"{when:%Y-%m-%dT%H:%M:%S}")
    expect(page.get_by_role("textbox", name="Position")).to_have_value("")
    find.click()
    position = orders.find_time(when)
    first = next(iter(orders.read_range(position)))
    expect(page.locator("#items .item").first).to_have_attribute(
        "data-position", str(first.position)
    )
    page.get_by_label("Time (UTC)").fill("2999-01-01T00:00:00")
    find.click()
    expect(page.get_by_text("No entries from here on.")).to_be_visible()


def test_full_range_follows_tail_and_partial_stays(
    store: zlog.Store, serve: Server, visit: Visitor
) -> None:
    with zlog.Log.create(store, "busy", width=2, stripe_unit=1) as log:
        page = visit(serve(), "/#/log/busy")
        expect(page.locator("#range")).to_have_text("no positions yet")
        log.append_many([b"entry"] * 100)
        shows(page, 0, 100)
        page.keyboard.press("+")
        shows(page, 25, 75)
        hole = leave_hole(log)
        log.append_many([b"entry"] * 99)
        expect(page.locator("#range")).to_contain_text("of 200 positions")
        shows(page, 25, 75)
        whole = page.locator(".strip .whole")
        named = colours(page)
        written = next(colour for colour, name in named.items() if name == "written")

        def drawn_to_the_end() -> str:
            return drawn(page, 0.99, 0.5, of=whole)

        wait_until(lambda: drawn_to_the_end() == written, drawn_to_the_end)
        page.keyboard.press("0")
        shows(page, 0, 200)
        assert hole == 100
        log.fill(hole)
        find(page, "100")
        expect(page.locator('#items [data-position="100"]')).to_contain_text("filled")
