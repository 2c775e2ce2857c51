"""What is refused, when, and in which words: bad arguments, closed handles, damaged stores."""

from __future__ import annotations

import asyncio
import copy
import math
import pickle
import re
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

import zlog
from zlog import aio
from zlog._native import messages

from ..support.logs import after_first_grant
from .faulty import FaultyStore, WithoutSequencer


def test_entry_size_is_measured_in_bytes(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2, entry_bytes_max=8)
    words = memoryview(bytes(16)).cast("Q")
    with pytest.raises(zlog.EntryTooLarge, match="16 bytes"):
        log.append(words)  # type: ignore[arg-type]
    backwards = memoryview(b"abcd")[::-1]
    assert log.read(log.append(backwards)).data == b"dcba"  # type: ignore[arg-type]
    assert log.read(log.append(bytearray(b"x"))).data == b"x"  # type: ignore[arg-type]


def test_entry_is_copied_when_call_begins(memory: zlog.Store) -> None:
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


@pytest.mark.parametrize("seconds", [-1, -0.001, math.nan])
@pytest.mark.parametrize("setting", ["timeout", "hole_timeout", "sequencer_timeout"])
def test_handles_refuse_negative_time_outs(
    memory: zlog.Store, setting: str, seconds: float
) -> None:
    settings: dict[str, Any] = {setting: seconds}
    words = rf"^{setting} must be a number of seconds, 0 or more, not {seconds}$"
    with pytest.raises(ValueError, match=words):
        zlog.Log.create(memory, "orders", **settings)
    assert zlog.Log.list(memory) == []
    zlog.Log.create(memory, "orders")
    with pytest.raises(ValueError, match=words):
        zlog.Log.open(memory, "orders", **settings)


