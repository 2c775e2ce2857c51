"""Offloads logs, and collects what readers see of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.fs as fs

import zlog
from zlog import aio
from zlog.offload import Offloader, _location
from zlog.view import Stripe

from ..client.transfers import exported

TAGS = ("a", "b", "c")


def offload(
    log: zlog.Log, root: Path, due: Callable[[Stripe], bool] = lambda _: True
) -> list[Path]:
    """Offload the ended stripes that are due. Returns all files of the log, in order."""

    every = Offloader._due

    def chosen(offloader: Offloader, files: list[zlog.StripeFile]) -> Iterator[Stripe]:
        return filter(due, every(offloader, files))

    with mock.patch.object(Offloader, "_due", chosen):
        for _ in Offloader(log, str(root)).run():
            pass
    return files_of(log, root)


def files_of(log: zlog.Log, root: Path) -> list[Path]:
    """Return the files of a log, in order."""
    return sorted((root / f"{log.name}-{log.view.log_id:016x}").glob("*.parquet"))


def scan(log: zlog.Log) -> dict[str, object]:
    """Return what readers see that read many positions at once."""
    times = [each.timestamp for each in log.read_range() if isinstance(each, zlog.Entry)]
    times = times[::9] if times == sorted(times) else []  # else several answers are right
    found: dict[str, object] = {
        "range": list(log.read_range()),
        "reverse": list(log.read_range(reverse=True)),
        "times": [log.find_time(each) for each in times],
        "export": exported(log),
        "columns": columns(log, with_tags=True),
        "objects": columns(log, indexes=[0, 2], window_bytes=100),
        "findings": list(log.check()),
        "cells": [(c.lost, c.unknown) for c in log.position_map(cells=5).cells],
    }
    for match in ("any", "all"):
        how: dict[str, Any] = {"tags": TAGS[:2], "match": match}
        found[match] = list(log.read_range(**how)), list(log.read_range(**how, reverse=True))
        found[f"{match} in columns"] = columns(log, **how, indexes=[0, 1])
        found[f"{match} last"] = log.last(*TAGS[:2], match=match)
    return found


def seen(log: zlog.Log, **options: Any) -> dict[str, object]:
    """Return what all kinds of readers see. ``options`` are those with which the log is opened."""
    tail, start = log.tail(), log.earliest()
    found = scan(log) | {
        "single": [_outcome(log, position) for position in range(start, tail)],
        "last": [log.last(before=position) for position in range(start, tail, 5)],
        "no data": columns(log, with_data=False),
        "asyncio": asyncio.run(_with_tasks(log, **options)),
    }
    with zlog.connect("mem://") as other:
        for _ in zlog.mirror_log(log, other, "copy", **options):
            pass
        with zlog.Log.open(other, "copy", **options) as copy:
            found["mirror"] = list(copy.read_range())
    return found


def _outcome(log: zlog.Log, position: int) -> object:
    try:
        return log.read(position)
    except zlog.ZlogError as error:
        return type(error), str(error)


def columns(log: zlog.Log, **options: Any) -> object:
    """Return what columns contain, joined."""
    rows: list[object] = []
    tags: list[tuple[str, ...]] = []
    gaps: list[zlog.Gap] = []
    for some in log.read_columns(**options):
        data = (bytes(some.data[a:b]) for a, b in zip(some.offsets, some.offsets[1:], strict=False))
        rows += zip(some.positions, some.timestamps, data, strict=True)
        tags += some.tags or ()
        gaps += some.gaps
    return rows, tags, gaps


async def _with_tasks(log: zlog.Log, **options: Any) -> object:
    """Read as several tasks of one handle, whose first reads of a segment coincide."""
    async with await aio.Log.open(log.store, log.name, **options) as own:

        async def part(start: int) -> list[zlog.Entry | zlog.Gap]:
            items: list[zlog.Entry | zlog.Gap] = []
            async for item in own.follow(start):
                items.append(item)
                if item.end >= min(start + 5, tail):
                    break
            return items

        start, tail = await own.earliest(), await own.tail()
        return await asyncio.gather(*map(part, range(start, tail, 5)))


@contextmanager
def watched_files(step: Callable[[str], object]) -> Iterator[None]:
    """Call a function before each call of a file system, with the call's name."""
    plain = _location._open
    with mock.patch.object(
        _location, "_open", lambda url: (_System(plain(url)[0], step), plain(url)[1])
    ):
        yield


class _System:
    def __init__(self, system: fs.FileSystem, step: Callable[[str], object]) -> None:
        self._system, self._step = system, step

    __class__ = property(lambda self: type(self._system))  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if callable(getattr(self._system, name)):
            self._step(name)
        return getattr(self._system, name)
