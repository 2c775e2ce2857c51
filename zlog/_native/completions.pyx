"""Replies of stores, the queue in which they arrive, and waits that signals can interrupt."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_CheckSignals
from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector
from posix.unistd cimport getpid

from zlog._native.host cimport CppBuffer, CppCompletion, CppCompletionQueue, bytes_of, view_of

import math
import time
from typing import TypeAlias

from zlog.errors import CorruptEntry, StoreUnavailable, UnsupportedVersion


cdef class Payload:
    """A large reply in the store's memory. It is bytes-like and read-only."""

    def __len__(self) -> int:
        return <Py_ssize_t> self.buffer.bytes.size()

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(
            view,
            self,
            <void*> self.buffer.bytes.data(),
            <Py_ssize_t> self.buffer.bytes.size(),
            True,
            flags,
        )


ReplyBytes: TypeAlias = bytes | Payload
"""The reply of a method. Large replies of submitted operations are not copied."""


# Below this, copying a reply is cheaper than keeping it.
cdef enum:
    PAYLOAD_BYTES_MIN = 4096


cdef object reply_of(const CppBuffer& reply):
    cdef Payload kept
    if reply.bytes.size() < PAYLOAD_BYTES_MIN:
        return bytes_of(reply.bytes)
    kept = Payload.__new__(Payload)
    kept.buffer = reply
    return kept


cdef string_view reply_view(reply) except *:
    if isinstance(reply, Payload):
        return (<Payload> reply).buffer.bytes
    if not isinstance(reply, bytes):
        raise TypeError(f"a reply must be bytes, not {type(reply).__name__}")
    return view_of(<bytes> reply)


cdef object keeper(reply, const CppBuffer& plain):
    cdef Payload kept
    if plain.bytes.data() == NULL:
        return reply
    kept = Payload.__new__(Payload)
    kept.buffer = plain
    return kept


cdef int well_formed(int decoded, str what) except -1:
    if decoded == 2:
        raise UnsupportedVersion(f"a newer version of zlog wrote the {what} that was read")
    if decoded != 0:
        raise CorruptEntry(f"the store answered with a malformed {what}")
    return 0


cdef class Wait:
    def __cinit__(self, timeout: float | None):
        if timeout is not None and math.isnan(timeout):
            raise ValueError("a timeout must be a number of seconds")
        self.deadline = None if timeout is None else time.monotonic() + timeout

    cdef int slice_ms(self, int most) except -1:
        if self.deadline is None:
            return most
        return <int> math.ceil(min(max(self.deadline - time.monotonic(), 0) * 1000, most))

    cdef bint over(self) except -1:
        PyErr_CheckSignals()
        return self.deadline is not None and time.monotonic() >= self.deadline


cdef class CompletionQueue:
    """The results of submitted operations, for one consumer.

    It is thread-safe, but does not work in a forked child.
    """

    def __cinit__(self):
        self.queue.reset(new CppCompletionQueue())
        self.pid = getpid()

    cdef int check_process(self) except -1:
        if self.pid != getpid():
            raise StoreUnavailable(
                "a completion queue does not work in a forked child",
                hint="Create a new queue in the child process.",
                retryable=False,
            )
        return 0

    def fileno(self) -> int:
        """Return a descriptor that is readable exactly while results are waiting."""
        return deref(self.queue).fileno()

    def put(self, uint64_t token, int code, bytes reply not None) -> None:
        """Add a result. Stores that are written in Python call this."""
        cdef CppCompletion done
        self.check_process()
        done.token, done.code, done.reply = token, code, CppBuffer.of(<string> reply)
        deref(self.queue).push(done)

    def drain(self) -> list[tuple[int, int, ReplyBytes]]:
        """Return all waiting results as ``(token, code, reply)``, without blocking."""
        cdef vector[CppCompletion] taken
        cdef size_t i
        self.check_process()
        taken = deref(self.queue).drain()
        out = []
        for i in range(taken.size()):
            out.append((taken[i].token, taken[i].code, reply_of(taken[i].reply)))
        return out

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for results. Returns False after ``timeout`` seconds. Ctrl-C interrupts the wait."""
        cdef Wait budget = Wait(timeout)
        cdef CppCompletionQueue* queue = self.queue.get()
        cdef int slice_ms
        cdef bint ready
        self.check_process()
        while True:
            slice_ms = budget.slice_ms(SLICE_MS)
            with nogil:
                ready = queue.wait(slice_ms)
            if ready:
                return True
            if budget.over():
                return False
