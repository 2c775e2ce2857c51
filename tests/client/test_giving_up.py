"""Who no longer waits for operations gives them up, so that the store keeps nothing for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from zlog._base.deadline import Deadline
from zlog._base.io import TIMED_OUT, Call, Reply
from zlog._io import AsyncioIo, BlockingIo, drive
from zlog._native.completions import CompletionQueue
from zlog._native.local import MemoryStore

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


def test_a_thread_whose_time_is_over(store: Silent) -> None:
    replies = drive(BlockingIo(store).execute(CALLS, Deadline(0.05)))
    assert replies == [Reply(0, b"done"), TIMED_OUT]
    assert store.given_up == 1


async def test_a_task_whose_time_is_over(store: Silent) -> None:
    io = AsyncioIo(store)
    assert await io.execute(CALLS, Deadline(0.05)) == [Reply(0, b"done"), TIMED_OUT]
    assert store.given_up == 1
    await io.close()


async def test_a_task_that_is_cancelled(store: Silent) -> None:
    io = AsyncioIo(store)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(io.execute(CALLS, Deadline(None)), 0.05)
    assert store.given_up == 1
    await io.close()


def test_nothing_is_given_up_that_was_answered(store: Silent) -> None:
    async def ask() -> None:
        io = AsyncioIo(store)
        await io.execute(CALLS[:1], Deadline(5))
        await io.close()

    asyncio.run(ask())
    drive(BlockingIo(store).start(CALLS[:1]).finish(Deadline(5)))
    assert store.given_up == 0
