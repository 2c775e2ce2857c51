"""Writers that append without a pause, and say when an append began and ended."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import zlog

if TYPE_CHECKING:
    from typing_extensions import Self

_ENTRY = b"x" * 100
_STALL_SECONDS_MAX = 60.0


class SteadyWriters:
    """Threads that append one entry after the other, each through a handle of its own.

    Args:
        store: where the log is.
        name: of the log.
        count: how many threads.
        timeout: seconds for one append; None for no limit.
    """

    def __init__(self, store: zlog.Store, name: str, count: int, timeout: float | None) -> None:
        self._store = store
        self._name = name
        self._timeout = timeout
        self._changed = threading.Condition()
        self._since = float("inf")
        self._found: dict[int, float] = {}
        self._error: BaseException | None = None
        self._stopping = False
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopping = True
        for thread in self._threads:
            thread.join()

    def wait_for_all(self) -> None:
        """Wait until every writer has appended something from now on."""
        self.first_since(time.monotonic())

    def first_since(self, moment: float) -> list[float]:
        """Return when each writer's first append that began after a moment was acknowledged.

        Args:
            moment: on ``time.monotonic``, in the past.

        Raises:
            StoreTimeout: some writer did not get there.
            ZlogError: what an append failed with.
        """
        with self._changed:
            self._since, self._found = moment, {}
            self._changed.wait_for(
                lambda: self._error or len(self._found) == len(self._threads), _STALL_SECONDS_MAX
            )
            if self._error is not None:
                raise self._error
            if len(self._found) < len(self._threads):
                raise zlog.StoreTimeout(f"nothing was appended for {_STALL_SECONDS_MAX:g} s")
            self._since = float("inf")
            return list(self._found.values())

    def _run(self, number: int) -> None:
        try:
            with zlog.Log.open(self._store, self._name, timeout=self._timeout) as log:
                while not self._stopping:
                    began = time.monotonic()
                    log.append(_ENTRY)
                    self._note(number, began, time.monotonic())
        except BaseException as error:  # noqa: BLE001  # the thread that waits raises it
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _note(self, number: int, began: float, ended: float) -> None:
        with self._changed:
            if began >= self._since and number not in self._found:
                self._found[number] = ended
                self._changed.notify_all()
