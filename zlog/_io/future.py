"""Futures for threads that submit entries."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures._base import CANCELLED, FINISHED, PENDING, RUNNING
from typing import Any, TypeVar

T = TypeVar("T")

_NOBODY = threading.Condition()
"""Stands for the condition of a future that was finished before another thread needed one."""


class LazyFuture(Future[T]):
    """A ``concurrent.futures.Future`` that has no condition until another thread needs it.

    To make, acquire and notify a condition takes most of the time of an ordinary future. The thread
    that finishes the future needs the condition only if another one has made it before. If none
    has, no thread can have seen an earlier state under the condition, or have added a callback.
    """

    def __init__(self) -> None:
        # The attributes of the base class, which are also part of ``concurrent.futures.wait()``.
        self._state = PENDING
        self._result = self._exception = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        fields = self.__dict__
        made: threading.Condition | None = fields.get("_made")
        made = made or fields.setdefault("_made", threading.Condition())
        if made is _NOBODY:
            self._state = FINISHED  # the finishing thread may not have come this far
            made = fields.get("_late") or fields.setdefault("_late", threading.Condition())
        return made

    def done(self) -> bool:
        """See the base class."""
        return self._state not in (PENDING, RUNNING)

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
        if self.__dict__.setdefault("_made", _NOBODY) is _NOBODY:
            self._state = FINISHED
            return
        with self._condition:
            self._state = FINISHED
            for waiter in self._waiters:
                (waiter.add_result if self._exception is None else waiter.add_exception)(self)
            self._condition.notify_all()
        self._invoke_callbacks()  # type: ignore[attr-defined]
