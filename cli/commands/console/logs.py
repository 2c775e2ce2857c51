"""The logs of the store, polled while a browser shows them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import zlog
from zlog.cli.commands.top.rows import state_of
from zlog.cli.watch import Look, Watch
from zlog.overview import LogOverview, rates

_EVENTS_MAX = 200
_WATCHED = ("epoch", "sequencer", "ordering", "writer", "width", "read_only")
_REST = 3
"""The pause after a poll, relative to its duration: a poll takes at most a quarter of the time."""

Row = dict[str, Any]


class Logs:
    """Polls all logs while a browser watches them, and keeps their state and recent changes.

    Args:
        watch: the object that polls the logs.
        interval: the minimum number of seconds between polls.
    """

    def __init__(self, watch: Watch, interval: float) -> None:
        self._watch = watch
        self._interval = interval
        self._watchers = 0
        self._wanted = asyncio.Event()
        self._news = asyncio.Condition()
        self._rows: dict[str, Row] = {}
        self._events: deque[dict[str, object]] = deque(maxlen=_EVENTS_MAX)
        self._error = ""

    async def run(self) -> None:
        """Poll all logs once, so that the first watcher need not wait, and then for watchers."""
        while True:
            before = self._watch.last
            began = time.monotonic()
            try:
                seen = await self._watch.look()
            except zlog.ZlogError as error:
                self._error = str(error)
            else:
                self._error = ""
                self._take(before, seen)
            async with self._news:
                self._news.notify_all()
            took = time.monotonic() - began
            await asyncio.sleep(max(self._interval - took, _REST * took, 0.05))
            await self._wanted.wait()

    def _take(self, before: Look, seen: Look) -> None:
        self._rows = {
            name: _row(before.logs.get(name), log, seen) for name, log in seen.logs.items()
        }
        for name, log in seen.logs.items() if before.at else ():
            self._events += _changes(name, before.logs.get(name), log)
        for name in before.logs.keys() - seen.logs.keys():
            self._events.append(_event(name, "removed", "", ""))

    async def watch(self) -> AsyncIterator[dict[str, object]]:
        """Iterate over changes: first the whole state, then the changes of each poll."""
        self._watchers += 1
        self._wanted.set()
        sent: dict[str, Row] = {}
        begins = True
        try:
            while True:
                rows = self._rows
                last = self._watch.last
                if last.at or self._error:
                    yield {
                        "begins": begins,
                        "at": last.at,
                        "seconds": last.seconds,
                        "left_out": last.left_out,
                        "error": self._error,
                        "sequencer": last.sequencer,
                        "sequencer_error": last.sequencer_error,
                        "events": [*self._events],
                        "changed": [row for name, row in rows.items() if sent.get(name) != row],
                        "removed": [name for name in sent if name not in rows],
                    }
                    sent, begins = rows, False
                async with self._news:
                    await self._news.wait()
        finally:
            self._watchers -= 1
            if not self._watchers:
                self._wanted.clear()


def _row(before: LogOverview | None, log: LogOverview, seen: Look) -> Row:
    rate = bytes_rate = 0.0
    if before is not None:
        rate, bytes_rate = rates(before, log)
    content = seen.contents.get(log.name)
    held = None if content is None else content[1]
    return {
        "name": log.name,
        "rate": round(rate, 2),
        "bytes_rate": round(bytes_rate, 2),
        "tail": log.tail,
        "trim_point": log.trim_point,
        "lag": log.lag if log.cursors else None,
        "cursors": len(log.cursors),
        "bytes": None if held is None else held.bytes,
        "entries": None if held is None else held.entries,
        "fullness": None if held is None else held.fullness,
        "width": log.width,
        "stripe_unit": log.stripe_unit,
        "epoch": log.epoch,
        "state": state_of(log),
        "sequencer": log.sequencer,
        "ordering": log.ordering,
        "error": log.error,
    }


def _changes(name: str, before: LogOverview | None, log: LogOverview) -> list[dict[str, object]]:
    if before is None:
        return [_event(name, "new", "", f"epoch {log.epoch}")]
    if before.error != log.error:
        return [_event(name, "error" if log.error else "readable", before.error, log.error)]
    if before.id != log.id:
        return [_event(name, "re-created", before.id, log.id)]
    both = [(what, getattr(before, what), getattr(log, what)) for what in _WATCHED]
    return [_event(name, what, str(was), str(now)) for what, was, now in both if was != now]


def _event(name: str, what: str, before: str, after: str) -> dict[str, object]:
    return {"at": time.time(), "log": name, "what": what, "before": before, "after": after}
