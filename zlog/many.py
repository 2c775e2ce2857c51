"""Follows several logs at once, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from zlog.aio import many
from zlog.entry import Entry, Gap
from zlog.store import Store


class Following(Iterator[tuple[str, Entry | Gap]]):
    """The items of several logs as they arrive, each with the name of its log.

    The items of one log keep their order. Open it with :func:`follow_many`. Only one thread may use
    it at a time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, following: many.Following) -> None:
        self._loop = loop
        self._following = following
        self._getting: asyncio.Task[tuple[str, Entry | Gap]] | None = None

    @property
    def token(self) -> str:
        """What has been returned so far, as text. Give it to :func:`follow_many` to continue."""
        return self._following.token

    @property
    def logs(self) -> list[str]:
        """The names of the logs that are followed now."""
        return self._following.logs

    def __next__(self) -> tuple[str, Entry | Gap]:
        # An interrupted call leaves its task, whose item the next call returns.
        if self._getting is None:
            self._getting = self._loop.create_task(self._following.__anext__())
        item = self._loop.run_until_complete(self._getting)
        self._getting = None
        return item

    async def _close(self) -> None:
        if self._getting is not None:
            self._getting.cancel()
            await asyncio.wait([self._getting])
        await self._following.close()


@contextmanager
def follow_many(store: Store, logs: str | Sequence[str], **options: Any) -> Iterator[Following]:
    """Follow several logs at once, in a ``with`` block.

    The arguments are those of :func:`zlog.aio.follow_many`. Between two calls of the iterator, the
    logs are not read.
    """
    loop = asyncio.new_event_loop()
    try:
        opened = loop.run_until_complete(many.follow_many(store, logs, **options))
        following = Following(loop, opened)
        try:
            yield following
        finally:
            loop.run_until_complete(following._close())
    finally:
        loop.close()
