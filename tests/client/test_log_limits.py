"""The log's hole timeout and maximum entry size, which handles use unless they have their own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import zlog
from zlog import Gap, GapKind, Retention, aio
from zlog._io import drive
from zlog.limits import ENTRY_BYTES_MAX_DEFAULT, HOLE_TIMEOUT_SECONDS

from ..support.logs import leave_hole


def test_handle_uses_limits_of_log_unless_it_has_its_own(sequenced: zlog.Log) -> None:
    assert sequenced.hole_timeout == 0.05
    sequenced.reconfigure(hole_timeout=None, entry_bytes_max=4)
    with (
        zlog.Log.open(sequenced.store, "orders") as same,
        zlog.Log.open(sequenced.store, "orders", hole_timeout=0.01, entry_bytes_max=8) as own,
    ):
        for each in (sequenced, same):
            assert (each.hole_timeout, each.entry_bytes_max) == (None, 4)
            with pytest.raises(zlog.EntryTooLarge, match="at most 4"):
                each.append_once([b"12345"], producer="p", sequence=0)
        hole = leave_hole(sequenced)
        own.append(b"12345")
        same.set_retention(Retention(age=0))
        same.apply_retention()
        assert next(iter(same.read_range())) == Gap(hole, hole + 1, GapKind.UNWRITTEN)
        assert next(iter(own.read_range()))[:3] == (hole, hole + 1, GapKind.FILLED)


def test_changed_limit_reaches_open_writers(store: zlog.Store) -> None:
    async def appends_of_tasks() -> None:
        async with aio.Log.open(store, "orders") as log:
            await log.append(b"12345")
            await asyncio.to_thread(other.reconfigure, entry_bytes_max=4)
            await log.append(b"1234")
            with pytest.raises(zlog.EntryTooLarge):
                await log.append(b"12345")

    with zlog.Log.create(store, "orders") as log, zlog.Log.open(store, "orders") as other:
        asyncio.run(appends_of_tasks())
        log.append(b"1234")
        with pytest.raises(zlog.EntryTooLarge):
            log.append(b"12345")
        other.reconfigure(options={"entry_bytes_max": None})
        assert log.append(b"1234") == 3
        assert log.append(b"12345") == 4


def test_changed_hole_timeout_reaches_follower(sequenced: zlog.Log) -> None:
    async def follow() -> Gap:
        async with aio.Log.open(sequenced.store, "orders") as log:
            following = log.follow()
            assert (await anext(following)).position == 0
            waiting = asyncio.ensure_future(anext(following))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await asyncio.to_thread(sequenced.reconfigure, hole_timeout=0)
            found = await asyncio.wait_for(waiting, 20)
            assert isinstance(found, Gap)
            return found

    sequenced.reconfigure(hole_timeout=None)
    sequenced.append(b"first")
    hole = leave_hole(sequenced)
    sequenced.append(b"last")
    assert asyncio.run(follow())[:3] == (hole, hole + 1, GapKind.FILLED)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hole_timeout": -1}, "hole_timeout must be a number of seconds, 0 or more"),
        ({"entry_bytes_max": 0}, "entry_bytes_max must be 1 to 16777216"),
        ({"options": {"hole_timeout": "none"}}, "a number of 0 or more, or 'never', not 'none'"),
        ({"options": {"entry_bytes_max": "1M"}}, "option 'entry_bytes_max' must be 1 to 16777216"),
    ],
)
def test_invalid_limits_are_refused(memory: zlog.Store, given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        zlog.Log.create(memory, "orders", **given)
    with zlog.Log.create(memory, "orders") as log, pytest.raises(ValueError, match=message):
        log.reconfigure(**given)


def test_stored_limits_of_later_version_are_ignored(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders") as log:
        later = {"hole_timeout": "adaptive", "entry_bytes_max": str(32 << 20)}
        edit = log._client.layout.change(
            lambda view: replace(view, options=later), log._client.deadline()
        )
        drive(edit)
        assert log.hole_timeout == HOLE_TIMEOUT_SECONDS
        assert log.entry_bytes_max == ENTRY_BYTES_MAX_DEFAULT
