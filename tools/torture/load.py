"""The load: one writer that appends until it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import zlog


class Load:
    """Appends numbers, from 0 on, each once.

    Attributes:
        acknowledged: entries that were appended.
        error: what ended it before its time.
    """

    def __init__(self, log: zlog.Log, rate: int) -> None:
        self._log = log
        self._rate = rate
        self._stopped = threading.Event()
        self.acknowledged = 0
        self.error: Exception | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Append for the length of a ``with`` block."""
        thread = threading.Thread(target=self._append)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _append(self) -> None:
        step = max(1, self._rate // 20)
        began = time.monotonic()
        try:
            while not self._stopped.is_set():
                first = self.acknowledged
                self._log.append_many([b"%d" % (first + i) for i in range(step)])
                self.acknowledged += step
                due = began + self.acknowledged / self._rate
                self._stopped.wait(max(0.0, due - time.monotonic()))
        except Exception as error:  # noqa: BLE001  # told at the end
            self.error = error
