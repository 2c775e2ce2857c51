"""Waiting for new entries of a log."""

from __future__ import annotations

import asyncio
import logging

import zlog
import zlog.aio

_IDLE_SECONDS = 5.0
_RETRY_SECONDS = 1.0


class Live:
    """Follows a log once for all readers of this process, while any of them waits."""

    def __init__(self, log: zlog.aio.Log) -> None:
        self._log = log
        self._seen = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self._task: asyncio.Task[None] | None = None

    async def wait(self, position: int, seconds: float) -> bool:
        """Wait until the log may have an entry at ``position``. Returns False after ``seconds``."""
        if self._seen > position or seconds <= 0:
            return self._seen > position
        woken = asyncio.get_running_loop().create_future()
        timer = asyncio.get_running_loop().call_later(seconds, _wake, woken)
        self._waiting.add(woken)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow(position))
        try:
            await woken
        finally:
            timer.cancel()
            self._waiting.discard(woken)
        return self._seen > position

    def passed(self, position: int) -> None:
        """Note that the log's tail is at ``position`` or above."""
        if position > self._seen:
            self._seen = position
            self.wake()

    def wake(self) -> None:
        """End all waits."""
        for woken in self._waiting:
            _wake(woken)

    async def close(self) -> None:
        """Stop following the log."""
        self.wake()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _follow(self, start: int) -> None:
        while self._waiting:
            steps = asyncio.create_task(self._steps(start))
            try:
                while self._waiting and not steps.done():
                    await asyncio.wait([steps], timeout=_IDLE_SECONDS)
            finally:
                steps.cancel()
                await asyncio.wait([steps])

    async def _steps(self, start: int) -> None:
        while True:
            try:
                async for item in self._log.follow(max(start, self._seen)):
                    self.passed(item.end)
            except zlog.LogNotFound:
                self.passed(1 << 63)  # a read reports it
                return
            except Exception as error:
                if not isinstance(error, zlog.ZlogError):
                    logging.getLogger("zlog.web").exception("following a log failed")
                await asyncio.sleep(_RETRY_SECONDS)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
