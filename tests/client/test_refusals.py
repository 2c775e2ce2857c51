"""What is refused, when, and in which words: bad arguments, closed handles, damaged stores."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

import zlog
from zlog import aio
from zlog._native import messages

from ..support.logs import after_first_grant
from .faulty import FaultyStore, at_method


def test_an_entry_is_measured_in_bytes(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2, entry_bytes_max=8)
    words = memoryview(bytes(16)).cast("Q")
    with pytest.raises(zlog.EntryTooLarge, match="16 bytes"):
        log.append(words)  # type: ignore[arg-type]
    backwards = memoryview(b"abcd")[::-1]
    assert log.read(log.append(backwards)).data == b"dcba"  # type: ignore[arg-type]
    assert log.read(log.append(bytearray(b"x"))).data == b"x"  # type: ignore[arg-type]


def test_an_entry_is_what_it_was_when_the_call_began(memory: zlog.Store) -> None:
    """A buffer that changes between two attempts must not change the entry."""
    buffer = bytearray(b"before")

    def fault(_: int, method: str) -> None:
        if method == "write":
            buffer[:] = b"after!"

    zlog.Log.create(memory, "orders", width=2)
    log = zlog.Log.open(FaultyStore(memory, fault), "orders")
    after_first_grant(log, zlog.Log.open(memory, "orders").fill)  # so that there is a second one
    assert log.append(buffer) == 1  # type: ignore[arg-type]
    assert log.read(1).data == b"before"


@pytest.mark.parametrize("limit", [0, -1, (16 << 20) + 1])
def test_a_limit_that_the_class_does_not_know(memory: zlog.Store, limit: int) -> None:
    with pytest.raises(ValueError, match="entry_bytes_max"):
        zlog.Log.create(memory, "orders", entry_bytes_max=limit)
    assert zlog.Log.list(memory) == []


@pytest.mark.parametrize("seconds", [-1, -0.001, math.nan])
@pytest.mark.parametrize("setting", ["timeout", "hole_timeout", "sequencer_timeout"])
def test_a_handle_takes_no_negative_time_out(
    memory: zlog.Store, setting: str, seconds: float
) -> None:
    settings: dict[str, Any] = {setting: seconds}
    words = rf"^{setting} is a number of seconds, 0 or more, not {seconds}$"
    with pytest.raises(ValueError, match=words):
        zlog.Log.create(memory, "orders", **settings)
    assert zlog.Log.list(memory) == []

    async def refuse() -> None:
        with pytest.raises(ValueError, match=words):
            await aio.Log.create(memory, "orders", **settings)
        await aio.Log.create(memory, "orders")
        with pytest.raises(ValueError, match=words):
            await aio.Log.open(memory, "orders", **settings)

    asyncio.run(refuse())
    with pytest.raises(ValueError, match=words):
        zlog.Log.open(memory, "orders", **settings)


def test_a_sequencer_has_a_time_to_be_out_of_reach(memory: zlog.Store) -> None:
    """Endless patience with it is `math.inf`; None would mean the same elsewhere, and not here."""
    words = "^sequencer_timeout is a number of seconds, not None$"
    for call in (zlog.Log.create, zlog.Log.open):
        with pytest.raises(TypeError, match=words):
            call(memory, "orders", sequencer_timeout=cast(Any, None))
    assert zlog.Log.list(memory) == []


@pytest.mark.parametrize("seconds", [-1, math.nan])
def test_a_call_takes_no_negative_time_out(memory: zlog.Store, seconds: float) -> None:
    log = zlog.Log.create(memory, "orders")
    calls: list[Callable[[], object]] = [
        lambda: zlog.Log.list(memory, timeout=seconds),
        lambda: zlog.Log.remove(memory, "orders", timeout=seconds),
        lambda: log.append(b"x", timeout=seconds),
        lambda: log.append_many([b"x"], timeout=seconds),
        lambda: log.deliver([b"x"], source="s", batch=0, timeout=seconds),
        lambda: log.read(0, timeout=seconds),
        lambda: log.tail(timeout=seconds),
        lambda: log.stat(timeout=seconds),
        lambda: log.cursor("c", create=0, timeout=seconds),
        lambda: log.trim_to(0, timeout=seconds),
        lambda: log.read_range(hole_timeout=seconds),
        lambda: log.read_columns(hole_timeout=seconds),
        lambda: log.follow(hole_timeout=seconds),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="0 or more"):
            call()
    assert log.tail() == 0

    async def refuse() -> None:
        async with await aio.Log.open(memory, "orders") as opened:
            with pytest.raises(ValueError, match="0 or more"):
                await opened.append(b"x", timeout=seconds)
            with pytest.raises(ValueError, match="0 or more"):
                _ = [item async for item in opened.read_range(hole_timeout=seconds)]

    asyncio.run(refuse())


def test_a_time_out_without_end_is_none(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", timeout=math.inf, hole_timeout=math.inf) as log:
        assert log.append(b"x", timeout=1e300) == 0
        assert [item.position for item in log.read_range()] == [0]


@pytest.mark.parametrize("options", [{"": "x"}, {"k" * 129: "x"}, {"k": "v" * 4097}])
def test_options_that_can_not_be(memory: zlog.Store, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="option"):
        zlog.Log.create(memory, "orders", options=options)
    assert memory.execute("zlog.orders.head", "epoch_read", messages.epoch_read())[0] < 0


def test_settings_are_numbers(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders").append(b"first")
    for setting in ("timeout", "hole_timeout", "sequencer_timeout"):
        with pytest.raises(
            TypeError, match=f"^{setting} is a number of seconds( or None)?, not '5'"
        ):
            zlog.Log.open(memory, "orders", **cast(Any, {setting: "5"}))
    with pytest.raises(TypeError, match="entry_bytes_max is an int, not '1M'"):
        zlog.Log.open(memory, "orders", entry_bytes_max=cast(Any, "1M"))
    with pytest.raises(TypeError, match="a time-out is a number of seconds or None, not '5'"):
        zlog.Log.open(memory, "orders").read(0, timeout=cast(Any, "5"))


@pytest.mark.parametrize("options", [{"team": 1}, {1: "team"}])
def test_options_are_text(memory: zlog.Store, options: Any) -> None:
    with pytest.raises(TypeError, match="options are text"):
        zlog.Log.create(memory, "orders", options=options)
    assert zlog.Log.list(memory) == []


def test_a_width_is_an_int(memory: zlog.Store) -> None:
    wrong: Any = "8"
    with pytest.raises(TypeError, match="a width is an int, not '8'"):
        zlog.Log.create(memory, "orders", width=wrong)
    assert zlog.Log.list(memory) == []


def test_a_head_that_is_something_else(memory: zlog.Store) -> None:
    """An object of another kind under the head's name is reported, not waited for."""
    entry = messages.directory_add("orders", 1)
    assert memory.execute("zlog.orders.head", "directory_add", entry)[0] == 0
    began = time.monotonic()
    with pytest.raises(zlog.CorruptEntry, match=r"zlog\.orders\.head is no head"):
        zlog.Log.create(memory, "orders")
    assert time.monotonic() - began > 0.1, "it asked again without a pause"


