"""Entries of all threads that wait to be stored, in the order of the calls."""

from __future__ import annotations

import copy
import threading
from collections import deque
from concurrent.futures import Future
from typing import NamedTuple

from zlog.errors import StoreUnavailable
from zlog.spool._local import BATCH_BYTES, BATCH_ENTRIES, SpoolEntry, size_of

_BYTES_MAX = 16 << 20


class Unit(NamedTuple):
    """Entries of one call, and the future that ends when they are durable."""

    entries: list[SpoolEntry]
    size: int
    outcome: Future[None]


class Queue:
    """A queue of units with one consumer. Its methods are thread-safe."""

    def __init__(self) -> None:
        self._units: deque[Unit] = deque()
        self._size = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def empty(self) -> bool:
        """Whether all units that were put are done."""
        return not self._units

    def put(self, entries: list[SpoolEntry]) -> Future[None]:
        """Add a unit. Waits while 16 MiB are in the queue. Raises StoreUnavailable if closed."""
        unit = Unit(entries, sum(map(size_of, entries)), Future())
        unit.outcome.set_running_or_notify_cancel()  # it cannot be cancelled
        with self._changed:
            self._changed.wait_for(lambda: self._size <= _BYTES_MAX or self._closed)
            if self._closed:
                raise StoreUnavailable("the spool is closed", hint="Open it.", retryable=False)
            self._units.append(unit)
            self._size += unit.size
            self._changed.notify_all()
        return unit.outcome

    def take(self) -> list[Unit]:
        """Wait for units, and return as many as fit into a batch; none if the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._units or self._closed)
            units: list[Unit] = []
            count = size = 0
            for unit in self._units:
                count, size = count + len(unit.entries), size + unit.size
                if units and (count > BATCH_ENTRIES or size > BATCH_BYTES):
                    break
                units.append(unit)
            return units

    def done(self, units: list[Unit], error: BaseException | None) -> None:
        """Remove the units that were taken, and end their futures."""
        with self._changed:
            for unit in units:
                self._units.popleft()
                self._size -= unit.size
            self._changed.notify_all()
        for unit in units:
            if error is None:
                unit.outcome.set_result(None)
            else:
                unit.outcome.set_exception(copy.copy(error))

    def close(self) -> None:
        """Refuse new units. Those in the queue can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
