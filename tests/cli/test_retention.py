"""retention: what is set, and what --apply trims."""

from __future__ import annotations

import json

import pytest

import zlog
from zlog import Retention, RetentionReport

from ..client.faulty import Refusing
from .conftest import Inside


def shown(inside: Inside) -> str:
    return inside.ok("retention", "orders").decode().strip()


def limit(inside: Inside, *words: str) -> None:
    """Set limits in an embedded store, where they are enforced on request only."""
    result = inside("retention", "orders", *words)
    assert (result.code, result.out) == (0, b"")
    assert "no sequencer enforces this" in result.err
    assert "`zlog retention orders --apply` regularly" in result.err


def test_limits_are_set_shown_and_removed(inside: Inside, orders: zlog.Log) -> None:
    assert shown(inside) == "everything is kept"
    limit(inside, "--age", "7d", "--bytes", "1.5G")
    assert shown(inside) == "age 1w, bytes 1,610,612,736 (1.5 GiB)"
    limit(inside, "--age", "off", "--entries", "1M")
    assert shown(inside) == "bytes 1,610,612,736 (1.5 GiB), entries 1,000,000"
    limit(inside, "--compact-after", "1h")
    fields = json.loads(inside.ok("retention", "orders", "--json"))
    assert fields == {
        "log": "orders",
        "age_s": None,
        "bytes": 1610612736,
        "entries": 1000000,
        "compact_after_s": 3600.0,
        "skew_s": 3600.0,
    }
    assert "entries 1,000,000, compact after 1h" in shown(inside)
    limit(inside, "--compact-after", "off")
    inside.ok("retention", "orders", "--off")
    assert shown(inside) == "everything is kept"
    with zlog.Log.open(orders.store, "orders") as log:
        assert log.retention == Retention()


def test_apply_continues_unfinished_compaction(
    inside: Inside, orders: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append_many([b"x"] * 20, tags=["k"])
    reports = [RetentionReport(0.0, "", 7, True), RetentionReport(0.0, "", 20, False)]
    monkeypatch.setattr("zlog.cli.output.stderr_is_terminal", lambda: True)
    monkeypatch.setattr(zlog.Log, "retention_report", lambda _: reports.pop(0))
    told = inside("retention", "orders", "--compact-after", "0s", "--apply").err
    assert "compacted below 7 so far" in told
    assert "below 20, only the newest entries of each tag are left" in told
    assert reports == []


def test_retention_trims_only_when_applied(inside: Inside, orders: zlog.Log) -> None:
    orders.append_many([b"x"] * 20)
    orders.cursor("slow", create=12)
    limit(inside, "--entries", "5")
    assert orders.earliest() == 0
    held = inside("retention", "orders", "--apply")
    assert held.err == "zlog: retention stops at 12, the position of cursor 'slow'\n"
    assert orders.earliest() == 12
    orders.cursor("slow").remove()
    inside.ok("retention", "orders", "--entries", "3", "--apply")
    assert orders.earliest() == 17


def test_retention_succeeds_without_right_to_list_cursors(
    inside: Inside, orders: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only tells more is looked up after the work is done; refusing it is no failure."""
    orders.append_many([b"x"] * 20)
    store = Refusing(zlog.connect(orders.store.url), "cursor_list")
    store = Refusing(store, "retention_read")
    monkeypatch.setattr(zlog, "connect", lambda *_, **__: store)
    inside.ok("retention", "orders", "--entries", "5", "--apply")
    assert orders.earliest() == 15


def test_wait_of_age_limit_is_reported(
    inside: Inside, orders: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append_many([b"x"] * 5)
    limit(inside, "--age", "1d", "--skew", "10m")
    assert shown(inside) == "age 1d, skew 10m"
    monkeypatch.setattr("zlog.cli.output.stderr_is_terminal", lambda: True)
    told = inside("retention", "orders", "--apply").err
    why = "nothing is trimmed by age yet: an entry's age counts from when retention first saw it"
    assert why in told
    orders.set_retention(Retention())
    assert "by age" not in inside("retention", "orders", "--apply").err


def test_disagreeing_clocks_are_reported(inside: Inside, orders: zlog.Log) -> None:
    """By the command, and by the doctor."""
    limit(inside, "--age", "1d")
    orders._client.io.wall_clock_us = lambda: 4_000_000_000_000_000  # type: ignore[method-assign]
    orders.append(b"of a writer that is ahead")
    told = inside("retention", "orders", "--apply")
    why = (
        "the writer's clock at position 0 showed 2096-10-02 07:06:40 UTC, but the clock of the"
        " machine that enforces retention showed 20"
    )
    assert (told.code, f"clocks disagree: {why}" in told.err) == (0, True)
    assert "NTP" in told.err
    seen = inside("doctor")
    assert seen.code == 0
    assert f"warning  retention: clocks disagree about log orders: {why}".encode() in seen.out
    assert b"zlog retention LOG --skew SPAN" in seen.out
    orders.set_retention(Retention())
    assert b"retention" not in inside.ok("doctor")


def test_doctor_notes_missing_retention_rights(
    inside: Inside, orders: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.set_retention(Retention(age=60))

    def refuse(_: zlog.Log) -> None:
        raise zlog.ClassNotLoaded("retention_read: refused")

    monkeypatch.setattr(zlog.Log, "retention_report", refuse)
    assert b"note     retention: not examined: retention_read: refused" in inside.ok("doctor")
