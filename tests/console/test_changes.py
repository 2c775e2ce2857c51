"""Changes: none without --allow-changes; with it through the page, each asked for once more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

import zlog

from ..support.logs import leave_hole
from .conftest import Server, Visitor, find

CHANGES: dict[str, dict[str, object]] = {
    "append": {"data": "x", "tags": []},
    "fill": {"position": 10},
    "trim": {"position": 3},
    "reconfigure": {"width": 3},
    "read-only": {"read_only": True},
    "remove-cursor": {"cursor": "reader"},
}


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    """Ten entries, a hole at position 10 and an entry behind it, and a cursor at 5."""
    with zlog.Log.create(store, "orders", width=2, stripe_unit=1) as made:
        made.append_many([b"entry %d" % n for n in range(10)])
        assert leave_hole(made) == 10
        made.append(b"behind")
        made.cursor("reader", create=5)
        yield made


def state(log: zlog.Log) -> tuple[object, ...]:
    items = [(type(item), item.position) for item in log.read_range(hole_timeout=None)]
    return log.views(), log.tail(), log.cursors(), items


def test_requests_without_allow_changes_are_refused(
    log: zlog.Log, serve: Server, visit: Visitor
) -> None:
    console = serve()
    before = state(log)
    for what, fields in CHANGES.items():
        answer = console.post(f"logs/orders/{what}", fields)
        assert answer.status == 404
        assert "--allow-changes" in answer.fields["error"]
    for path in ("about", "logs/orders", "logs/orders/map", "logs/orders/check"):
        assert console.post(path, {}).status == 405
    page = visit(console, "/#/log/orders")
    expect(page.locator("#items .item").first).to_be_visible()
    expect(page.get_by_role("button", name="Append")).to_have_count(0)
    page.keyboard.press("4")
    expect(page.locator("tbody tr")).not_to_have_count(0)
    expect(page.get_by_role("button", name="Change")).to_have_count(0)
    assert state(log) == before


def test_viewing_pages_does_not_change_state(log: zlog.Log, serve: Server) -> None:
    console = serve("--allow-changes")
    before = state(log)
    for path in ("", "/map", "/entries", "/views"):
        console.get(f"logs/orders{path}")
    assert b'"summary"' in console.ask("/api/logs/orders/check").body
    assert state(log) == before


def test_invalid_requests_are_refused_with_reason(log: zlog.Log, serve: Server) -> None:
    console = serve("--allow-changes")
    before = state(log)
    for what, fields, status, words in (
        ("append", {}, 400, "lacks 'data'"),
        ("append", {"data": 1}, 400, "must be a string"),
        ("append", {"data": "x", "tags": ["x" * 200]}, 400, "tag"),
        ("append", [1], 400, "JSON object"),
        ("append", b"{", 400, ""),
        ("append", b"x" * (9 << 20), 413, "8 MiB"),
        ("fill", {"position": "10"}, 400, "position"),
        ("fill", {"position": 3}, 409, "holds an entry"),
        ("fill", {"position": 99}, 400, ""),
        ("trim", {"position": 11}, 409, "a cursor of log 'orders' is at 5"),
        ("trim", {"position": -1}, 400, "position"),
        ("reconfigure", {"width": 0}, 400, "width"),
        ("reconfigure", {"width": "2"}, 400, ""),
        ("reconfigure", {"width": 2.5}, 400, ""),
        ("read-only", {"read_only": "yes"}, 400, "true or false"),
        ("remove-cursor", {"cursor": "none"}, 404, "none"),
        ("remove-cursor", {"cursor": 7}, 400, ""),
    ):
        answer = console.post(f"logs/orders/{what}", fields)
        assert (what, fields, answer.status) == (what, fields, status), answer
        assert words in answer.fields["error"], answer
    assert console.post("logs/none/append", {"data": "x"}).status == 404
    assert state(log) == before


@pytest.fixture
def page(log: zlog.Log, serve: Server, visit: Visitor) -> Page:
    opened = visit(serve("--allow-changes"), f"/#/log/{log.name}", refused=["409"])
    expect(opened.locator("#store")).to_contain_text("changes allowed")
    expect(opened.locator("#items .item")).to_have_count(12)
    return opened


def choose(page: Page, position: int) -> None:
    find(page, str(position))
    expect(page.locator(".item.chosen")).to_have_attribute("data-position", str(position))


def answers(page: Page) -> list[str]:
    """Accept what the page asks from now on; returns the questions, as they come."""
    asked: list[str] = []
    page.on(
        "dialog",
        lambda box: (asked.append(box.message), box.accept())[1],
    )
    return asked


def test_page_appends_and_fills(page: Page, log: zlog.Log) -> None:
    page.get_by_label("Entry", exact=True).fill("Gr\u00fc\u00dfe")
    page.get_by_label("Tags").fill("a, b")
    page.get_by_role("button", name="Append").click()
    expect(page.get_by_text("appended at 12")).to_be_visible()
    expect(page.locator('#items [data-position="12"]')).to_contain_text("Gr\u00fc\u00dfe")
    entry = log.read(12)
    assert (entry.data.decode(), entry.tags) == ("Gr\u00fc\u00dfe", ("a", "b"))
    page.get_by_role("button", name="Fill").click()
    expect(page.get_by_text("choose a position first")).to_be_visible()
    choose(page, 10)
    page.get_by_role("button", name="Fill").click()
    expect(page.locator('#items [data-position="10"]')).to_contain_text("filled")
    with pytest.raises(zlog.Invalidated):
        log.read(10)


def test_page_trims_after_confirmation(page: Page, log: zlog.Log) -> None:
    choose(page, 4)
    page.once("dialog", lambda box: box.dismiss())
    page.get_by_role("button", name="Trim below it").click()
    assert log.views()[-1].trim_point == 0
    asked = answers(page)
    page.get_by_role("button", name="Trim below it").click()
    assert asked == ["Trim all positions below 4? Their entries are gone then."]
    expect(page.locator('[data-fact="trimmed below"] dd')).to_have_text("4")
    page.get_by_role("button", name="Before").click()
    expect(page.locator("#items .trimmed")).to_contain_text("0 … 3")
    choose(page, 8)
    page.get_by_role("button", name="Trim below it").click()
    expect(page.locator(".notice", has_text="a cursor of log 'orders' is at 5")).to_be_visible()
    assert log.stat().trim_point == 4


def test_page_changes_layout_and_cursors(page: Page, log: zlog.Log) -> None:
    asked = answers(page)
    page.keyboard.press("4")
    width = page.get_by_label("Width")
    expect(width).to_have_value("2")
    width.fill("5")
    page.get_by_role("button", name="Change").click()
    expect(page.locator("tbody tr").first).to_contain_text("width 2 → 5")
    assert log.append(b"in the new stripe") == 12
    assert log.view.live_stripe.width == 5
    page.get_by_role("button", name="Make read-only").click()
    expect(page.locator("tbody tr").first).to_contain_text("made read-only")
    with pytest.raises(zlog.AppendRefused):
        log.append(b"refused")
    page.get_by_role("button", name="Make writable").click()
    expect(page.locator("tbody tr").first).to_contain_text("made writable")
    log.append(b"taken")
    page.keyboard.press("3")
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No cursors")).to_be_visible()
    assert log.cursors() == []
    assert len(asked) == 4
