"""What a benchmark runs, and what came of it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Workload:
    """A load of appends.

    Attributes:
        url: the store's.
        log: the log's name.
        size: bytes of one entry.
        batch: entries that one call appends.
        writers: processes that append at the same time.
        depth: calls that each writer has in flight.
        width: stripe objects of the log.
        seconds: how long it takes.
        timeout: seconds for one call; None for no limit.
    """

    url: str
    log: str
    size: int
    batch: int
    writers: int
    depth: int
    width: int
    seconds: float
    timeout: float | None

    @property
    def in_flight(self) -> int:
        """Appends in flight altogether."""
        return self.writers * self.depth

    @property
    def operations_per_append(self) -> int:
        """Writes to stripe objects that one append takes: each object gets its entries in one."""
        return min(self.batch, self.width)

    @property
    def entries_per_operation(self) -> float:
        """Entries in one write to a stripe object, on average."""
        return self.batch / self.operations_per_append


class Sample(NamedTuple):
    """What one writer did.

    Attributes:
        calls: how many calls ended.
        seconds: the time from the first call's beginning to the last one's end.
        latencies: seconds of each call.
    """

    calls: int
    seconds: float
    latencies: array[float]


class Rate(NamedTuple):
    """How fast something went.

    Attributes:
        name: what.
        calls: calls per second.
        entries: entries per second.
        bytes: bytes of entries per second.
        latencies: milliseconds that a call took: at p50, p99, p99.9 and at most.
        how: what was done exactly, one sentence.
    """

    name: str
    calls: float
    entries: float
    bytes: float
    latencies: dict[str, float]
    how: str


_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def rate_of(name: str, samples: list[Sample], entries_per_call: float, size: int, how: str) -> Rate:
    """Add up what writers did at the same time.

    Raises:
        ValueError: not a single call ended.
    """
    latencies = sorted(latency for sample in samples for latency in sample.latencies)
    if not latencies:
        raise ValueError(f"{name}: not a single call ended in time; give it more --seconds")
    calls = sum(sample.calls / sample.seconds for sample in samples)
    entries = calls * entries_per_call
    quantiles = {
        quantile: 1e3 * latencies[min(len(latencies) - 1, int(share * len(latencies)))]
        for quantile, share in _QUANTILES.items()
    }
    return Rate(name, calls, entries, entries * size, quantiles, how)
