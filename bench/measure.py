"""Measures a load and its limits in turns, so that disturbances of the machine affect all alike.

Each candidate runs for a short slice of time, and this is repeated several times. The result is the
median, over all rounds, of the ratio of two slices of the same round.
"""

from __future__ import annotations

import statistics
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

ROUNDS = 5
"""The number of turns of every candidate."""


@dataclass
class Slice:
    """The results of a candidate in one turn.

    Attributes:
        calls: the number of calls that ended.
        entries: the number of entries in these calls.
        seconds: the time from the start of the first call to the end of the last one.
        latencies: the durations of calls in seconds: of all calls, or of an even selection.
        cpu: the CPU seconds of ``client``, ``osd`` and ``sequencer``.
        memory: the maximum memory of the candidate's processes so far, in bytes.
    """

    calls: int
    entries: float
    seconds: float
    latencies: array[float]
    cpu: dict[str, float] = field(default_factory=dict)
    memory: int = 0

    @property
    def rate(self) -> float:
        """The rate in entries per second."""
        return self.entries / self.seconds


def repeat(call: Callable[[], int], seconds: float, calls_max: int | None = None) -> Slice:
    """Make one call after another for a while."""
    latencies = array("d")
    entries = 0
    now = began = time.perf_counter()
    while now < began + seconds and len(latencies) != calls_max:
        entries += call()
        before, now = now, time.perf_counter()
        latencies.append(now - before)
    return Slice(len(latencies), entries, now - began, latencies)


def one_after_the_other(first: Slice, second: Slice) -> Slice:
    """Combine the slices of two kinds of calls that were made alternately.

    Both have one entry per call and one call at a time.
    """
    latencies = array("d", map(float.__add__, first.latencies, second.latencies))
    each = first.seconds / first.calls + second.seconds / second.calls
    return Slice(len(latencies), len(latencies), each * len(latencies), latencies)


def together(slices: Sequence[Slice]) -> Slice:
    """Combine slices of the same time."""
    return Slice(
        sum(each.calls for each in slices),
        sum(each.entries for each in slices),
        max(each.seconds for each in slices),
        array("d", (latency for each in slices for latency in each.latencies)),
    )


class Ratio(Enum):
    """The quantity in which two candidates are compared."""

    RATE = "rate"
    """Entries per second: the part of the limit that was reached, at most 1 for a true limit."""
    LATENCY = "latency"
    """Median latencies: the ratio of the load's latency to the limit's."""


@dataclass(frozen=True)
class Candidate:
    """A load or limit to measure.

    Attributes:
        name: its name, in two or three words.
        how: what exactly it does, in one sentence.
        run: a function that runs it for a number of seconds.
        compare: how the load is compared with it.
    """

    name: str
    how: str
    run: Callable[[float], Slice]
    compare: Ratio = Ratio.RATE


Figures = dict[str, Any]
"""The printed result of one candidate: the medians of its slices."""


def in_turns(
    load: Candidate,
    limits: Sequence[Candidate],
    seconds: float,
    entry_bytes: int,
    rounds: int = ROUNDS,
) -> list[Figures]:
    """Measure a load and its limits in turns. The load comes first in the result.

    Raises:
        ValueError: a candidate completed no call.
    """
    candidates = [load, *limits]
    slices: list[list[Slice]] = [[] for _ in candidates]
    for number in range(rounds):
        for index in _order(number, len(candidates)):
            done = candidates[index].run(seconds / rounds)
            if not done.calls:
                name = candidates[index].name
                raise ValueError(f"{name}: no call ended in time; use more --seconds")
            slices[index].append(done)
    figures = [
        _figures(candidate, own, entry_bytes)
        for candidate, own in zip(candidates, slices, strict=True)
    ]
    for limit, own, its in zip(limits, slices[1:], figures[1:], strict=True):
        pairs = zip(slices[0], own, strict=True)
        ratios = [ratio for pair in pairs if (ratio := _ratio(limit.compare, *pair)) is not None]
        its["compare"] = limit.compare.value
        its["ratios"] = [round(ratio, 4) for ratio in ratios]
        its["ratio"] = round(statistics.median(ratios), 4) if ratios else None
    return figures


def _order(number: int, count: int) -> list[int]:
    """Return the order of the candidates in a round, which differs in each round.

    A candidate may change the machine's state for the next one, for instance its caches. So each
    round has another order: the rows of a Williams design, which start one further each time and
    are reversed every other time.
    """
    zigzag = [(place + 1) // 2 if place % 2 else -place // 2 for place in range(count)]
    row = [(step + number) % count for step in zigzag]
    return row[::-1] if number % 2 else row


def _ratio(compare: Ratio, load: Slice, limit: Slice) -> float | None:
    """Return the ratio of the load's slice to a limit's; None if the limit took no time."""
    if compare is Ratio.RATE:
        return load.rate / limit.rate
    median = statistics.median(limit.latencies)
    return statistics.median(load.latencies) / median if median else None


_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def _figures(candidate: Candidate, slices: Sequence[Slice], entry_bytes: int) -> Figures:
    """Return the medians of the slices. Latencies and CPU time are over all slices."""
    rate = statistics.median(each.rate for each in slices)
    entries = sum(each.entries for each in slices)
    ascending = sorted(latency for each in slices for latency in each.latencies)
    last = len(ascending) - 1
    return {
        "name": candidate.name,
        "how": candidate.how,
        "entries_per_second": round(rate, 1),
        "bytes_per_second": round(rate * entry_bytes),
        "calls_per_second": round(
            statistics.median(each.calls / each.seconds for each in slices), 1
        ),
        "latency_ms": {
            name: round(1e3 * ascending[min(last, int(share * len(ascending)))], 4)
            for name, share in _QUANTILES.items()
        },
        "cpu_us_per_entry": {
            who: round(1e6 * sum(each.cpu.get(who, 0.0) for each in slices) / entries, 3)
            for who in sorted({who for each in slices for who in each.cpu})
        },
        "memory_peak_bytes": max(each.memory for each in slices),
    }
