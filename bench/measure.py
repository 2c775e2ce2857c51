"""Measuring a load beside its limits, in turns, so that a noisy machine disturbs all of them alike.

A candidate runs for a short slice of time, then the next one, and so on, several times over. What
counts is the ratio of two slices of the same round, and of all rounds their median.
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
"""How often every candidate has its turn."""


@dataclass
class Slice:
    """What a candidate did in one turn.

    Attributes:
        calls: how many calls ended.
        entries: how many entries these carried.
        seconds: from the first call's beginning to the last one's end.
        latencies: seconds of calls; of all, or of some picked evenly.
        cpu: CPU seconds, by who used them: ``client``, ``osd``, ``sequencer``.
        memory: bytes of memory that the candidate's processes had at most, so far.
    """

    calls: int
    entries: float
    seconds: float
    latencies: array[float]
    cpu: dict[str, float] = field(default_factory=dict)
    memory: int = 0

    @property
    def rate(self) -> float:
        """Entries per second."""
        return self.entries / self.seconds


def repeat(call: Callable[[], int], seconds: float, calls_max: int | None = None) -> Slice:
    """Make one call after the other for a while.

    Args:
        call: returns how many entries it carried.
        seconds: no call begins later.
        calls_max: None for no limit.
    """
    latencies = array("d")
    entries = 0
    now = began = time.perf_counter()
    while now < began + seconds and len(latencies) != calls_max:
        entries += call()
        before, now = now, time.perf_counter()
        latencies.append(now - before)
    return Slice(len(latencies), entries, now - began, latencies)


def one_after_the_other(first: Slice, second: Slice) -> Slice:
    """Return what comes of doing a call of the first kind and then one of the second, and so on.

    Both have one entry per call and one call at a time.
    """
    latencies = array("d", map(float.__add__, first.latencies, second.latencies))
    each = first.seconds / first.calls + second.seconds / second.calls
    return Slice(len(latencies), len(latencies), each * len(latencies), latencies)


class Ratio(Enum):
    """What of two candidates is compared."""

    RATE = "rate"
    """Entries per second: the part of the limit that was reached, 1 at most where it is one."""
    LATENCY = "latency"
    """Medians of latency: how many times as long it takes."""


@dataclass(frozen=True)
class Candidate:
    """Something that is measured.

    Attributes:
        name: what, in two or three words.
        how: what is done exactly, one sentence.
        run: does it for a number of seconds.
        compare: how the load is compared with it.
    """

    name: str
    how: str
    run: Callable[[float], Slice]
    compare: Ratio = Ratio.RATE


Figures = dict[str, Any]
"""The result of one candidate, as it is printed: the medians of its slices."""


def in_turns(
    load: Candidate,
    limits: Sequence[Candidate],
    seconds: float,
    entry_bytes: int,
    rounds: int = ROUNDS,
) -> list[Figures]:
    """Measure a load and its limits in turns; the load comes first in the result.

    Args:
        load: what is measured.
        limits: what it is measured against.
        seconds: for each candidate, over all rounds.
        entry_bytes: bytes of one entry.
        rounds: turns of each.

    Raises:
        ValueError: a candidate got nothing done.
    """
    candidates = [load, *limits]
    slices: list[list[Slice]] = [[] for _ in candidates]
    for number in range(rounds):
        for index in _order(number, len(candidates)):
            done = candidates[index].run(seconds / rounds)
            if not done.calls:
                name = candidates[index].name
                raise ValueError(f"{name}: not one call ended in time; give it more --seconds")
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
    """Return who comes when in a round: each in another place, and after another one, each time.

    What one leaves behind, as memory that is warm or gone, is good or bad for who comes next. The
    rows are a Williams design: zigzag, each round one further, every other one backwards.
    """
    zigzag = [(place + 1) // 2 if place % 2 else -place // 2 for place in range(count)]
    row = [(step + number) % count for step in zigzag]
    return row[::-1] if number % 2 else row


def _ratio(compare: Ratio, load: Slice, limit: Slice) -> float | None:
    """Return how a slice of the load compares; None where the limit took no time at all."""
    if compare is Ratio.RATE:
        return load.rate / limit.rate
    median = statistics.median(limit.latencies)
    return statistics.median(load.latencies) / median if median else None


_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def _figures(candidate: Candidate, slices: Sequence[Slice], entry_bytes: int) -> Figures:
    """Return medians of the slices; latencies and CPU time are of all of them together."""
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
