"""Clients of both kinds, called the same way."""

from __future__ import annotations

import asyncio

from zlog._base.deadline import Deadline
from zlog._io import drive
from zlog._sequencer import AsyncioSequencer, BlockingSequencer, Credentials


class Caller:
    """A client of either kind, called the same way."""

    def __init__(self, kind: str) -> None:
        self._loop = asyncio.new_event_loop() if kind == "aio" else None
        self._clients: list = []

    def connect(self, address: str, credentials: Credentials = Credentials()):  # noqa: B008
        if self._loop is None:
            client = BlockingSequencer(address, credentials)
        else:
            client = self._run(self._make(address, credentials))
        self._clients.append(client)
        return client

    def __call__(self, method, *args, seconds: float | None = 10.0):
        return self._run(method(*args, Deadline(seconds)))

    def close(self) -> None:
        for client in self._clients:
            self._run(client.close())
        if self._loop is not None:
            self._loop.close()

    async def _make(self, address: str, credentials: Credentials):
        return AsyncioSequencer(address, credentials)

    def _run(self, coroutine):
        if self._loop is not None:
            return self._loop.run_until_complete(coroutine)
        return drive(coroutine)
