"""Reading several logs, for ``zlog read`` and ``zlog tail`` with a pattern."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime, timezone
from operator import itemgetter

import zlog
from zlog import Entry, Gap, aio
from zlog.cli.exit_codes import ExitCode, exit_code_of_reading
from zlog.cli.follow import follow_many
from zlog.cli.output import Output, about
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import Renderer, Style
from zlog.cli.session import Session
from zlog.cli.several import is_pattern, open_selected, selected_names
from zlog.cli.tags import Selected

Items = Iterable[Entry | Gap]

_EARLIEST = datetime.min.replace(tzinfo=timezone.utc)
_LATEST = datetime.max.replace(tzinfo=timezone.utc)


def read_many(
    session: Session,
    selection: str,
    items_of: Callable[[zlog.Log], Items],
    style: Style,
    hole_timeout: zlog.Timeout,
    *,
    reverse: bool = False,
    count: int | None = None,
) -> int:
    """Print parts of several logs by time, and return the exit code.

    Args:
        items_of: a function that finds out which part of a log to print. What it says begins with
            the log's name.
    """
    with Output() as out, session.connect() as store, session.sharing(store), ExitStack() as stack:
        items = {}
        for name, log in open_selected(session, store, stack, selection, hole_timeout).items():
            with about(name):
                items[name] = items_of(log)
        damaged = _print(items, style.renderer(out), count, reverse=reverse)
    return _exit_code(damaged)


def tail_many(
    session: Session,
    selection: str,
    start: PositionSpec,
    select: Selected,
    count: int | None,
    style: Style,
    hole_timeout: zlog.Timeout,
) -> int:
    """Print new entries of several logs as they arrive, and return the exit code."""
    with Output() as out, session.connect() as store:
        names = selected_names(session, store, selection)
        opening = aio.follow_many(
            store,
            selection if is_pattern(selection) else names,
            start=start,
            timeout=session.timeout,
            hole_timeout=hole_timeout,
            mac_key=session.mac_key,
            **select,
        )
        damaged = asyncio.run(follow_many(opening, count, style.renderer(out), out))
    return _exit_code(damaged)


def _exit_code(damaged: set[str]) -> int:
    codes = [exit_code_of_reading(name, intact=False) for name in sorted(damaged)]
    return max(codes, default=ExitCode.OK)


def _print(
    logs: dict[str, Items], renderer: Renderer, count: int | None, *, reverse: bool
) -> set[str]:
    """Print items by time up to ``count`` entries, and return the logs that have lost entries.

    The items of one log stay in order, even if the clocks of its writers differ.
    """
    damaged = set()
    entries = 0
    timed = (_timed(name, items, reverse) for name, items in logs.items())
    for _, name, item in heapq.merge(*timed, key=itemgetter(0), reverse=reverse):
        with about(name):
            if not renderer(item):
                damaged.add(name)
        entries += isinstance(item, Entry)
        if entries == count:
            break
    return damaged


def _timed(name: str, items: Items, reverse: bool) -> Iterator[tuple[datetime, str, Entry | Gap]]:
    last, time = (min, _LATEST) if reverse else (max, _EARLIEST)
    for item in items:
        if isinstance(item, Entry):
            time = last(time, item.timestamp)
        yield time, name, item
