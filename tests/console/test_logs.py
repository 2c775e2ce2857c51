"""All logs at a glance: every number is the API's; sorting, filtering, keys."""

from __future__ import annotations

from importlib.resources import files

from playwright.sync_api import Page, expect

import zlog
from zlog._base.names import head_object

from ..client.planted import flip
from ..support.console import ConsoleProcess
from ..support.waiting import wait_until
from .conftest import Server, Visitor, find, overview
from .shop import OTHERS

COLUMNS = (
    "name",
    "rate",
    "history",
    "tail",
    "bytes",
    "lag",
    "trimmed",
    "fullness",
    "layout",
    "epoch",
)


def cells(page: Page, name: str) -> dict[str, str]:
    """What the row of a log shows."""
    texts = page.locator(f'[data-log="{name}"] > *').all_text_contents()
    return dict(zip(COLUMNS, texts, strict=True))


def names(page: Page) -> list[str]:
    """The logs that are shown, in order."""
    return page.locator(".logs .body .name").all_text_contents()


def human(size: int) -> str:
    return f"{size / 1024:.1f} KiB" if size >= 1024 else f"{size} B"


def test_numbers_match_overview(
    shop: zlog.Store, shop_console: ConsoleProcess, visit: Visitor
) -> None:
    page = visit(shop_console)
    expect(page.locator(".logs .body .row")).to_have_count(1 + len(OTHERS))
    expect(page.locator("#state")).to_contain_text(f"{1 + len(OTHERS)} logs")
    for log in overview(shop):
        assert log.content is not None
        expect(page.locator(f'[data-log="{log.name}"]')).to_contain_text(human(log.content.bytes))
        shown = cells(page, log.name)
        full = log.content.fullness
        assert shown == {
            "name": log.name,
            "rate": "0",
            "history": "",
            "tail": f"{log.tail:,}",
            "bytes": human(log.content.bytes),
            "lag": f"{log.lag:,}" if log.cursors else "",
            "trimmed": f"{log.trim_point:,}",
            "fullness": "<1%" if 0 < full < 0.005 else f"{round(full * 100)}%",
            "layout": f"{log.width}×{log.stripe_unit}",
            "epoch": f"{log.epoch} ",
        }


def test_logs_are_sorted_and_filtered(shop_console: ConsoleProcess, visit: Visitor) -> None:
    page = visit(shop_console)
    expect(page.locator(".logs .body .row")).to_have_count(7)
    page.get_by_role("button", name="Tail").click()
    by_tail = ["orders", *sorted(OTHERS, key=lambda name: -OTHERS[name])]
    assert names(page) == by_tail
    page.get_by_role("button", name="Tail").click()
    assert names(page) == by_tail[::-1]
    page.get_by_role("button", name="Log", exact=True).click()
    assert names(page) == sorted(by_tail)
    page.keyboard.press("/")
    page.keyboard.type("SH")
    assert names(page) == ["shipments"]
    page.keyboard.type("x")
    assert names(page) == []
    expect(page.get_by_text("No log has this in its name.")).to_be_visible()


