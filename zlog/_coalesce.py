"""Appends that wait at the same time travel together: one grant, one write per stripe object.

The first append of a quiet log goes out at once. While rounds are under way, further appends
gather and leave together when one of them is back, so the busier the log, the larger the rounds.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque

from zlog._append import Appender
from zlog._deadline import Deadline
from zlog._io import Io, deadline_of
from zlog.errors import StoreTimeout, ZlogError

_ROUNDS_MAX = 2
"""Rounds under way at the same time: one with the store, one on its way."""

_ROUND_ENTRIES_MAX = 4096
_ROUND_BYTES_MAX = 4 << 20

_WAITING_BYTES_MAX = 64 << 20
"""Data that may wait to be sent; whoever comes later waits before handing anything in."""


class Coalescer:
    """Gathers the appends of one event loop."""

    def __init__(self, appender: Appender, io: Io, timeout: float | None) -> None:
        self._appender = appender
        self._io = io
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[bytes, asyncio.Future[int], Deadline]] = deque()
        self._waiting_bytes = 0
        self._blocked: deque[asyncio.Future[None]] = deque()
        self._rounds: set[asyncio.Task[None]] = set()
        self._scheduled = False

    async def append(self, data: bytes) -> int:
        """Append one entry.

        Raises:
            StoreTimeout: also when its time was up before it was sent. Once it is sent it has the
                time of its round, so that it can take twice its budget at most.
        """
        self._appender.check((data,))
        data = bytes(data)  # the same object, unless it is a buffer, which may change meanwhile
        deadline = deadline_of(self._io, self._timeout)
        while self._waiting_bytes + len(data) > _WAITING_BYTES_MAX and self._waiting:
            await self._wait_for_room()
            if deadline.expired:
                raise _not_sent()
        future: asyncio.Future[int] = self._loop.create_future()
        self._waiting.append((data, future, deadline))
        self._waiting_bytes += len(data)
        if not self._scheduled and len(self._rounds) < _ROUNDS_MAX:
            # Not at once: appends that are made in this turn of the loop come along.
            self._scheduled = True
            self._loop.call_soon(self._send)
        return await future

    async def drain(self) -> None:
        """Wait until everything that was handed in is acknowledged or has failed."""
        while self._rounds or self._waiting:
            if self._rounds:
                await asyncio.wait(self._rounds)
            else:
                await asyncio.sleep(0)

    async def _wait_for_room(self) -> None:
        room = self._loop.create_future()
        self._blocked.append(room)
        try:
            await room
        finally:
            if not room.done():
                self._blocked.remove(room)

    def _send(self) -> None:
        self._scheduled = False
        while self._waiting and len(self._rounds) < _ROUNDS_MAX:
            data: list[bytes] = []
            futures: list[asyncio.Future[int]] = []
            size = 0
            while self._waiting and len(data) < _ROUND_ENTRIES_MAX and size < _ROUND_BYTES_MAX:
                entry, future, deadline = self._waiting.popleft()
                size += len(entry)
                if future.done():
                    continue  # its caller was cancelled, and nothing was sent
                if deadline.expired:
                    future.set_exception(_not_sent())
                    continue
                data.append(entry)
                futures.append(future)
            self._waiting_bytes -= size
            if data:
                task = self._loop.create_task(self._round(data, futures))
                self._rounds.add(task)
                task.add_done_callback(self._finished)
        while self._blocked and self._waiting_bytes < _WAITING_BYTES_MAX // 2:
            room = self._blocked.popleft()
            if not room.done():
                room.set_result(None)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._rounds.discard(task)
        self._send()

    async def _round(self, data: list[bytes], futures: list[asyncio.Future[int]]) -> None:
        try:
            positions = await self._appender.append(data, deadline_of(self._io, self._timeout))
        except BaseException as error:
            acknowledged = error.positions if isinstance(error, ZlogError) else ()
            known = acknowledged or (None,) * len(futures)
            for future, position in zip(futures, known, strict=True):
                if future.done():
                    continue
                if position is None:
                    future.set_exception(_own(error))
                else:
                    future.set_result(position)
            if not isinstance(error, Exception):
                raise
            return
        for future, place in zip(futures, positions, strict=True):
            if not future.done():
                future.set_result(place)


def _not_sent() -> StoreTimeout:
    error = StoreTimeout("the entry was not sent in time: those before it were not acknowledged")
    error.hint = "It is not in the log. The store is slow or unreachable (`zlog doctor`)."
    error.positions = (None,)
    return error


def _own(error: BaseException) -> BaseException:
    """Return an error of a whole round as that of one append in it."""
    own = copy.copy(error)
    own.__cause__ = error
    if isinstance(own, ZlogError):
        own.positions = (None,)
    return own
