"""Entries as text, JSON and hex: what does not print is told, and nothing is taken for another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import zlog

from ..client.planted import flip, remove
from ..support.logs import leave_hole
from .conftest import Server, Visitor, find

BINARY = bytes(range(256))


@pytest.fixture
def page(store: zlog.Store, serve: Server, visit: Visitor) -> Page:
    """Shows a log with entries that are hard to show."""
    with zlog.Log.create(store, "odd", width=2, stripe_unit=1) as log:
        log.append_many(
            [
                BINARY,
                "bell \a, right to left \u202eevil, zero \u200b, BOM \ufeff".encode(),
                b"bell \\u{0007}",
                b'{"n": 12345678901234567890, "x": 1.10, "s": "\\u202e"}',
                b"<script>throw 1</script><img src=x onerror=alert(1)>",
                "Gr\u00fc\u00dfe, \u65e5\u672c\n\ttwo lines".encode(),
                b"",
                b"z" * 100_000,
            ],
            tags=["plain", "<b>", "a\u202eb"],
        )
    opened = visit(serve(), "/#/log/odd")
    expect(opened.locator("#items .item")).to_have_count(8)
    return opened


def data(page: Page, position: int) -> str:
    text = page.locator(f'#items [data-position="{position}"] pre').text_content()
    assert text is not None
    return text


def test_entries_are_shown_as_text(page: Page) -> None:
    assert data(page, 1) == (
        "bell \\u{0007}, right to left \\u{202e}evil, zero \\u{200b}, BOM \\u{feff}"
    )
    assert data(page, 2) == "bell \\u{0007}"
    escapes = page.locator('#items [data-position="1"] pre .escape')
    assert len(escapes.all()) == 4
    assert not page.locator('#items [data-position="2"] pre .escape').all()
    assert data(page, 4) == "<script>throw 1</script><img src=x onerror=alert(1)>"
    assert data(page, 5) == "Gr\u00fc\u00dfe, \u65e5\u672c\n\ttwo lines"
    assert data(page, 6) == ""
    assert not page.locator("#items img").all()
    tags = page.locator('#items [data-position="0"] .tags > span').all_text_contents()
    assert tags == ["<b>", "a\\u{202e}b", "plain"]


def test_entries_are_shown_as_json(page: Page) -> None:
    page.get_by_label("Show data as").select_option("JSON")
    assert data(page, 3) == ('{\n  "n": 12345678901234567890,\n  "x": 1.10,\n  "s": "\\u{202e}"\n}')
    assert data(page, 1).startswith("bell \\u{0007}")  # which is no JSON


def test_entries_are_shown_as_hex(page: Page) -> None:
    page.get_by_label("Show data as").select_option("hex")
    lines = data(page, 0).split("\n")
    assert len(lines) == 16
    shown = b"".join(bytes.fromhex(line[8:55]) for line in lines)
    assert shown == BINARY
    assert lines[4] == "000040  40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f  @ABCDEFGHIJKLMNO"


def test_large_entry_can_be_downloaded(page: Page, tmp_path: Path) -> None:
    assert data(page, 7) == "z" * (16 << 10)
    with page.expect_download() as download:
        page.get_by_role("link", name="all 97.7 KiB").click()
    assert download.value.suggested_filename == "odd-7"
    download.value.save_as(tmp_path / "all")
    assert (tmp_path / "all").read_bytes() == b"z" * 100_000


def test_all_gap_kinds_are_shown(store: zlog.Store, serve: Server, visit: Visitor) -> None:
    with zlog.Log.create(store, "gaps", width=2, stripe_unit=1) as log:
        log.append_many([b"entry %02d" % n for n in range(10)])
        leave_hole(log, 2)
        log.fill(10)
        log.append_many([b"x"])
        log.trim(3)
        log.trim_to(1)
        flip(store, next(iter(log.view.objects())).name, b"entry 04", b"entry o4")
        seen = [
            (item.kind.value if isinstance(item, zlog.Gap) else "entry", item.position)
            for item in zlog.Log.open(zlog.ReadOnlyStore(store), "gaps").read_range(
                0, hole_timeout=0
            )
        ]
        assert {kind for kind, _ in seen} == {"entry", "trimmed", "filled", "unwritten", "lost"}
        console = serve()
        page = visit(console, "/#/log/gaps")
        find(page, "0")
        expect(page.locator("#items .item")).to_have_count(len(seen))
        for row, (kind, position) in zip(page.locator("#items .item").all(), seen, strict=True):
            assert row.get_attribute("data-position") == str(position)
            assert (kind == "entry") == ("gap" not in (row.get_attribute("class") or ""))
            assert kind == "entry" or kind in row.inner_text()
        for position, status in ((0, 404), (10, 404), (11, 404), (4, 500), (9, 200)):
            assert console.ask(f"/api/logs/gaps/data/{position}").status == status
        remove(log, list(log.view.objects())[1])
    expect(page.locator("#items .lost")).to_have_count(1)
    page.get_by_role("button", name="Find").click()
    expect(page.locator("#items .lost").nth(1)).to_contain_text(re.compile("zlog.gaps"))


def test_log_with_macs_needs_key_file(
    store: zlog.Store, serve: Server, visit: Visitor, tmp_path: Path
) -> None:
    key = b"k" * 32
    with zlog.Log.create(store, "signed", mac_key=key) as log:
        log.append(b"known")
    page = visit(serve(), "/#/log/signed", refused=["409"])
    expect(page.get_by_text("--mac-key-file").first).to_be_visible()
    file = tmp_path / "key"
    file.write_bytes(key)
    page = visit(serve(globals_=("--mac-key-file", str(file))), "/#/log/signed")
    expect(page.locator("#items pre")).to_have_text("known")
