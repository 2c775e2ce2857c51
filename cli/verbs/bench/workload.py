"""What appending benchmarks are told to do."""

from __future__ import annotations

from dataclasses import dataclass

_OBJECT_BYTES_MAX = 48 << 20
"""A turn ends, and the next one takes a new log, when stripe objects are this full."""


@dataclass(frozen=True)
class Workload:
    """A load of appends.

    Attributes:
        size: bytes of one entry.
        batch: entries that one call appends.
        writers: processes that append at the same time.
        depth: calls that each writer has in flight.
        width: stripe objects of the log.
        alone: appends in flight don't travel together: an operation carries one call's entries.
    """

    size: int
    batch: int
    writers: int
    depth: int
    width: int
    alone: bool = False

    @property
    def in_flight(self) -> int:
        """Entries on their way, altogether."""
        return self.writers * self.depth * self.batch

    @property
    def calls_max(self) -> int:
        """Calls of one writer in one turn, at most: what a log's objects should hold."""
        entry_bytes = self.batch * (self.size + 1)
        return max(1, _OBJECT_BYTES_MAX * self.width // entry_bytes // self.writers)


@dataclass(frozen=True)
class Traffic:
    """How a load's entries travelled.

    Attributes:
        per_operation: entries in one write to a stripe object, on average.
        operations: such writes that are in flight at the same time.
        width: stripe objects.
    """

    per_operation: float
    operations: int
    width: int

    @property
    def batch(self) -> int:
        """Entries that leave together, for all stripe objects."""
        return 1 if self.per_operation < 1.5 else round(self.per_operation * self.width)

    @property
    def lanes(self) -> int:
        """How many such batches are in flight."""
        operations_per_batch = min(self.batch, self.width)
        return max(1, round(self.operations / operations_per_batch))
