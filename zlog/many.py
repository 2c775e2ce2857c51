"""Follows several logs at once, for threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
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
        self._getting: concurrent.futures.Future[many.Arrived] | None = None

    @property
    def token(self) -> str:
        """The positions after the returned items, as text; :func:`follow_many` continues there."""
        return self._following.token

    @property
    def logs(self) -> list[str]:
        """The names of the logs that are followed now."""
        return self._following.logs

    def __next__(self) -> tuple[str, Entry | Gap]:
        if self._loop.is_closed():
            raise many.closed()
        # After an interrupted call, the next one returns the same item.
        if self._getting is None:
            work = self._following._next_item()
            self._getting = asyncio.run_coroutine_threadsafe(work, self._loop)
        known, name, item = self._getting.result()
        self._getting = None
        known[1] = item.end
        return name, item


@contextmanager
def follow_many(store: Store, logs: str | Sequence[str], **options: Any) -> Iterator[Following]:
    """Follow several logs at once, in a ``with`` block.

    The arguments are those of :func:`zlog.aio.follow_many`. An event loop in a thread of its own
    reads the logs, up to about a thousand items ahead.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="zlog-follow", daemon=True)
    thread.start()
    try:
        opening = many.follow_many(store, logs, **options)
        yield Following(loop, asyncio.run_coroutine_threadsafe(opening, loop).result())
    finally:
        asyncio.run_coroutine_threadsafe(_end_tasks(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_tasks() -> None:
    """End all tasks of the loop, which closes the logs."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
