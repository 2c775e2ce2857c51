"""Time-outs: seconds, None for no limit, and the handle's own where a call is given none."""

from __future__ import annotations

import pytest

import zlog
from zlog import aio
from zlog.store import RequestPayload
from zlog.testing import AT_ONCE, Fate, FaultyStore, run_virtually

from .faulty import WithoutSequencer


class Asked(WithoutSequencer):
    """Notes how long it was given for each operation."""

    def __init__(self, store: zlog.Store) -> None:
        super().__init__(store)
        self.seconds: list[float | None] = []

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        self.seconds.append(timeout)
        return super().execute(object, method, payload, timeout)


def test_none_is_no_limit_and_what_is_not_given_is_the_handles_own(memory: zlog.Store) -> None:
    store = Asked(memory)
    with zlog.Log.create(store, "orders", width=1, timeout=7) as log:
        for timeout, most in [(..., 7.0), (2.0, 2.0), (None, None)]:
            store.seconds.clear()
            log.tail(timeout=timeout)
            log.cursor("reader", create="earliest", timeout=timeout).state(timeout=timeout)
            log.deliver([b"x"], source="crm", batch=1, timeout=timeout)
            assert len(store.seconds) > 5
            if most is None:
                assert set(store.seconds) == {None}
            else:
                assert all(each is not None and most - 1 < each <= most for each in store.seconds)


def test_the_same_for_asyncio(memory: zlog.Store) -> None:
    store = FaultyStore(memory)

    async def work() -> None:
        async with aio.Log.create(store, "orders", timeout=1) as log:
            store.plan = lambda _: Fate(20, 20)
            for timeout in (..., 2.0):
                for call in (log.tail(timeout=timeout), log.append(b"late", timeout=timeout)):
                    with pytest.raises(zlog.StoreTimeout):
                        await call
            assert await log.append(b"x", timeout=None) < await log.tail(timeout=None)

    run_virtually(work())


def test_a_hole_is_never_filled_where_its_time_never_comes(memory: zlog.Store) -> None:
    store = FaultyStore(memory)
    with zlog.Log.create(store, "orders", width=2, hole_timeout=0) as log:
        store.plan = lambda call: Fate(None, None) if call.method == "write" else AT_ONCE
        with pytest.raises(zlog.StoreTimeout):
            log.append(b"lost")
        store.plan = lambda _: AT_ONCE
        for timeout, kind in [(None, "unwritten"), (..., "filled")]:
            (gap,) = log.read_range(hole_timeout=timeout)
            assert isinstance(gap, zlog.Gap)
            assert gap.kind.value == kind
