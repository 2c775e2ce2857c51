"""Time-outs: their values, what is given up then, and what is said of a full store."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Sequence

import pytest

import zlog
import zlog.aio
from zlog._base.deadline import Deadline
from zlog._base.io import TIMED_OUT, Call, Reply
from zlog._base.monitor import full_pool
from zlog._io import AsyncioIo, BlockingIo, drive
from zlog._native.completions import CompletionQueue
from zlog._native.local import MemoryStore
from zlog.store import RequestPayload
from zlog.testing import Fate

from .faulty import Refusing, WithoutSequencer


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


def test_timeout_defaults_to_handle_and_none_disables(memory: zlog.Store) -> None:
    store = Asked(memory)
    with zlog.Log.create(store, "orders", width=1, timeout=7) as log:
        for timeout, most in [(..., 7.0), (2.0, 2.0), (None, None)]:
            store.seconds.clear()
            log.tail(timeout=timeout)
            log.cursor("reader", create="earliest", timeout=timeout).state(timeout=timeout)
            log.append_once([b"x"], producer="crm", sequence=1, timeout=timeout)
            assert len(store.seconds) > 5
            if most is None:
                assert set(store.seconds) == {None}
            else:
                assert all(each is not None and most - 1 < each <= most for each in store.seconds)


CALLS = [Call(name, "stat", b"") for name in ("answered", "silent")]


class Silent(MemoryStore):
    """A store that carries nothing out, and answers for some objects only."""

    def __init__(self) -> None:
        self.given_up = 0

    def submit(  # type: ignore[override]  # a stand-in
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, bytes]]
    ) -> Silent:
        for number, (name, _, _) in enumerate(calls, token):
            if name == "answered":
                queue.put(number, 0, b"done")
        return self

    def give_up(self) -> None:
        self.given_up += 1


@pytest.fixture
def store() -> Silent:
    return Silent()


def test_thread_abandons_call_after_timeout(store: Silent) -> None:
    replies = drive(BlockingIo(store).execute(CALLS, Deadline(0.05)))
    assert replies == [Reply(0, b"done"), TIMED_OUT]
    assert store.given_up == 1


async def test_task_abandons_call_after_timeout(store: Silent) -> None:
    io = AsyncioIo(store)
    assert await io.execute(CALLS, Deadline(0.05)) == [Reply(0, b"done"), TIMED_OUT]
    assert store.given_up == 1
    await io.close()


async def test_cancelled_task_abandons_call(store: Silent) -> None:
    io = AsyncioIo(store)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(io.execute(CALLS, Deadline(None)), 0.05)
    assert store.given_up == 1
    await io.close()


def test_answered_calls_are_not_abandoned(store: Silent) -> None:
    async def ask() -> None:
        io = AsyncioIo(store)
        await io.execute(CALLS[:1], Deadline(5))
        await io.close()

    asyncio.run(ask())
    drive(BlockingIo(store).start(CALLS[:1]).finish(Deadline(5)))
    assert store.given_up == 0


def health(*messages: str) -> dict[str, object]:
    detail = [{"message": message} for message in messages]
    return {"status": "HEALTH_ERR", "checks": {"POOL_FULL": {"detail": detail}}}


class FullStore(Refusing):
    """Takes no entries, and has a monitor that knows why."""

    def __init__(self, store: zlog.Store, answer: tuple[int, bytes]) -> None:
        super().__init__(store, "write", refusal=Fate(effect=None, error=errno.ETIMEDOUT))
        self.pool = "logs"
        self._answer = answer

    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> None:
        assert json.loads(command) == {"prefix": "health", "detail": "detail", "format": "json"}
        queue.put(token, *self._answer)


OTHER_FULL = health("pool 'other' is full (no space)")
FULL = health("pool 'other' is full (no space)", "pool 'logs' is full (running out of quota)")


def test_full_store_is_reported_in_timeout(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders")
    log = zlog.Log.open(FullStore(memory, (0, json.dumps(FULL).encode())), "orders")
    with pytest.raises(zlog.StoreTimeout, match=r"pool 'logs' is full \(running out") as raised:
        log.append(b"x")
    assert "zlog trim" in raised.value.hint
    assert raised.value.positions == (None,)


@pytest.mark.parametrize(
    "answer",
    [
        (0, json.dumps(OTHER_FULL).encode()),
        (0, b'{"status": "HEALTH_OK", "checks": {}}'),
        (0, b"\xff"),
        (0, b"[]"),
        (-errno.ETIMEDOUT, b""),
        (-errno.EOPNOTSUPP, b""),
    ],
)
def test_timeout_without_known_reason_stays_plain(
    memory: zlog.Store, answer: tuple[int, bytes]
) -> None:
    zlog.Log.create(memory, "orders")
    log = zlog.Log.open(FullStore(memory, answer), "orders")
    with pytest.raises(zlog.StoreTimeout) as raised:
        log.append(b"x")
    assert "full" not in str(raised.value)
    assert raised.value.hint == zlog.StoreTimeout.hint


def test_only_own_pool_counts_as_full() -> None:
    assert full_pool(health("pool 'logs2' is full (no space)"), "logs") == ""
    assert full_pool(FULL, "other") == "pool 'other' is full (no space)"
