"""A write that gets no answer says that the store is full, when the monitor says so."""

from __future__ import annotations

import errno
import json

import pytest

import zlog
import zlog.aio
from zlog._base.pool_full import full_pool
from zlog._native.completions import CompletionQueue

from .faulty import FaultyStore


def health(*messages: str) -> dict[str, object]:
    detail = [{"message": message} for message in messages]
    return {"status": "HEALTH_ERR", "checks": {"POOL_FULL": {"detail": detail}}}


class FullStore(FaultyStore):
    """Takes no entries, and has a monitor that knows why."""

    def __init__(self, store: zlog.Store, answer: tuple[int, bytes]) -> None:
        super().__init__(store, lambda *_: None)
        self.pool = "logs"
        self._answer = answer

    def execute(
        self, object: str, method: str, payload: bytes, timeout: float | None = None
    ) -> tuple[int, bytes]:
        if method == "write":
            return -errno.ETIMEDOUT, b""
        return super().execute(object, method, payload, timeout)

    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> None:
        assert json.loads(command) == {"prefix": "health", "detail": "detail", "format": "json"}
        queue.put(token, *self._answer)


OTHER_FULL = health("pool 'other' is full (no space)")
FULL = health("pool 'other' is full (no space)", "pool 'logs' is full (running out of quota)")


def test_a_writer_is_told_that_the_store_is_full(memory: zlog.Store) -> None:
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
def test_without_a_reason_it_is_a_time_out(memory: zlog.Store, answer: tuple[int, bytes]) -> None:
    zlog.Log.create(memory, "orders")
    log = zlog.Log.open(FullStore(memory, answer), "orders")
    with pytest.raises(zlog.StoreTimeout) as raised:
        log.append(b"x")
    assert "full" not in str(raised.value)
    assert raised.value.hint == zlog.StoreTimeout.hint


def test_only_the_own_pool_counts() -> None:
    assert full_pool(health("pool 'logs2' is full (no space)"), "logs") == ""
    assert full_pool(FULL, "other") == "pool 'other' is full (no space)"
