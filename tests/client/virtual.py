"""An Io in virtual time without a network: every operation takes as long as the test says.

The same seed gives the same run. An operation takes effect somewhere between its start and its
reply, so that those of different clients interleave as they do on a cluster.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import zlog
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply
from zlog._base.sequencer import SequencerClient
from zlog._native.core import CompletionQueue
from zlog.errors import SequencerUnavailable
from zlog.store import Start


class VirtualIo:
    """Io over a store whose operations take ``low`` to ``high`` seconds of virtual time."""

    def __init__(self, store: zlog.Store, seed: int, low: float, high: float) -> None:
        self.store = store
        self._random = random.Random(seed)
        self._low, self._high = low, high

    async def execute(self, calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
        return await self.start(calls).finish(deadline)

    def start(self, calls: Sequence[Call]) -> _VirtualCalls:
        return _VirtualCalls([asyncio.ensure_future(self._execute_one(call)) for call in calls])

    async def run(self, start: Start, deadline: Deadline) -> Reply:  # noqa: ARG002
        return await self._take_time(lambda: _answer(start))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall_clock_us(self) -> int:
        return round(self.monotonic() * 1e6)

    def random(self) -> float:
        return self._random.random()

    def token(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def sequencer(self, address: str) -> SequencerClient:
        raise SequencerUnavailable(f"there is no network to reach {address}")

    async def close(self) -> None:
        pass

    async def _execute_one(self, call: Call) -> Reply:
        return await self._take_time(lambda: Reply(*self.store.execute(*call)))

    async def _take_time(self, take_effect: Callable[[], Reply]) -> Reply:
        await asyncio.sleep(self._random.uniform(self._low, self._high) / 2)
        reply = take_effect()
        await asyncio.sleep(self._random.uniform(self._low, self._high) / 2)
        return reply


def _answer(start: Start) -> Reply:
    queue = CompletionQueue()
    start(queue, 0)
    ((_, code, reply),) = queue.drain()
    return Reply(code, reply)


class _VirtualCalls:
    """Calls under way."""

    def __init__(self, tasks: list[asyncio.Task[Reply]]) -> None:
        self._tasks = tasks

    async def finish(self, deadline: Deadline) -> list[Reply]:  # noqa: ARG002
        return await asyncio.gather(*self._tasks)
