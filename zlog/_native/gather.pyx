"""Gathers appends into rounds that are sent together, and has the coroutines that wait for them.

With thousands of appends in flight, most of the cost is the interpreter's work for each of them.
Here an append is a single object: both the coroutine that is awaited and the future that its task
waits for. Tasks advance it through the slot that generators have (am_send), which returns results
without an exception, and one callback of the event loop wakes the tasks of a whole round.
"""

cimport cython
from cpython.exc cimport PyErr_WarnEx
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from zlog._native.clock cimport monotonic_seconds
from zlog._native.new_entries cimport TAG_NAMES_BYTES_MAX, EntryLimit, Tagged, tags_size
from zlog._native.submitted cimport Submitted

import asyncio
import contextvars
from asyncio import CancelledError
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any

from zlog._native.new_entries import NewEntry

cdef extern from "Python.h":
    void Py_DECREF_PTR "Py_DECREF"(PyObject* object)
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT
    ctypedef PySendResult (*sendfunc)(PyObject*, PyObject*, PyObject**) except PYGEN_ERROR
    ctypedef struct PyAsyncMethods:
        sendfunc am_send
    ctypedef struct TypeSlots "PyTypeObject":
        PyAsyncMethods* tp_as_async
    int PyContext_Enter(object context) except -1
    int PyContext_Exit(object context) except -1
    object PyObject_CallOneArg(object function, object argument)


cdef double NEVER = float("inf")


# The states of an append.
cdef enum AppendState:
    NEW  # not awaited yet
    SUBMITTED  # waiting, first in a gathering and then in a round
    COMPLETED  # has a position or an error, which its task has not received yet
    OVER


@cython.freelist(1024)
cdef class Append:  # Coroutine[Any, Any, int]
    """A pending append: a coroutine that returns the position of its entry.

    The entry is submitted when the append is awaited, not earlier. The append is also the future
    that the awaiting task waits for. If it is cancelled before its round is sent, it is not sent.
    """

    cdef Gathering gathering
    cdef object data
    cdef Py_ssize_t size  # the size in bytes, with tags
    cdef Py_ssize_t tags  # the size of the tags in bytes
    cdef double deadline
    cdef AppendState state
    cdef bint blocking
    cdef object callback
    cdef object context
    cdef Submitted future  # of a submitted entry, which no task awaits
    cdef object position
    cdef object error

    # The interface of a coroutine.

    def __await__(self) -> Generator[Any, Any, int]:
        return self

    def __iter__(self) -> Generator[Any, Any, int]:  # for `yield from`
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: None) -> Any:
        cdef PyObject* out = NULL
        cdef PySendResult result = advance(<PyObject*> self, NULL, &out)
        answer = <object> out
        Py_DECREF_PTR(out)
        if result == PYGEN_NEXT:
            return answer
        raise StopIteration(answer)

    def throw(self, kind: Any, value: Any = None, trace: Any = None) -> Any:
        self.end()
        error = kind if value is None else value
        if isinstance(error, type):
            error = error()
        raise error if trace is None else error.with_traceback(trace)

    def close(self) -> None:
        self.end()

    @property
    def __name__(self) -> str:
        return "append"

    @property
    def __qualname__(self) -> str:
        return "Log.append"

    # The part of a future's interface that tasks use.

    @property
    def _asyncio_future_blocking(self):
        # None before the append is awaited, so that asyncio.ensure_future() wraps it in a task.
        return self.blocking if self.state in (SUBMITTED, COMPLETED) else None

    @_asyncio_future_blocking.setter
    def _asyncio_future_blocking(self, bint blocking):
        self.blocking = blocking

    def get_loop(self) -> Any:
        return None if self.gathering is None else self.gathering.loop

    def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
        if self.state != SUBMITTED or self.callback is not None:
            raise awaited_twice()
        self.context = contextvars.copy_context() if context is None else context
        self.callback = callback

    def cancel(self, msg: Any = None) -> bool:
        if self.state != SUBMITTED:
            return False
        self.complete(None, CancelledError() if msg is None else CancelledError(msg))
        if self.callback is not None:
            self.gathering.loop.call_soon(self.callback, self, context=self.context)
        return True

    def done(self) -> bool:
        return self.state in (COMPLETED, OVER)

    def result(self) -> int:
        if self.error is not None:
            raise self.error
        return self.position

    cdef int complete(self, position, error) except -1:
        self.state, self.position, self.error = COMPLETED, position, error
        if self.future is not None:
            self.future.complete(position, error)
        return 0

    cdef bint wanted(self) noexcept:
        return self.state == SUBMITTED and (self.future is None or not self.future.over)

    cdef int end(self) except -1:
        self.state = OVER
        self.gathering = self.data = self.callback = self.context = None
        return 0

    def __dealloc__(self):
        if self.state == NEW:
            PyErr_WarnEx(RuntimeWarning, "an append to a log was never awaited", 1)


