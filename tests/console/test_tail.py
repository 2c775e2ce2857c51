"""The live tail: what is appended as it comes, by text and tag, paused and gone on with."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

import zlog

from ..support.logs import leave_hole
from ..support.waiting import wait_until
from .conftest import Server, Visitor


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    with zlog.Log.create(store, "events", width=2) as made:
        made.append_many([b"old %d" % n for n in range(100)])
        yield made


@pytest.fixture
def page(log: zlog.Log, serve: Server, visit: Visitor) -> Page:
    opened = visit(serve(), f"/#/log/{log.name}?tab=tail", refused=["404"])
    expect(rows(opened)).to_have_count(50)
    expect(rows(opened).first).to_contain_text("old 50")
    return opened


def rows(page: Page) -> Locator:
    return page.locator("#tail .item")


def texts(page: Page) -> list[str]:
    return page.locator("#tail pre").all_text_contents()


def test_tail_pauses_and_resumes(page: Page, log: zlog.Log) -> None:
    log.append(b"first", tags=["new"])
    expect(rows(page).last).to_contain_text("first")
    expect(rows(page).last.locator(".tags")).to_have_text("new")
    expect(rows(page).last).to_be_in_viewport()  # the list scrolls with it
    page.keyboard.press("p")
    log.append_many([b"second", b"third"])
    expect(page.locator("#tail-state")).to_contain_text("paused, 2 waiting")
    assert "second" not in texts(page)
    page.get_by_role("button", name="Go on").click()
    assert texts(page)[-3:] == ["first", "second", "third"]
    page.get_by_role("button", name="Clear").click()
    expect(rows(page)).to_have_count(0)
    log.append(b"fourth")
    expect(rows(page)).to_have_count(1)


def test_tail_filters_by_text_and_tag(page: Page, log: zlog.Log) -> None:
    page.get_by_role("searchbox", name="Text").fill("err")
    page.keyboard.press("Enter")
    expect(page.locator("#tail-state")).to_contain_text("50 others passed over")
    log.append_many([b"error 1", b"fine", b"error 2"], tags_each=[["a"], ["a"], ["b"]])
    expect(rows(page)).to_have_count(2)
    assert texts(page) == ["error 1", "error 2"]
    page.get_by_role("searchbox", name="Text").fill("")
    page.get_by_role("searchbox", name="Tag").fill("b")
    page.get_by_role("button", name="Filter").click()
    expect(rows(page)).to_have_count(1)
    log.append(b"also of b", tags=["b"])
    expect(rows(page)).to_have_count(2)
    assert texts(page) == ["error 2", "also of b"]


def test_old_hole_is_shown(page: Page, log: zlog.Log) -> None:
    hole = leave_hole(log)
    log.append(b"behind the hole")
    expect(page.locator("#tail .gap")).to_contain_text("unwritten")
    expect(page.locator("#tail .gap")).to_have_attribute("data-position", str(hole))
    expect(rows(page).last).to_contain_text("behind the hole")


def test_omitted_entries_are_counted(page: Page, log: zlog.Log) -> None:
    log.append_many([b"flood"] * 20_000)
    state = page.locator("#tail-state")
    expect(state).to_contain_text("more than can be shown left out")

    def told() -> int:
        left_out = int((state.inner_text()).split(" more than")[0].split("· ")[-1].replace(",", ""))
        return left_out + rows(page).count()

    wait_until(lambda: told() == 20_050, told)
    assert rows(page).count() <= 2000


def test_leaving_tab_ends_tail(page: Page) -> None:
    page.keyboard.press("1")
    expect(page.locator("#range")).to_contain_text("100 positions")
    expect(page.locator("#tail")).to_have_count(0)


def test_tail_shows_hex_and_log_removal(page: Page, log: zlog.Log, store: zlog.Store) -> None:
    page.get_by_label("Show data as").select_option("hex")
    assert texts(page)[0].startswith("000000  6f 6c 64 20 35 30")
    zlog.Log.remove(store, log.name)
    # Which one depends on what the tail did when the log went.
    expect(page.locator("#tail-state")).to_contain_text(re.compile("there is no log|was removed"))
