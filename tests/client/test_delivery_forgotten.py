"""What was said of a source that was forgotten does nothing to one that comes again by its name.

However late it comes: a request that a store carries out once more, or a process that was stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter

import pytest

import zlog
from zlog import aio, testing
from zlog.testing import AT_ONCE, Fate, StoreCall, run_virtually

from .delivering import ROWS, deliver, entries_in, shuffled
from .faulty import FaultyStore, at_method

pytestmark = [
    pytest.mark.usefixtures("small_rounds"),
    pytest.mark.parametrize("before", [None, 5], ids=["forgotten", "before-5"]),
]

LATE = 60.0


def say_done(store: zlog.Store, before: int | None) -> None:
    with zlog.Log.open(store, "orders") as log:
        if before is None:
            log.forget_source("query")
        else:
            log.deliveries_done("query", before=before)


def comes_again(store: zlog.Store, number: int) -> zlog.Store:
    """A store that does the delivery_done of this number at once, and much later once more."""
    calls = itertools.count()

    def fate(call: StoreCall) -> Fate:
        late = call.method == "delivery_done" and next(calls) == number
        return Fate(again=LATE) if late else AT_ONCE

    return testing.FaultyStore(store, fate)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_request_that_comes_again_does_nothing(
    memory: zlog.Store, number: int, known: bool, before: int | None
) -> None:
    zlog.Log.create(memory, "orders", width=3)
    if known:
        deliver(memory)
    appended = len(entries_in(memory))

    async def work() -> None:
        log = await aio.Log.open(memory, "orders")
        cut_off = await aio.Log.open(comes_again(memory, number), "orders")
        async with log, cut_off:
            with contextlib.suppress(zlog.StoreTimeout):
                if before is None:
                    await cut_off.forget_source("query", timeout=1)
                else:
                    await cut_off.deliveries_done("query", before=before, timeout=1)
            await log.forget_source("query")
            assert await log.deliver(ROWS, source="query", batch=1) == len(ROWS)
            await asyncio.sleep(2 * LATE)
            assert await log.deliver(shuffled(1), source="query", batch=1) == 0

    run_virtually(work())
    assert len(entries_in(memory)) == appended + len(ROWS)


def test_one_that_was_stopped_before_it_says_so_does_nothing(
    memory: zlog.Store, before: int | None
) -> None:
    """It has seen a source that was forgotten since, and has come again."""
    zlog.Log.create(memory, "orders", width=3)
    deliver(memory)

    def come_again() -> None:
        zlog.Log.open(memory, "orders").forget_source("query")
        assert deliver(memory) == len(ROWS)

    stopped = FaultyStore(memory, at_method("delivery_done", come_again, 2))
    say_done(stopped, before)
    assert deliver(memory) == 0
    assert Counter(entries_in(memory)) == Counter([*ROWS, *ROWS])


def test_sources_may_come_meanwhile(memory: zlog.Store, before: int | None) -> None:
    """Others, or this one, so that it is not the next one any more."""
    log = zlog.Log.create(memory, "orders", width=3)
    others = iter(["a", "b", "query", "c"])

    def come() -> None:
        log.deliver([b"x"], source=next(others), batch=0)

    busy = FaultyStore(memory, lambda _, method: come() if method == "delivery_done" else None)
    say_done(busy, before)
    found = {each.name: each.batch for each in log.sources()}
    assert found.get("query") == before
