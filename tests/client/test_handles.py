"""Handles on a log: closed ones, their looks, and arguments of the wrong type."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import zlog
from zlog import aio

from .faulty import WithoutSequencer

Use = Callable[[zlog.Log], object]

USES: dict[str, Use] = {
    "append": lambda log: log.append(b"late"),
    "append_many": lambda log: log.append_many([b"late", b"too late"]),
    "read": lambda log: log.read(0),
    "read_range": lambda log: [*log.read_range()],
    "follow": lambda log: next(iter(log.follow())),
    "fill": lambda log: log.fill(0),
    "trim": lambda log: log.trim(0),
    "trim_to": lambda log: log.trim_to(1),
    "tail": lambda log: log.tail(),
    "tail, unchecked": lambda log: log.tail(checked=False),
    "stat": lambda log: log.stat(),
    "views": lambda log: log.views(),
    "check": lambda log: [*log.check()],
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("shared", [True, False])
def test_a_closed_log_is_of_no_use(memory: zlog.Store, use: str, shared: bool) -> None:
    store = memory if shared else WithoutSequencer(memory)
    with zlog.Log.create(store, "orders", width=2) as log:
        log.append_many([b"first", b"second"])
    log.close()
    with pytest.raises(zlog.StoreUnavailable, match="the log 'orders' is closed; open it again"):
        USES[use](log)
    log.close()
    with zlog.Log.open(store, "orders") as again:
        assert again.read(0).data == b"first"


@pytest.mark.parametrize(
    "use",
    [
        lambda log: log.append(b"late"),
        lambda log: log.append(b"late", timeout=1),
        lambda log: anext(log.follow()),
        lambda log: log.tail(),
    ],
)
async def test_a_closed_log_of_asyncio(
    memory: zlog.Store, use: Callable[[aio.Log], Awaitable[object]]
) -> None:
    async with await aio.Log.create(memory, "orders", width=2) as log:
        await log.append(b"first")
    await log.close()
    with pytest.raises(zlog.StoreUnavailable, match="the log 'orders' is closed; open it again"):
        await asyncio.wait_for(use(log), 5)


@pytest.mark.parametrize("use", USES)
def test_a_closed_store_stays_closed(store: zlog.Store, use: str) -> None:
    with zlog.Log.create(store, "orders", width=2) as log:
        store.close()
        with pytest.raises(
            zlog.StoreUnavailable, match=f"{re.escape(store.url)} is closed"
        ) as told:
            USES[use](log)
        assert not told.value.retryable


def test_no_time_at_all_is_no_reason_to_start_a_sequencer(store: zlog.Store) -> None:
    with (
        zlog.Log.create(store, "orders", width=2) as log,
        pytest.raises(zlog.SequencerTimeout, match="before a position was granted") as told,
    ):
        log.append(b"late", timeout=0)
    assert told.value.hint.startswith("Nothing was written; give the call more time")


async def test_what_handles_look_like(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=2) as log:
        assert repr(log) == "<zlog.Log 'orders' in mem://>"
        view = repr(log.view)
        assert f"log_id=0x{log.view.log_id:016x}" in view
        assert "start=0, end=open, width=2, unit=1)" in view
        assert "options={}" in view
    async with await aio.Log.open(memory, "orders") as opened:
        assert repr(opened) == "<zlog.aio.Log 'orders' in mem://>"
        for handle in (log, opened):
            for duplicate in (pickle.dumps, copy.copy):
                with pytest.raises(TypeError, match="open 'orders' in the other process"):
                    duplicate(handle)


@pytest.mark.parametrize("wrong", [None, "text", 7, [b"data"], object()])
async def test_an_entry_is_bytes(memory: zlog.Store, wrong: Any) -> None:
    with zlog.Log.create(memory, "orders") as log:
        for use in (lambda: log.append(wrong), lambda: log.append_many([b"good", wrong])):
            with pytest.raises(TypeError, match="an entry is b"):
                use()
        assert log.tail() == 0
    async with await aio.Log.open(memory, "orders") as opened:
        with pytest.raises(TypeError, match="an entry is b"):
            await opened.append(wrong)


@pytest.mark.parametrize("wrong", [b"abc", bytearray(b"abc"), memoryview(b"abc"), "abc", None, 7])
async def test_entries_are_a_list(memory: zlog.Store, wrong: Any) -> None:
    expected = "append_many takes a list of entries, each of bytes, not"
    with zlog.Log.create(memory, "orders") as log, pytest.raises(TypeError, match=expected):
        log.append_many(wrong)
    async with await aio.Log.open(memory, "orders") as opened:
        with pytest.raises(TypeError, match=expected):
            await opened.append_many(wrong)


@pytest.mark.parametrize("wrong", ["x", None, 1.0, b"0"])
def test_a_position_is_an_int(memory: zlog.Store, wrong: Any) -> None:
    uses: list[Use] = [
        lambda log: log.read(wrong),
        lambda log: next(log.read_range(wrong)),
        lambda log: next(log.follow(wrong)),
        lambda log: log.fill(wrong),
        lambda log: log.trim(wrong),
        lambda log: log.trim_to(wrong),
    ]
    with zlog.Log.create(memory, "orders") as log:
        log.append(b"first")
        if wrong is not None:  # as an end that means: up to the tail
            uses.append(lambda log: next(log.read_range(0, wrong)))
        for use in uses:
            with pytest.raises(TypeError, match="a position is an int"):
                use(log)


async def test_a_store_is_a_store_and_a_name_a_word(memory: zlog.Store) -> None:
    stores: list[Any] = ["mem://", None]
    names: list[Any] = [5, None, b"orders"]
    calls = [(store, "orders", "zlog.connect") for store in stores]
    calls += [(memory, name, "the name of a log is a str") for name in names]
    for store, name, expected in calls:
        for use in (zlog.Log.open, zlog.Log.create, zlog.Log.remove):
            with pytest.raises(TypeError, match=expected):
                use(store, name)
        for start in (aio.Log.open, aio.Log.create, aio.Log.remove):
            with pytest.raises(TypeError, match=expected):
                await start(store, name)