@pytest.mark.parametrize("seconds", [-1, math.nan])
def test_calls_refuse_negative_time_outs(memory: zlog.Store, seconds: float) -> None:
    log = zlog.Log.create(memory, "orders")
    calls: list[Callable[[], object]] = [
        lambda: zlog.Log.list(memory, timeout=seconds),
        lambda: zlog.Log.remove(memory, "orders", timeout=seconds),
        lambda: log.append(b"x", timeout=seconds),
        lambda: log.append_many([b"x"], timeout=seconds),
        lambda: log.append_once([b"x"], producer="s", sequence=0, timeout=seconds),
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


def test_infinite_timeout_is_no_limit(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", timeout=math.inf, hole_timeout=math.inf) as log:
        assert log.append(b"x", timeout=1e300) == 0
        assert [item.position for item in log.read_range()] == [0]


def test_non_numeric_settings_are_refused(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders").append(b"first")
    for setting in ("timeout", "hole_timeout", "sequencer_timeout"):
        with pytest.raises(
            TypeError, match=f"^{setting} must be a number of seconds( or None)?, not '5'"
        ):
            zlog.Log.open(memory, "orders", **cast(Any, {setting: "5"}))
    with pytest.raises(TypeError, match="entry_bytes_max must be an int, not '1M'"):
        zlog.Log.open(memory, "orders", entry_bytes_max=cast(Any, "1M"))
    with pytest.raises(TypeError, match="a time-out must be a number of seconds or None, not '5'"):
        zlog.Log.open(memory, "orders").read(0, timeout=cast(Any, "5"))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"width": "8"}, TypeError, "a width must be an int, not '8'"),
        ({"entry_bytes_max": 0}, ValueError, "entry_bytes_max"),
        ({"entry_bytes_max": (16 << 20) + 1}, ValueError, "entry_bytes_max"),
        ({"options": {"team": 1}}, TypeError, "option keys and values must be strings"),
        ({"options": {1: "team"}}, TypeError, "option keys and values must be strings"),
        ({"options": {"": "x"}}, ValueError, "option"),
        ({"options": {"k" * 129: "x"}}, ValueError, "option"),
        ({"options": {"k": "v" * 4097}}, ValueError, "option"),
        (
            {"sequencer_timeout": None},
            TypeError,
            "^sequencer_timeout must be a number of seconds, not",
        ),
    ],
)
def test_invalid_settings_create_no_log(
    memory: zlog.Store, settings: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        zlog.Log.create(memory, "orders", **settings)
    assert memory.execute("zlog.orders.head", "epoch_read", messages.epoch_read())[0] < 0


def test_object_of_other_kind_as_head_is_reported(memory: zlog.Store) -> None:
    """An object of another kind under the head's name is reported, not waited for."""
    entry = messages.directory_add("orders", 1)
    assert memory.execute("zlog.orders.head", "directory_add", entry)[0] == 0
    began = time.monotonic()
    with pytest.raises(zlog.CorruptEntry, match=r"zlog\.orders\.head is not the head of a log"):
        zlog.Log.create(memory, "orders")
    assert time.monotonic() - began > 0.1, "it asked again without a pause"


def test_create_fails_when_sequencer_is_full(memory: zlog.Store) -> None:
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


async def test_close_ends_pending_calls(memory: zlog.Store) -> None:
    """Their replies would not come any more. Whether they took effect is open."""
    log = await aio.Log.create(memory, "orders", width=2)
    calls = [asyncio.create_task(log.append_many([b"%d" % i])) for i in range(5)]
    await asyncio.sleep(0)
    await log.close()
    results = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
    assert all(isinstance(each, zlog.StoreTimeout) for each in results)


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
def test_a_closed_log_refuses_calls(memory: zlog.Store, use: str, shared: bool) -> None:
    store = memory if shared else WithoutSequencer(memory)
    with zlog.Log.create(store, "orders", width=2) as log:
        log.append_many([b"first", b"second"])
    log.close()
    with pytest.raises(zlog.StoreUnavailable, match="the log 'orders' is closed; open it again"):
        USES[use](log)
    log.close()
    with zlog.Log.open(store, "orders") as again:
        assert again.read(0).data == b"first"


async def test_closed_asyncio_log_refuses_calls(memory: zlog.Store) -> None:
    async with await aio.Log.create(memory, "orders", width=2) as log:
        await log.append(b"first")
    await log.close()
    message = "the log 'orders' is closed; open it again"
    for late in (log.append(b"x"), log.append(b"x", timeout=1), anext(log.follow()), log.tail()):
        with pytest.raises(zlog.StoreUnavailable, match=message):
            await asyncio.wait_for(late, 5)


@pytest.mark.parametrize("use", USES)
def test_closed_store_refuses_calls(store: zlog.Store, use: str) -> None:
    with zlog.Log.create(store, "orders", width=2) as log:
        store.close()
        with pytest.raises(
            zlog.StoreUnavailable, match=f"{re.escape(store.url)} is closed"
        ) as told:
            USES[use](log)
        assert not told.value.retryable


def test_a_time_out_of_0_does_not_suggest_a_sequencer(store: zlog.Store) -> None:
    with (
        zlog.Log.create(store, "orders", width=2) as log,
        pytest.raises(zlog.SequencerTimeout, match="no position was granted in time") as told,
    ):
        log.append(b"late", timeout=0)
    assert told.value.hint.startswith("Nothing was written. Give the call more time")


async def test_handles_have_readable_repr(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=2) as log:
        assert repr(log) == "<zlog.Log 'orders' in mem://>"
        view = repr(log.view)
        assert f"log_id=0x{log.view.log_id:016x}" in view
        assert "start=0, end=open, width=2, stripe_unit=1)" in view
        assert "options={}" in view
    async with await aio.Log.open(memory, "orders") as opened:
        assert repr(opened) == "<zlog.aio.Log 'orders' in mem://>"
        for handle in (log, opened):
            for duplicate in (pickle.dumps, copy.copy):
                with pytest.raises(TypeError, match="open 'orders' in the other process"):
                    duplicate(handle)


@pytest.mark.parametrize(
    ("message", "values", "uses"),
    [
        (
            "an entry must be b",
            [None, "text", 7, [b"data"]],
            [
                lambda log, wrong: log.append(wrong),
                lambda log, wrong: log.append_many([b"a", wrong]),
            ],
        ),
        (
            "append_many takes a list of bytes objects, not",
            [b"abc", bytearray(b"abc"), memoryview(b"abc"), "abc", None, 7],
            [lambda log, wrong: log.append_many(wrong)],
        ),
        (
            "a position must be an int",
            ["x", None, 1.0, b"0"],
            [
                lambda log, wrong: log.read(wrong),
                lambda log, wrong: next(log.read_range(wrong)),
                lambda log, wrong: next(log.read_range(0, wrong or 0.0)),
                lambda log, wrong: next(log.follow(wrong)),
                lambda log, wrong: log.fill(wrong),
                lambda log, wrong: log.trim(wrong),
                lambda log, wrong: log.trim_to(wrong),
            ],
        ),
    ],
)
def test_arguments_of_other_types_are_refused(
    memory: zlog.Store, message: str, values: list[object], uses: list[Callable[..., object]]
) -> None:
    with zlog.Log.create(memory, "orders") as log:
        log.append(b"first")
        for wrong in values:
            for use in uses:
                with pytest.raises(TypeError, match=message):
                    use(log, wrong)
        assert log.tail() == 1


async def test_stores_and_names_are_type_checked(memory: zlog.Store) -> None:
    opening = aio.connect("mem://")
    stores: list[Any] = ["mem://", None]
    names: list[Any] = [5, None, b"orders"]
    calls: list[Any] = [(store, "orders", "zlog.connect") for store in stores]
    calls += [(memory, name, "the name of a log must be a str") for name in names]
    calls += [(opening, "orders", "await it")]
    for store, name, expected in calls:
        for use in (zlog.Log.open, zlog.Log.create, zlog.Log.remove):
            with pytest.raises(TypeError, match=expected):
                use(store, name)
        for start in (aio.Log.open, aio.Log.create, aio.Log.remove):
            with pytest.raises(TypeError, match=expected):
                await start(store, name)
    (await opening).close()
