"""Following a log, for ``zlog tail --follow``."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Awaitable, Sequence
from typing import Any

from zlog import Entry, aio
from zlog.cli.cursor_commit import COMMIT_SECONDS
from zlog.cli.output import Output, OutputClosed, about
from zlog.cli.render import Renderer
from zlog.cli.signals import Terminated, ending
from zlog.cli.tags import Selected


async def follow(
    opening: Awaitable[aio.Log],
    start: int,
    select: Selected,
    count: int | None,
    cursor_name: str | None,
    renderer: Renderer,
    out: Output,
) -> bool:
    """Print new entries until ``count`` are printed, a signal comes, or stdout is closed.

    Every second and at the end, the cursor is advanced past the entries that were printed and
    flushed. Returns False if an entry is lost.

    Args:
        cursor_name: the name of the cursor to advance; None means no cursor.
    """
    async with await opening as opened:
        cursor = None if cursor_name is None else await opened.cursor(cursor_name)
        live = _LiveOutput(out, start)
        loop = asyncio.get_running_loop()
        printing = asyncio.ensure_future(_print(opened, start, select, count, renderer, live))
        tasks: list[asyncio.Future[Any]] = [printing]
        signals = ending()
        if cursor is not None:
            for number in signals:
                loop.add_signal_handler(number, live.terminate, number)
            tasks.append(asyncio.ensure_future(_commit_regularly(cursor, live)))
        try:
            results = await _until_end(tasks, live)
        finally:
            if cursor is not None:
                await _commit(cursor, live)
                for number in signals:
                    loop.remove_signal_handler(number)
        _raise_first(results)
        return printing.result()


async def follow_many(
    opening: aio.Opening[aio.Following], count: int | None, renderer: Renderer, out: Output
) -> set[str]:
    """Print new entries of several logs, as :func:`follow` does.

    Returns the logs that have lost entries.
    """
    damaged: set[str] = set()
    live = _LiveOutput(out, 0)

    async def print_items() -> None:
        left = count
        async for name, item in following:
            with about(name):
                if not renderer(item):
                    damaged.add(name)
            live.flush_soon()
            if left is not None and isinstance(item, Entry):
                left -= 1
                if left == 0:
                    return

    async with opening as following:
        _raise_first(await _until_end([asyncio.ensure_future(print_items())], live))
    return damaged


async def _until_end(tasks: Sequence[asyncio.Future[Any]], live: _LiveOutput) -> list[Any]:
    """Wait until a task or the output ends, end the others, and return all results."""
    try:
        await asyncio.wait({*tasks, live.ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        live.close()
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, live.ended, return_exceptions=True)
    return results


def _raise_first(results: Sequence[Any]) -> None:
    for result in results:
        if isinstance(result, (Exception, Terminated)):
            raise result


async def _print(
    log: aio.Log,
    start: int,
    select: Selected,
    count: int | None,
    renderer: Renderer,
    live: _LiveOutput,
) -> bool:
    intact = True
    entries = 0
    async for item in log.follow(start, **select):
        intact = renderer(item) and intact
        live.printed = item.end
        live.flush_soon()
        entries += isinstance(item, Entry)
        if entries == count:
            break
    return intact


async def _commit_regularly(cursor: aio.Cursor, live: _LiveOutput) -> None:
    while True:
        await asyncio.sleep(COMMIT_SECONDS)
        await _commit(cursor, live)


async def _commit(cursor: aio.Cursor, live: _LiveOutput) -> None:
    """Commit exactly the flushed entries, so that no entry is skipped after a crash."""
    if live.flushed > cursor.position:
        await cursor.commit(live.flushed)


class _LiveOutput:
    """Flushes stdout when no more items are ready, and detects that its reader is gone.

    Attributes:
        ended: a future that fails once the output can no longer be written; ``close`` cancels it.
        printed: the position after the last printed item.
        flushed: the position after the last flushed item.
    """

    def __init__(self, out: Output, start: int) -> None:
        self._out = out
        self.printed = self.flushed = start
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._watched: int | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._watch()

    def flush_soon(self) -> None:
        """Flush once the follower waits for the store or for new entries."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        """Flush the rest unless the reader is gone, and stop watching."""
        if not self.ended.done():
            self._flush()
        if self._watched is not None:
            self._loop.remove_reader(self._watched)
        self.ended.cancel()

    def _flush(self) -> None:
        self._scheduled = False
        printed = self.printed
        try:
            self._out.flush()
            self.flushed = printed
        except (OutputClosed, OSError) as error:
            self._end(error)

    def _watch(self) -> None:
        """Watch for the end of a pipe's reader, which otherwise only a write would show."""
        try:
            if sys.stdout is None:
                return
            descriptor = sys.stdout.fileno()
            if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                return
        except OSError:  # also io.UnsupportedOperation: stdout is not a file
            return
        # The writing end of a pipe is never readable; the event is its error.
        self._loop.add_reader(descriptor, self._end, OutputClosed())
        self._watched = descriptor

    def terminate(self, number: int) -> None:
        """End the command because of a signal."""
        self._end(Terminated(number))

    def _end(self, error: BaseException) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
