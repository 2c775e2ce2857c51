"""Spools: entries wait in a local store, and reach their log once and in order."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog import Spool
from zlog.testing import AT_ONCE, Fate, FaultyStore, StoreCall

from ..native.test_full_disk import disk, fill_up
from ..support.logs import data_of
from ..support.waiting import wait_until

__all__ = ["disk"]

DOWN = Fate(effect=None, error=errno.EHOSTUNREACH)
LOST = Fate(reply=None)


class Target:
    """A log `orders` whose store answers as `fate` says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = (folder / "target").as_uri()
        self.down = False
        self.fate: Callable[[StoreCall], Fate] = lambda _: DOWN if self.down else AT_ONCE
        with zlog.connect(self.url) as store:
            zlog.Log.create(store, "orders", width=3, stripe_unit=2)

    def spool(self, **options: Any) -> Spool:
        def open_store(url: str) -> zlog.Store:
            return FaultyStore(zlog.connect(url, create=False), lambda call: self.fate(call))

        options = {"slow": 0.3, "open_store": open_store, **options}
        return Spool(self.folder / "spool", self.url, "orders", **options)

    @contextmanager
    def log(self) -> Iterator[zlog.Log]:
        with zlog.connect(self.url) as store, zlog.Log.open(store, "orders") as log:
            yield log

    def entries(self) -> list[bytes]:
        with self.log() as log:
            return data_of(log.read_range())


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path)


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def test_entries_wait_for_target(target: Target) -> None:
    with target.spool() as spool:
        spool.append(b"0", tags=["a"])
        assert target.entries() == [b"0"]
        target.down = True
        spool.append_many([b"1", b"2"], tags_each=[["b"], ["c", "d"]])
        stat = spool.stat()
        assert (stat.state, stat.entries, stat.dropped) == ("spooling", 2, 0)
        assert "EHOSTUNREACH" in stat.error
        assert stat.bytes > 0
        assert 0 < stat.age < 60
    with target.spool() as spool:  # the outage lasts through a restart
        spool.append(b"3")
        assert zlog.spool_stat(target.folder / "spool").entries == 3
        with pytest.raises(zlog.StoreTimeout, match="not all entries were delivered"):
            spool.flush(timeout=0.1)
        target.down = False
        spool.flush()
        assert spool.delivered == 3
        wait_until(lambda: spool.stat().error == "")
        asyncio.run(append_later(spool))
        assert spool.stat().state == "empty"
    assert target.entries() == numbered(0, 5)
    with target.log() as log:
        assert [set(item.tags) for item in log.read_range(0, 3)] == [{"a"}, {"b"}, {"c", "d"}]  # type: ignore[union-attr]
        [producer] = log.producers()
        assert producer.parts == 0


async def append_later(spool: Spool) -> None:
    await asyncio.wrap_future(spool.submit(b"4"))


@pytest.mark.parametrize("fate", [DOWN, LOST], ids=["unreachable", "lost"])
@pytest.mark.parametrize("always", [False, True])
def test_outage_at_each_call_of_target(target: Target, fate: Fate, always: bool) -> None:
    """The call has no effect, or has one that the client does not learn of."""
    sent, number, reached = 0, 0, True
    while reached:
        calls = 0

        def outage(_: StoreCall, at: int = number, fate: Fate = fate) -> Fate:
            nonlocal calls
            calls += 1
            return fate if calls == at + 1 else DOWN if calls > at else AT_ONCE

        target.fate = outage
        for _ in range(2):  # restarted during the outage
            with target.spool(slow=0.05, timeout=0.05, always=always) as spool:
                spool.append_many(numbered(sent, sent + 7))
                with suppress(zlog.StoreTimeout):
                    spool.flush(timeout=0.1)
                sent += 7
        reached = calls > number
        target.fate = lambda _: AT_ONCE
        with target.spool() as spool:
            spool.flush()
            spool.append(b"%d" % sent)
            sent += 1
        assert target.entries() == numbered(0, sent), f"from call {number}"
        number += 3
        reached = reached and number < 60


def test_full_spool_refuses_or_drops(target: Target) -> None:
    target.down = True
    some = [bytes(1 << 16)] * 15
    with target.spool(bytes_max=4 << 20) as spool:
        with pytest.raises(zlog.LimitReached, match="is full") as caught:
            spool.append_many(some * 9)
        assert "--spool-bytes" in caught.value.hint
        assert spool.stat().bytes <= 4 << 20
        kept = spool.stat().entries
        assert kept == 3 * 16
    with target.spool(bytes_max=4 << 20, when_full="drop") as spool:
        spool.append_many([b"%d" % n + bytes(1 << 16) for n in range(45)])
        stat = spool.stat()
        assert stat.dropped == kept + 45 - stat.entries
        assert stat.dropped % 16 == 0
        assert stat.dropped > 16
        target.down = False
        spool.flush()
        found = target.entries()
        assert len(found) == stat.entries
        assert [entry.rstrip(b"\0") for entry in found[-45:]] == numbered(0, 45)


