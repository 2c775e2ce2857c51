"""Blocking logs and writers with the faces of asyncio's, for clients that use them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import zlog


class Blocking:
    """A :class:`zlog.Log` with the face of a :class:`zlog.aio.Log`. Its calls block the loop."""

    def __init__(self, log: zlog.Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._log, name)
        if not callable(value):
            return value

        async def call(*words: Any, **more: Any) -> Any:
            return value(*words, **more)

        return call

    async def read_range(self, *words: Any, **more: Any) -> AsyncIterator[zlog.Entry | zlog.Gap]:
        for item in self._log.read_range(*words, **more):
            yield item

    async def writer(self, *words: Any, **more: Any) -> InTurns:
        return InTurns(self._log.writer(*words, **more))


class InTurns:
    """A :class:`zlog.Writer` with the face of a :class:`zlog.aio.Writer`.

    Two threads call it, one after the other: the checker has to know in which order.
    """

    def __init__(self, writer: zlog.Writer) -> None:
        self._writer = writer
        self._threads = itertools.cycle([ThreadPoolExecutor(1) for _ in range(2)])
        self._submitted: list[asyncio.Future[int]] = []

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._writer, name)
        return partial(self._call, value) if callable(value) else value

    async def _call(self, method: Callable[..., Any], *words: Any, **more: Any) -> Any:
        call = partial(method, *words, **more)
        try:
            return await asyncio.get_running_loop().run_in_executor(next(self._threads), call)
        except zlog.ZlogError:
            if self._submitted:  # they may have failed with this, and another thread tells them
                await asyncio.wait(self._submitted, timeout=1)
            raise

    async def submit(self, *words: Any, **more: Any) -> asyncio.Future[int]:
        future = asyncio.wrap_future(await self._call(self._writer.submit, *words, **more))
        self._submitted = [*(each for each in self._submitted if not each.done()), future]
        return future

    async def recover(self) -> AsyncIterator[zlog.Entry | zlog.Gap]:
        for item in self._writer.recover():
            yield item
