"""A log in a store that can't be written: everything is read, nothing is waited for in vain."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import zlog
import zlog.aio
from zlog import Entry, Gap, GapKind
from zlog._base.codes import READING_METHODS

from ..conformance.messages import METHODS
from ..support.logs import leave_hole, write_at
from .faulty import Died, FaultyStore, dies_at

ENTRIES = [b"%d" % number for number in range(20)]


@pytest.fixture
def original(tmp_path: Path) -> Iterator[zlog.Log]:
    """A log with entries, one of them trimmed, a hole and a cursor."""
    with (
        zlog.connect(tmp_path / "store") as store,
        zlog.Log.create(store, "orders", width=4, options={"team": "a"}) as log,
    ):
        log.append_many(ENTRIES[:10])
        leave_hole(log)
        log.append_many(ENTRIES[10:])
        log.trim(3)
        log.cursor("billing", create=5)
        yield log


@pytest.fixture
def copy(original: zlog.Log, tmp_path: Path) -> Iterator[zlog.Log]:
    """The log in a backup: a copy of the database and of nothing else."""
    assert original.tail() == 21
    (tmp_path / "backup").mkdir()
    shutil.copy(tmp_path / "store" / "data.mdb", tmp_path / "backup")
    with (
        zlog.connect(f"{(tmp_path / 'backup').as_uri()}?mode=ro") as store,
        zlog.Log.open(store, "orders", hole_timeout=0.05) as log,
    ):
        yield log
    assert [path.name for path in (tmp_path / "backup").iterdir()] == ["data.mdb"]


def test_read_only_store_is_fully_readable(copy: zlog.Log) -> None:
    items = [*copy.read_range()]
    assert [item.data for item in items if isinstance(item, Entry)] == ENTRIES[:3] + ENTRIES[4:]
    assert [item[:3] for item in items if isinstance(item, Gap)] == [
        (3, 4, GapKind.TRIMMED),
        (10, 11, GapKind.UNWRITTEN),
    ]
    assert copy.read(11).data == b"10"
    assert copy.tail() == 21
    assert (copy.stat().entries, copy.view.options["team"]) == (19, "a")
    assert [(each.name, each.position) for each in copy.cursors()] == [("billing", 5)]
    assert copy.find_time(0) == 0
    assert sum(len(window.positions) for window in copy.read_columns()) == 19
    assert zlog.Log.list(copy.store) == ["orders"]
    audit = copy.check()
    assert [finding.kind for finding in audit] == [zlog.FindingKind.HOLE]
    assert audit.summary.entries == 19


def test_reader_waits_at_hole_without_filling(copy: zlog.Log) -> None:
    began = time.monotonic()
    assert len([*copy.read_range(10, 11, hole_timeout=0.3)]) == 1
    assert time.monotonic() - began >= 0.3
    with pytest.raises(zlog.NotWritten):
        copy.read(10)


def test_follower_stops_at_hole(copy: zlog.Log) -> None:
    with zlog.Log.open(copy.store, "orders", hole_timeout=0.05) as log:
        items = log.follow(5)
        assert [item.position for item in itertools.islice(items, 5)] == [5, 6, 7, 8, 9]
        passed: list[int] = []

        def go_on() -> None:
            with contextlib.suppress(zlog.StoreUnavailable):  # the log is closed
                passed.append(next(items).position)

        follower = threading.Thread(target=go_on)
        follower.start()
        follower.join(0.5)
    follower.join()
    assert passed == []


def test_follower_sees_appends_of_other_process(original: zlog.Log, tmp_path: Path) -> None:
    with (
        zlog.connect(f"{(tmp_path / 'store').as_uri()}?mode=ro") as store,
        zlog.Log.open(store, "orders") as log,
    ):
        items = log.follow(log.tail())
        position = original.append(b"new")
        item = next(items)
        assert isinstance(item, Entry)
        assert (item.position, item.data) == (position, b"new")


WRITES: dict[str, Callable[[zlog.Log], object]] = {
    "append": lambda log: log.append(b"x"),
    "append_many": lambda log: log.append_many([b"x", b"y"]),
    "deliver": lambda log: log.append_once([b"x"], producer="s", sequence=0),
    "fill": lambda log: log.fill(10),
    "trim": lambda log: log.trim(1),
    "trim_to": lambda log: log.trim_to(5),
    "reconfigure": lambda log: log.reconfigure(width=2),
    "roll": lambda log: log.roll(),
    "read_only": lambda log: log.read_only(),
    "set_retention": lambda log: log.set_retention(zlog.Retention(entries=5)),
    "writer": lambda log: log.writer(),
    "cursor": lambda log: log.cursor("new", create="earliest"),
    "commit": lambda log: log.cursor("billing").commit(6),
    "remove": lambda log: zlog.Log.remove(log.store, "orders"),
    "create": lambda log: zlog.Log.create(log.store, "others"),
}


@pytest.mark.parametrize("name", WRITES)
def test_write_calls_are_refused_immediately(copy: zlog.Log, name: str) -> None:
    began = time.monotonic()
    with pytest.raises(zlog.StoreReadOnly, match="the store is read-only") as caught:
        WRITES[name](copy)
    assert time.monotonic() - began < 1
    assert not caught.value.retryable
    assert "without ?mode=ro" in caught.value.hint


@pytest.mark.parametrize("died_at", range(16))
def test_backup_during_layout_change_is_readable(
    original: zlog.Log, tmp_path: Path, died_at: int
) -> None:
    """The change died after so many operations: objects are sealed, and no view tells so."""
    dying = FaultyStore(original.store, dies_at(died_at))
    with contextlib.suppress(Died):
        zlog.Log.open(dying, "orders").reconfigure(width=2)
    shutil.copytree(tmp_path / "store", tmp_path / "backup")
    with zlog.connect(f"{(tmp_path / 'backup').as_uri()}?mode=ro") as store:
        log = zlog.Log.open(store, "orders", hole_timeout=0.05)
        assert log.tail() == 21
        items = [*log.read_range()]
        assert [item.data for item in items if isinstance(item, Entry)] == ENTRIES[:3] + ENTRIES[4:]


def test_writing_methods_are_refused(store: zlog.Store) -> None:
    looked_at = zlog.ReadOnlyStore(store)
    assert isinstance(looked_at, zlog.Store)
    for method in METHODS:
        code, _ = looked_at.execute("zlog.nothing", method, b"")
        assert (code == -errno.EROFS) == (method not in READING_METHODS), method


@pytest.mark.parametrize("tags", [None, ["kept"]])
async def test_follower_reports_hole_and_continues(
    store: zlog.Store, tags: list[str] | None
) -> None:
    async with zlog.aio.Log.create(store, "orders", width=2) as log:
        await log.append(b"0", tags=["kept"])
        await asyncio.to_thread(_write_behind_a_hole, store)
        async with zlog.aio.Log.open(zlog.ReadOnlyStore(store), "orders") as looked_at:
            seen: list[Entry | Gap] = []

            async def follow() -> None:
                async for item in looked_at.follow(tags=tags, hole_timeout=0.01):
                    seen.append(item)
                    if isinstance(item, Entry) and item.data == b"1":
                        return

            following = asyncio.create_task(follow())
            await log.append(b"1", tags=["kept"])
            await asyncio.wait_for(following, 20)
    (hole,) = [item for item in seen if isinstance(item, Gap)]
    assert (hole.kind, hole.position, hole.end) == (GapKind.UNWRITTEN, 1, 2)


def _write_behind_a_hole(store: zlog.Store) -> None:
    with zlog.Log.open(store, "orders") as log:
        assert leave_hole(log) == 1
        assert write_at(log, 2) == 0  # a log without a sequencer would use the hole else
