"""The futures of submitted entries.

To make an ``asyncio.Future`` takes 0.3 µs, a quarter of the cost of a submitted entry. Few of these
futures have callbacks, and the others do not call the event loop.
"""

import asyncio
import contextvars
from asyncio import CancelledError, InvalidStateError
from collections.abc import Generator
from typing import Any


cdef class Submitted:  # asyncio.Future[int]
    """The future of a submitted entry's position.

    It has the interface of an ``asyncio.Future``, which takes longer to make.
    """

    def __await__(self) -> Generator[Any, None, int]:
        if not self.over:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.loop

    def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
        context = contextvars.copy_context() if context is None else context
        if self.over:
            self.loop.call_soon(callback, self, context=context)
        else:
            self.callbacks = [*(self.callbacks or ()), (callback, context)]

    def remove_done_callback(self, callback: Any) -> int:
        callbacks = self.callbacks or []
        self.callbacks = [each for each in callbacks if each[0] != callback]
        return len(callbacks) - len(self.callbacks)

    def cancel(self, msg: Any = None) -> bool:
        return self.complete(None, CancelledError() if msg is None else CancelledError(msg))

    def done(self) -> bool:
        return self.over

    def cancelled(self) -> bool:
        return isinstance(self.error, CancelledError)

    def exception(self) -> BaseException | None:
        if not self.over:
            raise InvalidStateError("the entry is not in the log yet")
        self.seen = True
        if self.cancelled():
            raise self.error
        return self.error

    def result(self) -> int:
        if not self.over or self.error is not None:
            raise self.exception().with_traceback(None)
        return self.position

    def _make_cancelled_error(self):  # for asyncio.gather()
        return self.error

    cdef bint complete(self, position, error) except -1:
        if self.over:
            return False
        self.over, self.position, self.error = True, position, error
        callbacks, self.callbacks = self.callbacks, None
        for callback, context in callbacks or ():
            self.loop.call_soon(callback, self, context=context)
        return True

    def __del__(self) -> None:
        if self.error is not None and not self.seen and not self.cancelled():
            message = "the error of a submitted entry was never retrieved"
            self.loop.call_exception_handler({"message": message, "exception": self.error})
