"""Cursors, retention, sources, layouts, the audit and the doctor: as the API tells them."""

from __future__ import annotations

from playwright.sync_api import Page, expect

import zlog
from zlog.groups import Group, Queue

from ..client.planted import flip
from ..support.console import ConsoleProcess
from ..support.logs import leave_hole
from .conftest import Server, Visitor, overview


def table(page: Page, number: int = 0) -> list[list[str]]:
    """The rows of a table of the page."""
    rows = page.locator("#page table").nth(number).locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def test_cursors_retention_and_producers_are_shown(
    shop: zlog.Store, shop_console: ConsoleProcess, visit: Visitor
) -> None:
    page = visit(shop_console, "/#/log/orders?tab=cursors")
    expect(page.get_by_text("Kept: 30 d.")).to_contain_text("it has seen none yet")
    with zlog.Log.open(shop, "orders") as log:
        assert table(page) == [
            [
                cursor.name,
                f"{cursor.position:,}",
                f"{log.tail() - cursor.position:,}",
                f"{cursor.updated:%Y-%m-%d %H:%M:%S}",
                "",
            ]
            for cursor in log.cursors()
        ]
    expect(page.get_by_role("button", name="Remove")).to_have_count(0)
    page.goto(f"{shop_console.address}/#/log/payments?tab=cursors")
    expect(page.get_by_text("nightly-batch")).to_be_visible()
    expect(page.get_by_text("Kept: everything.")).to_have_text("Kept: everything. ")
    with zlog.Log.open(shop, "payments") as log:
        (producer,) = log.producers()
    assert table(page, 1) == [
        [
            "nightly-batch",
            str(producer.sequence),
            str(producer.parts),
            f"{producer.updated:%Y-%m-%d %H:%M:%S}",
        ]
    ]


def test_groups_are_shown(store: zlog.Store, serve: Server, visit: Visitor) -> None:
    with zlog.Log.create(store, "orders") as log:
        log.append_many([b"x"] * 4)
        with Group(log, "billing").join(), Queue(log, "mail", worker="w1") as queue:
            queue.take(1, wait=5)[0].ack(flush=True)
            log.cursor("group.none", create=0)
            page = visit(serve(), "/#/log/orders?tab=cursors")
            expect(page.get_by_role("heading", name="Groups")).to_be_visible()
            billing, mail = table(page, 1)
    assert [*billing[:3], *billing[4:]] == ["billing", "ordered", "4", "1", "", "", ""]
    assert [*mail[:3], mail[4], *mail[6:]] == ["mail", "queue", "3", "1", "0", "0"]
    assert billing[3].endswith(" s")


def test_log_facts_match_overview(
    shop: zlog.Store, shop_console: ConsoleProcess, visit: Visitor
) -> None:
    page = visit(shop_console, "/#/log/orders")
    (log,) = [each for each in overview(shop) if each.name == "orders"]
    assert log.content is not None
    for fact, value in {
        "tail": f"{log.tail:,}",
        "entries": f"{log.content.entries:,}",
        "trimmed below": "700",
        "layout": "6 × 64",
        "epoch": str(log.epoch),
        "appended by": "any client",
        "furthest cursor": f"{log.lag:,} behind",
        "kept": "30 d",
        "sequencer": log.sequencer or "none",
    }.items():
        expect(page.locator(f'[data-fact="{fact}"] dd')).to_have_text(value)


def test_layouts_tab_shows_changes(store: zlog.Store, serve: Server, visit: Visitor) -> None:
    with zlog.Log.create(store, "orders", width=2, stripe_unit=1) as log:
        log.append_many([b"x"] * 10)
        log.reconfigure(width=3)
        log.append(b"x")
        log.set_retention(zlog.Retention(entries=1000))
        page = visit(serve(), "/#/log/orders?tab=layouts")
        expect(page.locator("tbody tr")).not_to_have_count(0)
        changed = [row[1] for row in table(page)]
        assert changed[-1] == ""
        assert "width 2 → 3" in changed
        assert "options" in changed
        assert [row[0] for row in table(page)] == [f"{view.epoch}" for view in log.views()[::-1]]
        assert table(page)[0][3] == "0 … 9 × 2, 10 … × 3"
        log.read_only()
        expect(page.locator("tbody tr").first).to_contain_text("made read-only")


def test_check_tab_shows_hole_and_damage(store: zlog.Store, serve: Server, visit: Visitor) -> None:
    with zlog.Log.create(store, "orders", width=2, stripe_unit=1) as log:
        log.append_many([b"entry %02d" % n for n in range(10)])
        hole = leave_hole(log)
        log.append(b"behind")
        flip(store, next(iter(log.view.objects())).name, b"entry 04", b"entry o4")
        page = visit(serve(), "/#/log/orders?tab=check")
        page.get_by_role("button", name="Check now").click()
        expect(page.locator("#check-state")).to_have_text("done")
        findings = list(log.check())
    lost = page.locator("tr", has_text="lost")
    expect(lost.first).to_contain_text("serious")
    expect(lost.first).to_contain_text("4 zlog.orders.")
    expect(lost.first).to_contain_text("fix: zlog store restore BACKUP")
    expect(page.locator("tr", has_text=str(hole)).first).to_be_visible()
    assert len(table(page)) == len(findings)
    serious = sum(finding.serious for finding in findings)
    expect(page.locator("#check-summary")).to_contain_text(
        f"{len(findings)} findings, {serious} of them serious"
    )


def test_doctor_page_shows_diagnosis(shop_console: ConsoleProcess, visit: Visitor) -> None:
    page = visit(shop_console, "/#/doctor")
    expect(page.get_by_role("button", name="Run again")).to_be_enabled()
    expect(page.get_by_text("is open")).to_be_visible()
    assert "failure" not in [row[0] for row in table(page)]
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("button", name="Run again")).to_be_enabled()


def test_embedded_store_shows_no_sequencer(
    shop: zlog.Store, shop_console: ConsoleProcess, visit: Visitor
) -> None:
    page = visit(shop_console, "/#/sequencers")
    expect(page.locator("#leader")).to_contain_text("No sequencer is announced")
    by = {log.sequencer for log in overview(shop)}
    assert len(by) == 1
    assert table(page)[0][1] == "7"
