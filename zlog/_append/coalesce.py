"""Appends that wait at the same time travel together: one grant, one write per stripe object.

The first append of a quiet log goes out at once. While rounds are under way, further appends
gather and leave together when one of them is back, so the busier the log, the larger the rounds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from zlog._append.append import Appender
from zlog._append.outcomes import Failed, not_sent
from zlog._append.rounds import ROUND_BYTES_MAX, RoundPolicy
from zlog._base.io import Io, deadline_of
from zlog._native.gather import Append, Gathering
from zlog.environment import world_of

_WAITING_BYTES_MAX = 64 << 20
"""Data that may wait to be sent; what comes later is held back."""


class Coalescer:
    """Sends the appends of one event loop in rounds.

    Attributes:
        append: returns the coroutine that appends one entry. It raises StoreTimeout also when its
            time was up before it was sent. Once it is sent it has the time of its round, so that
            it can take twice its budget at most.
    """

    def __init__(self, appender: Appender, io: Io, timeout: float | None) -> None:
        self._appender = appender
        self._io = io
        self._timeout = timeout
        self._loop = loop = asyncio.get_running_loop()
        self._gathering = Gathering(
            loop,
            self._send,
            appender.check,
            appender.entry_bytes_max,
            _WAITING_BYTES_MAX,
            timeout,
            world_of(loop).clock,
        )
        self._rounds: set[asyncio.Task[Sequence[int] | Failed]] = set()
        self._under_way = 0  # entries in these rounds
        self._policy = RoundPolicy(io.store)
        self.append = self._gathering.append

    @property
    def waiting_bytes(self) -> int:
        """Data that waits to be sent, without what is held back."""
        return self._gathering.waiting_bytes

    async def drain(self) -> None:
        """Wait until everything that was handed in is acknowledged or has failed."""
        while self._rounds or len(self._gathering):
            if self._rounds:
                await asyncio.wait(self._rounds)
            else:
                await asyncio.sleep(0)

    def _send(self) -> None:
        gathering = self._gathering
        while len(gathering) and len(self._rounds) < self._rounds_max():
            share = self._policy.share(len(gathering) + self._under_way)
            entries, appends, late = gathering.take(share, ROUND_BYTES_MAX)
            gathering.complete(late, [not_sent() for _ in late])
            if entries:
                deadline = deadline_of(self._io, self._timeout)
                work = self._appender.append_round(entries, 0, len(entries), deadline)
                task = self._loop.create_task(work)
                self._rounds.add(task)
                self._under_way += len(appends)
                task.add_done_callback(partial(self._finished, appends))
        gathering.alert = len(self._rounds) < self._rounds_max()

    def _rounds_max(self) -> int:
        return self._policy.rounds_max(len(self._gathering) + self._under_way)

    def _finished(self, appends: list[Append], task: asyncio.Task[Sequence[int] | Failed]) -> None:
        self._rounds.discard(task)
        self._under_way -= len(appends)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        appended = task.result() if error is None else Failed(error, (None,) * len(appends))
        outcomes = appended.outcomes() if isinstance(appended, Failed) else appended
        self._gathering.complete(appends, outcomes)
        # After the tasks of this round: what they append next leaves together too.
        self._loop.call_soon(self._send)