cdef awaited_twice():
    return RuntimeError("an append to a log can be awaited only once")


# Advances an append: submits it, and returns its position once it is completed.
cdef PySendResult advance(PyObject* this, PyObject* _, PyObject** out) except PYGEN_ERROR:
    cdef Append append = <Append> this
    cdef PySendResult result = PYGEN_NEXT
    if append.state == NEW:
        append.state = OVER  # stays so if submit fails
        append.gathering.enter(append)
        append.state, append.blocking = SUBMITTED, True
        answer = append
    elif append.state == COMPLETED:
        error, answer, result = append.error, append.position, PYGEN_RETURN
        append.error = None
        append.end()
        if error is not None:
            raise error
    else:
        raise awaited_twice()
    Py_INCREF(answer)
    out[0] = <PyObject*> answer
    return result


(<TypeSlots*> Append).tp_as_async.am_send = advance


cdef class Gathering:
    """The entries of concurrent appends in one event loop, which wait to be sent together.

    Entries above ``waiting_bytes_max`` are blocked until there is space, in the order of the calls.
    Callers of `submit` should also wait if ``waiting_max`` entries are waiting.
    It is not thread-safe: everything happens in the loop's thread.

    Attributes:
        waiting_bytes: the number of bytes of waiting entries, without blocked ones.
        alert: whether the loop calls ``send``, once, when the next entry is submitted.
    """

    cdef object loop
    cdef object send
    cdef object appender
    cdef double timeout
    cdef object clock  # None means the machine's clock
    cdef EntryLimit limit
    cdef list waiting
    cdef list blocked  # appends that wait until there is space
    cdef list completed  # appends whose tasks must be woken
    cdef readonly Py_ssize_t waiting_bytes
    cdef Py_ssize_t waiting_max
    cdef Py_ssize_t waiting_bytes_max
    cdef public bint alert

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        send: Callable[[], object],
        appender: Any,
        Py_ssize_t waiting_max,
        Py_ssize_t waiting_bytes_max,
        timeout: float | None,
        clock: Callable[[], float] | None = None,
    ):
        """Gather entries for ``loop``. ``appender`` checks them.

        An entry is late if it is not taken within ``timeout`` seconds after it was submitted.
        ``clock`` replaces the machine's clock, which is faster.
        """
        self.loop, self.send, self.appender = loop, send, appender
        self.limit = appender.limit
        self.waiting_max, self.waiting_bytes_max = waiting_max, waiting_bytes_max
        self.timeout = NEVER if timeout is None else timeout
        self.clock = clock
        self.waiting, self.blocked, self.completed = [], [], []
        self.alert = True

    def append(self, data: NewEntry) -> Append:
        """Return the coroutine that appends an entry."""
        cdef Append append = Append.__new__(Append)
        append.gathering, append.data = self, data
        return append

    def submit(self, data: NewEntry) -> asyncio.Future[int]:
        """Submit an entry, and return the future of its position."""
        cdef Append append = Append.__new__(Append)
        append.data, append.state = data, OVER  # stays so if this fails
        self.enter(append)
        append.state, append.future = SUBMITTED, Submitted.__new__(Submitted)
        append.future.loop = self.loop
        return append.future

    @property
    def full(self) -> bool:
        """Whether callers of `submit` should wait."""
        return (
            len(self.waiting) >= self.waiting_max
            or self.waiting_bytes >= self.waiting_bytes_max or len(self.blocked) > 0
        )

    def __len__(self) -> int:
        """Return how many appends are waiting, including blocked ones."""
        return len(self.waiting) + len(self.blocked)

    cdef int enter(self, Append append) except -1:
        data = append.data
        if type(data) is Tagged:
            if len(<Tagged> data) > self.limit.bytes_max:
                self.appender.check((data,))
            append.tags = tags_size(<Tagged> data)
            append.size = len(<Tagged> data) + append.tags
        elif type(data) is not bytes or len(<bytes> data) > self.limit.bytes_max:
            self.appender.check((data,))
            data = append.data = bytes(data)  # a buffer may change later
        if type(data) is bytes:
            append.size = len(<bytes> data)
        append.deadline = self.now() + self.timeout
        if self.blocked or not self.space_for(append):
            self.blocked.append(append)
        else:
            self.let_in(append)
        if self.alert:
            self.alert = False
            # Not at once, so that appends made in the same iteration of the loop join the round.
            self.loop.call_soon(self.send)
        return 0

    cdef double now(self) except? -1:
        return monotonic_seconds() if self.clock is None else self.clock()

    cdef bint space_for(self, Append append) noexcept:
        return not self.waiting or self.waiting_bytes + append.size <= self.waiting_bytes_max

    cdef int let_in(self, Append append) except -1:
        self.waiting.append(append)
        self.waiting_bytes += append.size
        return 0

    def take(
        self, Py_ssize_t entries_max, Py_ssize_t bytes_max
    ) -> tuple[list[NewEntry], list[Append], list[Append]]:
        """Take the appends that have waited longest: as many as the limits allow, but at least one.

        Returns:
            The entries, their appends, and the appends that are too late to be sent.
        """
        cdef Append append
        cdef Py_ssize_t taken = 0, size = 0, tags = 0
        cdef double now = self.now()
        cdef list entries = [], appends = [], late = []
        while taken < len(self.waiting) and len(entries) < entries_max and size < bytes_max:
            append = <Append> self.waiting[taken]
            tags += append.tags
            if tags > TAG_NAMES_BYTES_MAX and entries:
                break
            taken += 1
            size += append.size
            if not append.wanted():
                continue  # the append was cancelled
            if append.deadline <= now:
                late.append(append)
                continue
            entries.append(append.data)
            appends.append(append)
        del self.waiting[:taken]
        self.waiting_bytes -= size
        self.let_in_blocked()
        return entries, appends, late

    cdef int let_in_blocked(self) except -1:
        cdef Py_ssize_t count = 0
        while count < len(self.blocked) and self.space_for(<Append> self.blocked[count]):
            self.let_in(<Append> self.blocked[count])
            count += 1
        del self.blocked[:count]
        return 0

    def complete(
        self, list appends not None: list[Append], outcomes: Iterable[int | BaseException]
    ) -> None:
        """Give each append its position or its error. The event loop then wakes their tasks."""
        cdef Append append
        cdef bint wake = not self.completed
        for append, outcome in zip(appends, outcomes, strict=True):
            if append.state != SUBMITTED:
                continue
            if isinstance(outcome, BaseException):
                append.complete(None, outcome)
            else:
                append.complete(outcome, None)
            if append.future is None:
                self.completed.append(append)
        if wake and self.completed:
            self.loop.call_soon(self.wake)

    def wake(self) -> None:
        """Wake tasks. Only the event loop calls this."""
        cdef Append append
        cdef list woken = self.completed
        cdef Py_ssize_t i = 0
        self.completed = []
        try:
            while i < len(woken):
                append = <Append> woken[i]
                i += 1
                context, callback = append.context, append.callback
                if callback is None:
                    continue  # no task drives this append
                PyContext_Enter(context)
                try:
                    PyObject_CallOneArg(callback, append)
                finally:
                    PyContext_Exit(context)
        finally:
            if i < len(woken):
                # A task ended the loop (KeyboardInterrupt). Wake the others when it runs again.
                self.completed = woken[i:] + self.completed
                self.loop.call_soon(self.wake)
