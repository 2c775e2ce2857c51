"""How long appends stood still, and under which faults."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tests.history import Action, History, Result

AFTER_SECONDS = 3.0
"""So long after a fault was repaired it may still be the reason of a stall."""


class Window(NamedTuple):
    """When a fault was there, on the clock of the history: nanoseconds."""

    kind: str
    began: int
    ended: int


class Stall(NamedTuple):
    """The longest time, in seconds, between two acknowledged appends.

    Attributes:
        any: of all writers: the longest time without an acknowledged append.
        one: of a single writer that lived through it.
    """

    any: float
    one: float


def longest_stalls(history: History, windows: Iterable[Window]) -> dict[str, Stall]:
    """Return the longest stalls that touch a fault, or the seconds after it, by kind of fault."""
    by_writer: dict[str, list[float]] = defaultdict(list)
    for operation in history.operations:
        if operation.action is Action.APPEND and operation.result is Result.OK:
            by_writer[operation.process].append(operation.returned)
    times = [sorted(each) for each in by_writer.values()]
    together = sorted(moment for each in times for moment in each)
    found: dict[str, Stall] = {}
    for window in windows:
        end = window.ended + int(AFTER_SECONDS * 1e9)
        stall = Stall(
            _longest(together, window.began, end),
            max((_longest(each, window.began, end) for each in times), default=0.0),
        )
        former = found.get(window.kind, Stall(0.0, 0.0))
        found[window.kind] = Stall(max(stall.any, former.any), max(stall.one, former.one))
    return found


def _longest(times: list[float], begin: int, end: int) -> float:
    """The longest gap that begins before the end and ends after the beginning, in seconds."""
    first = max(0, bisect.bisect_right(times, begin) - 1)
    last = bisect.bisect_left(times, end) + 1
    gaps = (after - before for before, after in pairwise(times[first:last]))
    return round(max(gaps, default=0) / 1e9, 3)
