"""A leader's audit of all copies, in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from unittest.mock import AsyncMock

import pytest

import zlog
from zlog._audit.scrub import _verify
from zlog._base.names import directory_shard
from zlog._catalog.directory import NameList
from zlog._io import AsyncioIo
from zlog.seqr.election import scrubbing
from zlog.seqr.election.scrubbing import Scrubbing, ScrubStatus
from zlog.view import ObjectRef

from ..client.replicas.replicated import Replicated, damaged_value
from .fakes import until

SMALL = [b"small %d" % i for i in range(3)]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrubbing, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(scrubbing, "ROUND_SECONDS", 0.0)


@pytest.fixture
def store() -> Replicated:
    made = Replicated()
    for name in ("audit", "orders"):
        with zlog.Log.create(made, name, width=2, stripe_unit=2) as log:
            log.append_many(SMALL)
    return made


def objects(store: Replicated) -> list[str]:
    found = []
    for name in ("audit", "orders"):
        found.append(directory_shard("logs", name))
        with zlog.Log.open(store, name) as log:
            found += [f"zlog.{name}.head", *(ref.name for ref in log.view.objects())]
    return found


async def test_scrub_repairs_every_replica_of_every_log(
    store: Replicated, caplog: pytest.LogCaptureFixture
) -> None:
    names = objects(store)
    status = ScrubStatus()
    for rank, name in enumerate(("orders", "audit")):
        with zlog.Log.open(store, name) as log:
            store.damage(rank, log.view.object_of(1).name, SMALL[1], b"smell 1")
    damaged_value(store, 2, "zlog.audit.head", "zlog.head")
    work = asyncio.ensure_future(Scrubbing(AsyncioIo(store), 1e9, lambda: True, status).run())
    await until(lambda: all(store.alike(name) for name in names) and status.repaired >= 3, 60)
    work.cancel()
    assert status.damaged == 0
    assert status.bytes
    assert "repaired log=orders" in caplog.text
    assert [f for name in ("audit", "orders") for f in zlog.Log.open(store, name).check()] == []


async def test_scrub_reports_lost_entries(
    store: Replicated, caplog: pytest.LogCaptureFixture
) -> None:
    """Of one log what is left of it is looked at, of the other not even the view can be read."""
    with zlog.Log.open(store, "audit") as log:
        name = log.view.object_of(1).name
    for rank in range(3):
        damaged_value(store, rank, "zlog.orders.head", "v.0000000000000001")
        store.damage(rank, name, SMALL[1], b"smell 1")
    status = ScrubStatus()
    work = asyncio.ensure_future(Scrubbing(AsyncioIo(store), 1e9, lambda: True, status).run())
    await until(lambda: status.rounds >= 2, 60)
    work.cancel()
    assert status.damaged
    assert status.repaired == 0
    assert f"lost log=audit object={name}" in caplog.text
    assert "could not scrub log=orders" in caplog.text


async def test_scrub_respects_rate_limit(store: Replicated) -> None:
    """Looks wait for each other; so one at 64 KiB per second does about one a second."""
    status = ScrubStatus()
    work = asyncio.ensure_future(Scrubbing(AsyncioIo(store), 1 << 16, lambda: True, status).run())
    await asyncio.sleep(0.3)
    work.cancel()
    assert status.rounds == 0
    assert status.log in ("audit", "orders")


@pytest.mark.parametrize(("lot", "first"), [(0.0, 0), (0.3, 30), (0.9, 90)])
async def test_scrub_starts_at_random_position(
    store: Replicated, monkeypatch: pytest.MonkeyPatch, lot: float, first: int
) -> None:
    """None knows how far the one before it came: so all is met in time, however short they lead."""
    with zlog.Log.create(store, "long", width=1) as log:
        log.append_many([b"x"] * 100)
    monkeypatch.setattr(NameList, "names", AsyncMock(return_value=["long"]))
    monkeypatch.setattr(scrubbing, "ROUND_SECONDS", 3600.0)
    seen: list[Sequence[int]] = []

    def verify(ref: ObjectRef, positions: Sequence[int], keys_only: bool = False) -> bytes:
        seen.append(positions)
        return _verify(ref, positions, keys_only)

    monkeypatch.setattr("zlog._audit.scrub._verify", verify)
    io, status = AsyncioIo(store), ScrubStatus()
    monkeypatch.setattr(io, "random", lambda: lot)
    work = asyncio.ensure_future(Scrubbing(io, 1e9, lambda: True, status).run())
    await until(lambda: status.rounds == 1)
    work.cancel()
    assert [*seen[0]] == [*range(first, 100)]
    assert {p for some in seen for p in some} == {*range(100)}
    assert ("verify" in store.asked) == (lot < 0.5)


async def test_standby_does_not_scrub(store: Replicated) -> None:
    before = len(store.asked)
    work = asyncio.ensure_future(
        Scrubbing(AsyncioIo(store), 1e9, lambda: False, ScrubStatus()).run()
    )
    await asyncio.sleep(0)
    work.cancel()
    assert len(store.asked) == before
