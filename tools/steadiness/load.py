"""The load: writers, a reader with a cursor, and somebody who trims."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import zlog

CURSOR = "reader"
_SMALL = 100
_READ_SECONDS = 0.2
_TRIM_SECONDS = 1.0


class Load:
    """Runs until it is stopped; every thread has a handle of its own on the log.

    Attributes:
        appended: bytes of data that were acknowledged.
        acknowledged: entries of it.
        read: entries that the reader has seen; as many, when the load has ended.
        filled: positions whose writer took so long that the reader filled them.
        complaints: what went wrong, in words; empty if all is well.
    """

    def __init__(self, url: str, log: str, rate: float, entry_bytes: int) -> None:
        self._url = url
        self._log = log
        self._rate = rate
        self._entry_bytes = entry_bytes
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self.appended = 0
        self.acknowledged = 0
        self.read = 0
        self.filled = 0
        self.complaints: list[str] = []

    @contextmanager
    def running(self, writers: int) -> Iterator[None]:
        """Run for the length of a ``with`` block."""
        tasks = [self._trim, self._follow, *[self._write] * writers]
        threads = [threading.Thread(target=self._guarded, args=(task,)) for task in tasks]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()
        self._guarded(self._read_on)  # what came after the reader's last look
        if self.read != self.acknowledged:
            self.complaints.append(f"{self.acknowledged} acknowledged, {self.read} read")

    def _guarded(self, task: Callable[[zlog.Log], None]) -> None:
        try:
            with zlog.connect(self._url) as store, zlog.Log.open(store, self._log) as log:
                task(log)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is to be told
            self.complaints.append(f"{task.__name__}: {type(error).__name__}: {error}")

    def _write(self, log: zlog.Log) -> None:
        """Append batches and single entries in turn, both at the rate asked for."""
        batch = [bytes(self._entry_bytes)] * 64
        small = bytes(_SMALL)
        began = time.monotonic()
        mine = 0
        while not self._stopped.is_set():
            log.append_many(batch)
            for _ in range(4):
                log.append(small)
            mine += len(batch) * self._entry_bytes + 4 * _SMALL
            with self._lock:
                self.appended += len(batch) * self._entry_bytes + 4 * _SMALL
                self.acknowledged += len(batch) + 4
            self._stopped.wait(max(0.0, began + mine / self._rate - time.monotonic()))

    def _trim(self, log: zlog.Log) -> None:
        while not self._stopped.wait(_TRIM_SECONDS):
            log.apply_retention()

    def _follow(self, log: zlog.Log) -> None:
        while not self._stopped.wait(_READ_SECONDS):
            self._read_on(log)

    def _read_on(self, log: zlog.Log) -> None:
        """Read in order from the cursor to the tail; no trim may take what was not read."""
        cursor = log.cursor(CURSOR)
        expected = cursor.position
        for item in log.read_range(expected):
            if item.position != expected:
                self.complaints.append(f"after position {expected - 1} came {item.position}")
            if isinstance(item, zlog.Entry):
                self.read += 1
            elif item.kind is zlog.GapKind.FILLED:
                self.filled += item.positions
            else:
                self.complaints.append(f"a gap: {item}")
            expected = item.end
        cursor.commit(expected)