def test_dropped_batch_is_not_sent_again_in_part(target: Target) -> None:
    """The outage began after some of its entries were written."""
    target.down = True
    data = [b"%d" % n + bytes(1 << 16) for n in range(75)]
    with target.spool(bytes_max=4 << 20, when_full="drop") as spool:
        for entry in data[:60]:  # 15 of these records are a batch
            spool.append(entry)
    writes = iter([AT_ONCE] * 3)
    target.fate = lambda call: next(writes, DOWN) if call.method == "write" else AT_ONCE
    with target.spool(bytes_max=4 << 20, when_full="drop") as spool:
        wait_until(lambda: spool.stat().error)
        spool.append_many(data[60:])
        assert spool.stat().dropped == 15
        target.fate = lambda _: AT_ONCE
        spool.flush()
    found = target.entries()
    assert found == [*data[: len(found) - 60], *data[15:]]
    assert len(found) > 60


def test_processes_share_directory(target: Target) -> None:
    with target.spool() as first, target.spool() as second:
        first.append(b"0")
        second.append(b"1")  # stored only, as the first one delivers
        second.flush()
        first.append(b"2")
        assert (first.delivered, second.delivered) == (1, 0)
        first.close()
        second.append(b"3")
        second.flush()
        wait_until(lambda: second._direct)
        second.append(b"4")
        with pytest.raises(zlog.StoreUnavailable, match="the spool is closed"):
            first.append(b"5")
    assert target.entries() == numbered(0, 5)


def test_record_of_other_process_precedes_direct_appends(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number is lower than that of a direct append, which might be complete."""
    monkeypatch.setattr("zlog.spool._spool._COMPLETE_EVERY", 1)
    with target.spool() as first, target.spool() as second:
        wait_until(lambda: first._direct)
        records = first._local.records
        append = records.append

        def overtaken(data: bytes) -> int:  # of the marker
            monkeypatch.setattr(records, "append", append)
            second.append(b"0")
            return append(data)

        monkeypatch.setattr(records, "append", overtaken)
        monkeypatch.setattr("zlog.spool._spool._POLL_SECONDS", 60.0)
        first.append(b"1")
        first.append(b"2")
        first.flush(timeout=10)
    assert target.entries() == numbered(0, 3)


def test_number_of_failed_direct_append_stays_valid(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although a record of another process, with a higher number, is sent before it."""
    monkeypatch.setattr("zlog.spool._spool._COMPLETE_EVERY", 1)
    with target.spool() as first, target.spool() as second:
        first.append(b"0")

        def lose(call: StoreCall) -> Fate:
            if call.method != "write":
                return AT_ONCE
            target.fate = lambda _: AT_ONCE
            second.append(b"2")
            return LOST

        target.fate = lose
        first.append(b"1")
        first.flush(timeout=10)
    assert target.entries() == numbered(0, 3)


def test_directory_belongs_to_target(target: Target) -> None:
    folder = target.folder / "spool"
    target.down = True
    with target.spool() as spool:
        spool.append(b"x")
    with pytest.raises(zlog.ZlogError, match="belongs to log 'orders'"):
        Spool(folder, target.url, "invoices")
    target.down = False
    with Spool(folder) as spool:
        spool.flush()
    assert target.entries() == [b"x"]
    with pytest.raises(zlog.ZlogError, match="there is no spool in"):
        Spool(target.folder / "nothing")
    with pytest.raises(zlog.ZlogError, match="is a store of logs"):
        Spool(target.folder / "target", target.url, "orders")


def test_entries_wait_while_embedded_store_is_not_mounted(target: Target) -> None:
    store, away = target.folder / "target", target.folder / "away"
    store.rename(away)
    with target.spool() as spool:
        spool.append(b"0")
        away.rename(store)
        spool.flush()
        store.rename(away)
        spool.append(b"1")
        assert spool.stat().state == "spooling"
        away.rename(store)
        spool.flush()
    assert target.entries() == [b"0", b"1"]


def test_refusing_target_blocks_spool(target: Target) -> None:
    with target.log() as log:
        log.read_only()
        with target.spool() as spool:
            with pytest.raises(zlog.AppendRefused, match="read-only"):
                spool.append(b"never stored")
            target.down = True
            wait_until(lambda: spool.stat().state == "empty")
            spool.append(b"0")
            target.down = False
            wait_until(lambda: spool.stat().state == "blocked")
            with pytest.raises(zlog.AppendRefused):
                spool.append(b"never stored")
            with pytest.raises(zlog.AppendRefused):
                spool.flush()
            assert spool.stat().entries == 1
            log.writable()
            wait_until(lambda: spool.stat().state == "empty")
    assert target.entries() == [b"0"]


def test_full_disk_loses_nothing(target: Target, disk: Path) -> None:
    target.folder = disk
    target.down = True
    with target.spool() as spool:
        spool.append(b"0")
        fill_up(disk)
        stored = 1
        with suppress(zlog.StoreUnavailable):
            while stored < 1000:
                spool.append(b"%d" % stored + bytes(1 << 18))
                stored += 1
        assert stored < 1000
        target.down = False
        spool.flush()
    assert [entry.rstrip(b"\0") for entry in target.entries()] == numbered(0, stored)


def test_invalid_arguments_are_refused(target: Target) -> None:
    for wrong in ({"bytes_max": 1}, {"when_full": "wait"}, {"entry_bytes_max": 16 << 20}):
        with pytest.raises(ValueError, match="must"):
            target.spool(**wrong)
    with target.spool(entry_bytes_max=3) as spool:
        with pytest.raises(zlog.EntryTooLarge):
            spool.append(b"four")
        with pytest.raises(zlog.InvalidTag):
            spool.append(b"", tags=[""])
        with pytest.raises(TypeError):
            spool.append("text")  # type: ignore[arg-type]
    assert target.entries() == []
