"""A store that can't be changed through the handle on it: to look at a log has no effect."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import pytest

import zlog
import zlog.aio
from zlog import Entry, Gap, GapKind
from zlog._base.codes import READING_METHODS

from ..conformance.messages import METHODS
from ..support.logs import leave_hole, write_at


def test_every_other_method_is_refused(store: zlog.Store) -> None:
    looked_at = zlog.ReadOnlyStore(store)
    assert isinstance(looked_at, zlog.Store)
    for method in METHODS:
        code, _ = looked_at.execute("zlog.nothing", method, b"")
        assert (code == -errno.EROFS) == (method not in READING_METHODS), method


def test_reading_methods_change_nothing_on_any_host() -> None:
    """What the table of the class calls so, its hosts hold to: such a method can't write."""
    assert {"read", "verify", "max_position", "view_read", "count"} <= READING_METHODS < {*METHODS}
    assert not {"seal", "write", "fill", "trim", "tail_raise", "epoch_next"} & READING_METHODS


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.append(b"x"),
        lambda log: log.trim(0),
        lambda log: log.trim_to(2),
        lambda log: log.fill(3),
        lambda log: log.reconfigure(width=3),
        lambda log: log.roll(),
        lambda log: log.read_only(),
        lambda log: log.cursor("billing", create=0),
        lambda log: log.set_retention(zlog.Retention(entries=5)),
        lambda log: log.writer(),
        lambda log: zlog.Log.remove(log.store, log.name),
        lambda log: zlog.Log.create(log.store, "another"),
        lambda log: log.store.compact(),
    ],
)
def test_changes_are_refused(store: zlog.Store, change: Callable[[zlog.Log], object]) -> None:
    with zlog.Log.create(store, "orders", width=2) as log:
        log.append_many([b"a", b"b", b"c"])
        leave_hole(log)
        assert write_at(log, 4) == 0  # a log without a sequencer would use the hole else
        with (
            zlog.Log.open(zlog.ReadOnlyStore(store), "orders", timeout=5) as looked_at,
            pytest.raises(zlog.StoreReadOnly),
        ):
            change(looked_at)
        assert log.append(b"f") == 5
        assert len(log.views()) == 1
        assert zlog.Log.list(store) == ["orders"]


def test_holes_are_reported_and_stay(store: zlog.Store) -> None:
    with zlog.Log.create(store, "orders", width=2, unit=1) as log:
        log.append(b"a")
        leave_hole(log)
        assert write_at(log, 2) == 0
        with zlog.Log.open(zlog.ReadOnlyStore(store), "orders") as looked_at:
            items = [*looked_at.read_range(hole_timeout=0)]
            assert items[1][:3] == (1, 2, GapKind.UNWRITTEN)
            assert isinstance(items[0], Entry)
            assert isinstance(items[2], Entry)
        assert isinstance([*log.read_range(hole_timeout=0.01)][1], Gap)


@pytest.mark.parametrize("tags", [None, ["kept"]])
async def test_a_follower_tells_of_a_hole_and_goes_on(
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


async def test_it_follows_what_is_written(store: zlog.Store) -> None:
    async with zlog.aio.Log.create(store, "orders", width=2) as log:
        await log.append(b"0")
        async with zlog.aio.Log.open(zlog.ReadOnlyStore(store), "orders") as looked_at:
            seen: list[bytes] = []

            async def follow() -> None:
                async for item in looked_at.follow():
                    assert isinstance(item, Entry)
                    seen.append(item.data)
                    if len(seen) == 3:
                        return

            following = asyncio.create_task(follow())
            await log.append(b"1")
            await log.append(b"2")
            await asyncio.wait_for(following, 20)
            assert seen == [b"0", b"1", b"2"]
            assert await looked_at.tail() == 3
            assert await looked_at.find_time(0) == 0
