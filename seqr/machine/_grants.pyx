# cython: language_level=3, binding=True, embedsignature=False
"""The sequencer's hot path: NEXT and TAIL are answered in C++, a chunk at a time.

``seqr/machine/native/grants.h`` has the rules. This module stores the data that they work on: tails
and epochs, and the bytes of a stream that were not processed yet. The machine uses the same data.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint16_t, uint64_t
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from types import GenericAlias
from typing import TYPE_CHECKING

from zlog._sequencer.frames import FRAME, RawFrame

if TYPE_CHECKING:
    from typing import Generic, TypeVar

    _Log = TypeVar("_Log", bound=LogTail)


cdef extern from "seqr/machine/native/grants.h" namespace "zlog::seqr" nogil:
    const size_t kFrameBytes
    const uint64_t kPositionMax

    cdef cppclass CppLogTail "zlog::seqr::LogTail":
        uint64_t epoch
        uint64_t tail
        uint64_t wake_at

    cdef cppclass CppCounters "zlog::seqr::Counters":
        uint64_t requests
        uint64_t grants

    size_t leading(string_view stream)
    void answer(
        string_view stream,
        size_t count,
        const vector[CppLogTail*]& logs,
        char* answers,
        double* allowance,
        CppCounters* counters,
        vector[uint16_t]* passed,
    ) except +


cdef class LogTail:
    """The state of a log that NEXT and TAIL use. All numbers are 0 to 2^64 - 1.

    Attributes:
        epoch: the epoch of the grants; 0 if the log is not active.
        tail: the next position to grant.
        wake_at: no request waits for a position below this one.
    """

    cdef CppLogTail log

    @property
    def epoch(self) -> int:
        return self.log.epoch

    @epoch.setter
    def epoch(self, uint64_t value) -> None:
        self.log.epoch = value

    @property
    def tail(self) -> int:
        return self.log.tail

    @tail.setter
    def tail(self, uint64_t value) -> None:
        self.log.tail = value

    @property
    def wake_at(self) -> int:
        return self.log.wake_at

    @wake_at.setter
    def wake_at(self, uint64_t value) -> None:
        self.log.wake_at = value


cdef class Counters:
    """Counters over all streams since the start, and limits of each stream.

    Attributes:
        requests: the number of requests.
        due: when the machine must read the counters. After this time, nothing is answered here
            until the machine has set a later time.
        positions_burst: positions that a stream may take at once, not counting grants of one.
        positions_per_s: growth of this allowance per second.
    """

    cdef CppCounters counters
    cdef public double due
    cdef public double positions_burst
    cdef public double positions_per_s

    def __cinit__(self):
        self.positions_burst = float("inf")

    @property
    def requests(self) -> int:
        return self.counters.requests

    @requests.setter
    def requests(self, uint64_t value) -> None:
        self.counters.requests = value

    @property
    def grants(self) -> int:
        """Number of NEXT requests that were granted."""
        return self.counters.grants


cdef class Stream:  # Generic[_Log]
    """The requests of a connection.

    Pass each chunk to ``answer``. While the stream is ``unfinished`` then, handle the results of
    ``take_passed`` and ``take``, and call ``answer(b"", now)``.

    Attributes:
        closed: whether the connection has ended. Later chunks are ignored.
        expects_requests: whether the next frame is a request. The machine sets it after the HELLO,
            and clears it while the payload of an OPEN arrives.
    """

    cdef Counters counters
    cdef list opened  # the owners of `tails`; None for closed handles
    cdef vector[CppLogTail*] tails
    cdef vector[uint16_t] unused
    cdef vector[uint16_t] passed
    cdef double allowance
    cdef double allowed_at
    cdef bytes chunk
    cdef Py_ssize_t at
    cdef readonly bint closed
    cdef public bint expects_requests

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, Counters counters not None):
        self.counters = counters
        self.opened = []
        self.chunk = b""
        self.allowance = counters.positions_burst

    @property
    def unfinished(self) -> bool:
        """Whether ``take`` or ``take_passed`` has something to return."""
        return self.left() >= <Py_ssize_t>kFrameBytes or not self.passed.empty()

    def log(self, size_t handle) -> _Log | None:
        """Return the log of a handle; None if the handle is not open."""
        return self.opened[handle] if handle < self.tails.size() else None

    def add(self, log: _Log) -> int:
        """Open a log; return its handle."""
        cdef LogTail tail = <LogTail?>log
        cdef size_t handle = self.tails.size()
        if self.unused.empty():
            self.opened.append(log)
            self.tails.push_back(&tail.log)
        else:
            handle = self.unused.back()
            self.unused.pop_back()
            self.opened[handle] = log
            self.tails[handle] = &tail.log
        return handle

    def remove(self, size_t handle) -> None:
        """Close an open handle. A log that is opened later may get its number."""
        self.opened[handle] = None
        self.tails[handle] = NULL
        self.unused.push_back(<uint16_t>handle)

    def answer(self, bytes data not None, double now) -> bytes:
        """Take a chunk of any length, and return the answers to its first requests.

        Every NEXT and TAIL before the first other frame is answered. The rest is kept.
        """
        cdef size_t count
        cdef bytes answers
        if self.closed:
            return b""
        self.hold(data)
        if not self.expects_requests or now >= self.counters.due:
            return b""
        count = leading(self.rest())
        if count == 0:
            return b""
        self.allow(now)
        answers = PyBytes_FromStringAndSize(NULL, count * kFrameBytes)
        answer(
            self.rest(),
            count,
            self.tails,
            PyBytes_AS_STRING(answers),
            &self.allowance,
            &self.counters.counters,
            &self.passed,
        )
        self.skip(count)
        return answers

    def take(self) -> RawFrame | None:
        """Remove the next whole frame from the stream, without an answer; None if there is none."""
        if self.left() < <Py_ssize_t>kFrameBytes:
            return None
        frame = FRAME.unpack_from(self.chunk, self.at)
        self.skip(1)
        return frame

    def take_passed(self) -> list[_Log]:
        """Return each log whose tail has passed ``wake_at``; the caller must set it again."""
        logs = [self.opened[handle] for handle in self.passed]
        self.passed.clear()
        return logs

    def close(self) -> list[_Log]:
        """End the stream, and drop the rest of it. Returns the logs that were open."""
        logs = [log for log in self.opened if log is not None]
        self.tails.clear()
        self.passed.clear()
        self.opened = []
        self.chunk = b""
        self.at = 0
        self.closed = True
        return logs

    cdef void allow(self, double now) noexcept:
        cdef double more = (now - self.allowed_at) * self.counters.positions_per_s
        self.allowance = min(self.counters.positions_burst, self.allowance + more)
        self.allowed_at = now

    cdef Py_ssize_t left(self) noexcept:
        return PyBytes_GET_SIZE(self.chunk) - self.at

    cdef string_view rest(self) noexcept:
        return string_view(PyBytes_AS_STRING(self.chunk) + self.at, self.left())

    cdef int hold(self, bytes data) except -1:
        if self.left() == 0:
            self.chunk, self.at = data, 0
        elif data:
            self.chunk, self.at = self.chunk[self.at:] + data, 0
        return 0

    cdef int skip(self, size_t frames) except -1:
        self.at += frames * kFrameBytes
        if self.left() < <Py_ssize_t>kFrameBytes:
            # Keep the start of a frame, and not the whole chunk.
            self.chunk, self.at = self.chunk[self.at:], 0
        return 0
