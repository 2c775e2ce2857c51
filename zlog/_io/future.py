"""Futures for threads that submit entries."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures._base import CANCELLED, FINISHED, PENDING, RUNNING
from typing import Any, TypeVar

T = TypeVar("T")


class LazyFuture(Future[T]):
    """A ``concurrent.futures.Future`` that has no condition until another thread needs it.

    To make, acquire and notify a condition takes most of the time of an ordinary future. One thread
    sets the state without a lock, and then looks for a condition. All others make the condition
    before they look at the state. So one of the two sees what the other has done.
    """

    def __init__(self) -> None:
        # The attributes of the base class, which are also part of ``concurrent.futures.wait()``.
        self._state = PENDING
        self._result = self._exception = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        made: threading.Condition | None = self.__dict__.get("_made")
        return made or self.__dict__.setdefault("_made", threading.Condition())

    def cancel(self) -> bool:
        """See the base class."""
        return self.__dict__.setdefault("_first", CANCELLED) is CANCELLED and super().cancel()

    def set_running_or_notify_cancel(self) -> bool:
        """See the base class."""
        if self.__dict__.setdefault("_first", RUNNING) is CANCELLED:
            return super().set_running_or_notify_cancel()
        self._state = RUNNING
        return True

    def set_result(self, result: T) -> None:
        """Set the result of a running future, once."""
        self._result = result
        self._finish()

    def set_exception(self, exception: BaseException | None) -> None:
        """Set the error of a running future, once."""
        self._exception = exception
        self._finish()

    def _finish(self) -> None:
        self._state = FINISHED
        if "_made" not in self.__dict__:
            return
        with self._condition:
            for waiter in self._waiters:
                (waiter.add_result if self._exception is None else waiter.add_exception)(self)
            self._condition.notify_all()
        self._invoke_callbacks()  # type: ignore[attr-defined]