def test_a_store_whose_sequencer_has_no_room_takes_no_further_log(memory: zlog.Store) -> None:
    """A log to which no client could append is not left behind."""
    shared = memory.sequencer()
    assert shared is not None
    for log_id in range(1, 1025):
        shared.activate(log_id, 1, 0)
    with pytest.raises(zlog.SequencerUnavailable, match="1024 logs") as caught:
        zlog.Log.create(memory, "orders")
    assert "Remove logs" in caught.value.hint
    assert zlog.Log.list(memory) == []
    shared.release(7)
    assert zlog.Log.create(memory, "orders").append(b"first") == 0


async def test_closing_a_handle_ends_its_calls(memory: zlog.Store) -> None:
    """Their replies would not come any more. Whether they took effect is open."""
    log = await aio.Log.create(memory, "orders", width=2)
    calls = [asyncio.create_task(log.append_many([b"%d" % i])) for i in range(5)]
    await asyncio.sleep(0)
    await log.close()
    results = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
    assert all(isinstance(each, zlog.StoreTimeout) for each in results)


def test_a_call_inside_a_call_takes_no_replies_away(memory: zlog.Store) -> None:
    """As from a signal handler, which runs in the thread that waits."""
    zlog.Log.create(memory, "orders", width=4)
    inner: list[list[int]] = []
    fault = at_method("write", lambda: inner.append(log.append_many([b"inner"] * 8)), 3)
    log = zlog.Log.open(FaultyStore(memory, fault), "orders", timeout=5)
    outer = log.append_many([b"outer"] * 8)
    assert outer == list(range(8))
    assert inner == [list(range(8, 16))]


async def test_an_opening_that_was_not_awaited_is_no_store() -> None:
    opening = aio.connect("mem://")
    with pytest.raises(TypeError, match="await it"):
        await aio.Log.list(cast(Any, opening))
    (await opening).close()


def test_an_age_is_a_number() -> None:
    with pytest.raises(ValueError, match=r"a number of seconds up to 2\^53, not '7d'"):
        zlog.Retention(age=cast(Any, "7d"))
