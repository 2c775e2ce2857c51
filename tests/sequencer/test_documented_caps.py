"""What docs/operating.md has the sequencer be allowed is all that it calls."""

from __future__ import annotations

import asyncio

import pytest

import zlog
from zlog import Retention
from zlog._io import AsyncioIo
from zlog.seqr.election import scrubbing
from zlog.seqr.election.maintenance import Duties
from zlog.seqr.election.scrubbing import Scrubbing, ScrubStatus
from zlog.store import RequestPayload

from ..client.replicas.replicated import Replicated, damaged_value
from ..support.logs import leave_hole
from ..system.test_caps import SETS
from .fakes import until


class Recording(Replicated):
    """Takes down what it is asked to do."""

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        self.asked.append(method)
        return super().execute(object, method, payload, timeout)


def filled(store: zlog.Store) -> zlog.Log:
    log = zlog.Log.create(store, "orders", width=2, stripe_unit=2, hole_timeout=0.01)
    log.append_many([b"entry %d" % number for number in range(20)])
    log.reconfigure(width=3)
    leave_hole(log)
    log.append_many([b"more %d" % number for number in range(20)])
    return log


async def test_documented_caps_cover_retention() -> None:
    store = Recording()
    log = filled(store)
    log.set_retention(Retention(age=0.0, entries=30, bytes=100))
    store.asked.clear()
    duties = Duties(AsyncioIo(store))
    for _ in range(2):
        await duties.round()
    assert log.earliest() > 20
    assert {"count", "trim_to", "remove", "retention_write"} <= {*store.asked}
    assert {*store.asked} <= SETS["enforce retention"]


async def test_documented_caps_cover_compaction() -> None:
    """Which the leader begins where much is new, and which waits for cursors."""
    store = Recording()
    log = zlog.Log.create(store, "carts", width=2, stripe_unit=2)
    log.append_many([b"x"] * 40, tags_each=[[f"cart.{n % 7}"] for n in range(40)])
    log.set_retention(Retention(compact_after=0.0))
    log.cursor("reader", create=20)
    store.asked.clear()
    duties = Duties(AsyncioIo(store))
    await duties.round()
    assert log.stat().entries == 27
    assert {"tags_list", "compact", "tags_rebuild", "cursor_list"} <= {*store.asked}
    log.cursor("reader").remove()
    await duties.round()
    assert log.stat().entries == 7
    assert {*store.asked} - {"cursor_remove"} <= SETS["enforce retention"] | {"stat", "cursor_read"}
    log.append(b"y", tags=["cart.0"])
    store.asked.clear()
    await duties.round()
    assert log.stat().entries == 8  # too little is new
    assert "tags_list" not in store.asked


async def test_documented_caps_cover_scrub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrubbing, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(scrubbing, "ROUND_SECONDS", 0.0)
    store = Recording()
    log = filled(store)
    for rank in (0, 1):
        store.damage(rank, log.view.object_of(30).name, b"more 9", b"mare 9")
        damaged_value(store, rank, log.view.object_of(31).name, "zlog.header")
    store.asked.clear()
    status = ScrubStatus()
    work = asyncio.ensure_future(Scrubbing(AsyncioIo(store), 1e9, lambda: True, status).run())
    await until(lambda: status.rounds == 4, 60)
    work.cancel()
    assert {"damaged", "verify", "salvage", "heal"} <= {*store.asked}
    assert {*store.asked} <= SETS["repair"]
