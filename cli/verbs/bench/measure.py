"""Measuring a load beside its limits, in turns, so that a noisy machine disturbs all of them alike.

A contender runs for a short slice of time, then the next one, and so on, several times over. What
counts is the ratio of two slices of the same round, and of all rounds their median.
"""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

ROUNDS = 5
"""How often every contender has its turn."""


@dataclass
class Slice:
    """What a contender did in one turn.

    Attributes:
        calls: how many calls ended.
        entries: how many entries these carried.
        seconds: from the first call's beginning to the last one's end.
        latencies: seconds of calls; of all, or of some picked evenly.
        cpu: CPU seconds, by who used them: ``client``, ``osd``, ``sequencer``.
        memory: bytes of memory that the contender's processes had at most, so far.
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


class Ratio(Enum):
    """What of two contenders is compared."""

    RATE = "rate"
    """Entries per second: the part of the limit that was reached, 1 at most where it is one."""
    LATENCY = "latency"
    """Medians of latency: how many times as long it takes."""


@dataclass(frozen=True)
class Contender:
    """Something that is measured.

    Attributes:
        name: what, in two or three words.
        how: what is done exactly, one sentence.
        run: does it for so many seconds.
        compare: how the load is compared with it.
    """

    name: str
    how: str
    run: Callable[[float], Slice]
    compare: Ratio = Ratio.RATE


@dataclass(frozen=True)
class Measured:
    """What came of one contender: medians of its slices, latencies and CPU of all of them.

    Attributes:
        name, how, compare: the contender's.
        calls, entries, bytes: per second.
        latencies: milliseconds of a call at p50, p99, p99.9 and at most.
        cpu: microseconds of CPU per entry, by who used them.
        memory: bytes at most.
        ratios: of the load to this limit, round by round; empty for the load itself.
    """

    name: str
    how: str
    compare: Ratio
    calls: float
    entries: float
    bytes: float
    latencies: dict[str, float]
    cpu: dict[str, float]
    memory: int
    ratios: list[float]

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)


def contest(
    load: Contender, limits: Sequence[Contender], seconds: float, entry_bytes: int
) -> list[Measured]:
    """Measure a load and its limits in turns; the load comes first in the result.

    Args:
        load: what is measured.
        limits: what it is measured against.
        seconds: for each contender, over all rounds.
        entry_bytes: bytes of one entry.

    Raises:
        ValueError: a contender got nothing done.
    """
    contenders = [load, *limits]
    slices: list[list[Slice]] = [[] for _ in contenders]
    for number in range(ROUNDS):
        for index in _order(number, len(contenders)):
            done = contenders[index].run(seconds / ROUNDS)
            if not done.calls:
                name = contenders[index].name
                raise ValueError(f"{name}: not one call ended in time; give it more --seconds")
            slices[index].append(done)
    return [
        _summary(contender, own, slices[0] if index else [], entry_bytes)
        for index, (contender, own) in enumerate(zip(contenders, slices, strict=True))
    ]


def _order(number: int, count: int) -> list[int]:
    """Return who comes when in a round: each in another place, and after another one, each time.

    What one leaves behind, as memory that is warm or gone, is good or bad for who comes next. The
    rows are a Williams design: zigzag, each round one further, every other one backwards.
    """
    zigzag = [(place + 1) // 2 if place % 2 else -place // 2 for place in range(count)]
    row = [(step + number) % count for step in zigzag]
    return row[::-1] if number % 2 else row


def _summary(
    contender: Contender, own: list[Slice], load: list[Slice], entry_bytes: int
) -> Measured:
    entries = statistics.median(each.rate for each in own)
    total = sum(each.entries for each in own)
    return Measured(
        name=contender.name,
        how=contender.how,
        compare=contender.compare,
        calls=statistics.median(each.calls / each.seconds for each in own),
        entries=entries,
        bytes=entries * entry_bytes,
        latencies=quantiles([each.latencies for each in own]),
        cpu={
            who: 1e6 * sum(each.cpu.get(who, 0.0) for each in own) / total
            for who in sorted({who for each in own for who in each.cpu})
        },
        memory=max(each.memory for each in own),
        ratios=[
            _ratio(contender.compare, ours, limit) for ours, limit in zip(load, own, strict=False)
        ],
    )


def _ratio(compare: Ratio, load: Slice, limit: Slice) -> float:
    if compare is Ratio.RATE:
        return load.rate / limit.rate
    return statistics.median(load.latencies) / statistics.median(limit.latencies)


_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def quantiles(latencies: Sequence[array[float]]) -> dict[str, float]:
    """Return milliseconds at p50, p99, p99.9 and at most, of all seconds given."""
    ascending = sorted(latency for part in latencies for latency in part)
    last = len(ascending) - 1
    return {
        name: 1e3 * ascending[min(last, int(share * len(ascending)))] if ascending else 0.0
        for name, share in _QUANTILES.items()
    }


def one_after_the_other(first: Slice, second: Slice) -> Slice:
    """Return what comes of doing a call of the first kind and then one of the second, and so on.

    Both have one entry per call and one call at a time.
    """
    latencies = array("d", map(float.__add__, first.latencies, second.latencies))
    each = first.seconds / first.calls + second.seconds / second.calls
    return Slice(len(latencies), len(latencies), each * len(latencies), latencies)