def test_keys_select_and_open_log(shop_console: ConsoleProcess, visit: Visitor) -> None:
    page = visit(shop_console)
    expect(page.locator(".logs .body .row")).to_have_count(7)
    page.get_by_role("button", name="Log", exact=True).focus()
    page.keyboard.press("Enter")  # of a button, which it presses
    assert names(page) == sorted(["orders", *OTHERS])
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator('[aria-selected="true"] .name')).to_have_text("notifications")
    page.locator(".logs").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="notifications")).to_be_visible()
    page.keyboard.press("3")
    expect(page.get_by_role("tab", name="Cursors")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("g")
    expect(page.locator('[aria-selected="true"] .name')).to_have_text("notifications")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("pause the tail")
    expect(page.get_by_role("dialog")).to_contain_text("Home End")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_page_supports_light_and_dark_theme(shop_console: ConsoleProcess, visit: Visitor) -> None:
    def background(page: Page) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page = visit(shop_console)
    expect(page.locator(".logs .body .row")).to_have_count(7)
    light = background(page)
    page.keyboard.press("d")
    dark = background(page)
    assert dark != light
    page.reload()
    assert background(page) == dark
    page.get_by_role("button", name="Light or dark").click()
    assert background(page) == light
    chosen_by_the_system = visit(shop_console, color_scheme="dark")
    assert background(chosen_by_the_system) == dark


def test_page_follows_created_and_removed_logs(
    store: zlog.Store, serve: Server, visit: Visitor
) -> None:
    console = serve()
    page = visit(console, refused=["404"])
    expect(page.get_by_text("There are no logs yet")).to_be_visible()
    with zlog.Log.create(store, "a.b-c_d..e") as log:
        row = page.locator('[data-log="a.b-c_d..e"]')
        expect(row).to_be_visible()

        def grows() -> bool:
            log.append_many([b"entry"] * 10)
            return cells(page, log.name)["rate"] not in ("0", "0.0")

        wait_until(grows)
        row.click()
        expect(page.locator('[data-fact="tail"] dd')).to_have_text(f"{log.tail():,}")
    zlog.Log.remove(store, "a.b-c_d..e")
    expect(page.locator("#problem")).to_contain_text("no log 'a.b-c_d..e'")
    page.keyboard.press("g")
    expect(page.get_by_text("There are no logs yet")).to_be_visible()


def test_unreadable_log_does_not_hide_others(
    store: zlog.Store, serve: Server, visit: Visitor
) -> None:
    zlog.Log.create(store, "sound").close()
    with zlog.Log.create(store, "broken") as log:
        log.set_retention(zlog.Retention(entries=7_654_321))
    flip(store, head_object("broken"), b"7654321", b"x654321")
    page = visit(serve(), refused=["50", "404"])
    expect(page.locator('[data-log="sound"]')).to_contain_text("8×")
    (why,) = [log.error for log in overview(store) if log.error]
    expect(page.locator('[data-log="broken"]')).to_have_text(f"broken{why}")
    page.locator('[data-log="broken"]').click()
    expect(page.locator("#problem")).to_contain_text("broken")


def test_page_preloads_all_modules(shop_console: ConsoleProcess) -> None:
    page = shop_console.ask("/").body.decode()
    modules = files("zlog.cli.commands.console").joinpath("static").iterdir()
    for name in (module.name for module in modules if module.name.endswith(".js")):
        assert page.count(f'"/static/{name}"') == 1


def test_missing_log_is_one_message_until_created(
    store: zlog.Store, serve: Server, visit: Visitor
) -> None:
    console = serve()
    for tab in ("positions", "tail", "layouts"):
        page = visit(console, f"/#/log/later?tab={tab}", refused=["404"])
        expect(page.locator("#problem")).to_contain_text("no log 'later'")
        expect(page.get_by_role("tablist")).to_be_hidden()
        expect(page.get_by_role("tabpanel")).to_be_hidden()
        expect(page.locator(".notice")).to_have_count(0)
    zlog.Log.create(store, "later").close()
    expect(page.get_by_role("tablist")).to_be_visible()
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.locator("tbody tr")).to_have_count(1)  # of the layouts
    page.get_by_role("tab", name="Positions").click()
    find(page, "x")
    expect(page.locator(".notice")).to_have_count(1)
    page.keyboard.press("Tab")
    page.get_by_role("link", name="Doctor").click()
    expect(page.locator(".notice")).to_have_count(0, timeout=4000)  # it would last for 9 s


def test_typed_addresses_are_handled(shop_console: ConsoleProcess, visit: Visitor) -> None:
    page = visit(shop_console, refused=["40"])
    for typed, name in (("%E0%A4%A", "%E0%A4%A"), ("no%2Flog", "no/log"), ("<b>", "<b>")):
        page.goto(f"{shop_console.address}/#/log/{typed}")
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        expect(page.locator("#problem")).to_be_visible()
