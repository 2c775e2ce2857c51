"""What waits for a position or a time, found by either without a scan."""

from __future__ import annotations

import heapq
from itertools import count
from typing import Generic, Protocol, TypeVar

_COMPACT_MIN = 64


class Waiting(Protocol):
    """One that waits until it is answered."""

    answered: bool


W = TypeVar("W", bound=Waiting)


class WaitHeap(Generic[W]):
    """Waits in the order of a number: a position, or a time in seconds.

    A wait that was answered through the other heap stays until it comes up, or until more than
    half of the heap is such; so the heap never holds more than about twice what is waiting.
    """

    __slots__ = ("_answered", "_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, W]] = []
        self._order = count()
        self._answered = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, key: float, wait: W) -> None:
        """Add a wait under ``key``."""
        heapq.heappush(self._heap, (key, next(self._order), wait))

    def first(self) -> float | None:
        """Return the lowest key of a wait that has no answer yet; None without such a wait."""
        heap = self._heap
        while heap and heap[0][2].answered:
            heapq.heappop(heap)
            self._answered -= 1
        return heap[0][0] if heap else None

    def pop_through(self, key: float) -> list[W]:
        """Remove the waits up to and including ``key``; return those that have no answer yet."""
        waits = []
        heap = self._heap
        while heap and heap[0][0] <= key:
            wait = heapq.heappop(heap)[2]
            if wait.answered:
                self._answered -= 1
            else:
                waits.append(wait)
        return waits

    def note_answered(self) -> None:
        """Count one of the waits in here as answered through the other heap."""
        self._answered += 1
        if self._answered > _COMPACT_MIN and 2 * self._answered > len(self._heap):
            self._heap = [item for item in self._heap if not item[2].answered]
            heapq.heapify(self._heap)
            self._answered = 0
