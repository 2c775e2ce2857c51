"""Rounds of threads: the part that each thread runs under Python's lock.

It is native because one reply wakes many threads, and each waits for the one before it. Python's
lock guards all state here. Another thread may get this lock when Python code is called, when an
object is made, and in ``with nogil``.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident

from zlog._native.clock cimport monotonic_seconds
from zlog._native.completions cimport SLICE_MS
from zlog._native.host cimport CppLatch
from zlog._native.mutex cimport Mutex, brief_locks_held
from zlog._native.new_entries cimport (
    ENTRY_TAGS_MAX, TAG_BYTES_MAX, TAG_NAMES_BYTES_MAX, EntryLimit, Tagged, tags_size
)

import threading
from collections.abc import Callable, Sequence
from typing import Any

from zlog._native.mutex import reentrant_call
from zlog._native.new_entries import NewEntry, entries_owned


cdef double NEVER = float("inf")


cdef enum:  # with more bytes of tags a round is closed, because the next tags may not fit
    TAGS_BYTES_ENOUGH = TAG_NAMES_BYTES_MAX - ENTRY_TAGS_MAX * (1 + TAG_BYTES_MAX)


cdef class SharedRound:
    """Entries of several threads that are sent together, by the thread of the first entry.

    Attributes:
        outcomes: the position or the error of each entry; None if no entry was sent.
    """

    cdef CppLatch over
    cdef list entries  # in the order in which they arrived; None for a withdrawn entry
    cdef Py_ssize_t size
    cdef Py_ssize_t tags  # the size of their tags in bytes
    cdef bint closed
    cdef bint withdrawn
    cdef public object outcomes  # Sequence[int | BaseException] | None
    cdef Py_ssize_t wanted
    cdef object enough
    cdef unsigned long leader

    def __cinit__(self):
        self.entries = []

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.entries)

    def wait_for(self, Py_ssize_t count) -> threading.Lock:
        """Return a lock that is released at ``count`` entries or when the round is closed."""
        enough = threading.Lock()
        enough.acquire()
        if len(self.entries) < count and not self.closed:
            self.wanted, self.enough = count, enough
        else:
            enough.release()
        return enough

    def close(self) -> list[NewEntry]:
        """Accept no more entries, and return the entries to send."""
        self.closed = True
        return [entry for entry in self.entries if entry is not None]

    def finish(self) -> None:
        """Wake the threads to take their outcomes. Without outcomes they form another round."""
        self.closed = True
        self.over.open()

    cdef bint wait(self, double deadline) except -1:
        cdef double left
        cdef bint over
        while True:
            left = deadline - monotonic_seconds()
            with nogil:
                over = self.over.wait(min(max(left, 0), SLICE_MS / 1000.))
            if over:
                return True
            PyErr_CheckSignals()
            if left <= 0:
                return False

    cdef outcome(self, Py_ssize_t index):
        if self.withdrawn:
            index -= self.entries[:index].count(None)
        outcome = self.outcomes[index]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


cdef class SharedRounds:
    """Combines the entries of several threads into rounds.

    Attributes:
        timeout: how many seconds after the call an entry may still be sent; may be infinite.
        joined: the number of entries in all rounds so far.
    """

    cdef Mutex turn
    cdef object lead
    cdef object appender
    cdef object not_sent
    cdef object not_known
    cdef public double timeout
    cdef EntryLimit limit
    cdef Py_ssize_t entries_max
    cdef Py_ssize_t bytes_max
    cdef SharedRound gathering
    cdef readonly Py_ssize_t joined

    def __init__(
        self,
        Mutex turn not None,
        lead: Callable[[SharedRound, float], object],
        appender: Any,
        not_sent: Callable[[], BaseException],
        not_known: Callable[[], BaseException],
        timeout: float | None,
        Py_ssize_t entries_max,
        Py_ssize_t bytes_max,
    ):
        """Gather rounds of up to ``entries_max`` entries, until they have ``bytes_max`` bytes.

        ``lead`` sends a round and always finishes it, before a given ``time.monotonic()``. It holds
        ``turn`` while it sends. ``appender`` checks entries. ``not_sent`` makes the error of an
        entry that was not sent in time. ``not_known`` makes the error of an entry whose round did
        not end within the same time again.
        """
        self.turn, self.lead, self.appender = turn, lead, appender
        self.not_sent, self.not_known = not_sent, not_known
        self.timeout = NEVER if timeout is None else timeout
        self.limit = appender.limit
        self.entries_max, self.bytes_max = entries_max, bytes_max

    def append(self, data: NewEntry) -> int:
        """Append one entry and return its position."""
        cdef SharedRound round
        cdef Py_ssize_t index
        cdef double deadline
        cdef unsigned long me
        cdef bint in_turn
        if type(data) is not bytes or len(<bytes> data) > self.limit.bytes_max:
            self.appender.check((data,))
            (data,) = entries_owned((data,))  # a buffer may change later
        deadline = monotonic_seconds() + self.timeout
        while True:
            round = self.open_round()
            me = PyThread_get_thread_ident()
            in_turn = self.turn.depth and self.turn.owner == me
            if brief_locks_held() or round.leader == me or in_turn:
                raise reentrant_call()
            index = self.join(round, data)
            if index == 0:
                try:
                    self.lead(round, deadline)
                finally:
                    round.finish()  # even after an error, so that the others stop waiting
            elif not round.wait(deadline):
                if not round.closed:
                    round.entries[index], round.withdrawn = None, True
                    raise self.not_sent()
                if not round.wait(monotonic_seconds() + self.timeout):
                    raise self.not_known()
            if round.outcomes is not None:
                return round.outcome(index)
            if monotonic_seconds() >= deadline:
                raise self.not_sent()

    cdef bint takes(self, SharedRound round) except -1:
        return (
            round is not None and not round.closed and len(round.entries) < self.entries_max
            and round.size < self.bytes_max and round.tags <= TAGS_BYTES_ENOUGH
        )

    cdef SharedRound open_round(self):
        cdef SharedRound new
        if not self.takes(self.gathering):
            new = SharedRound()
            if not self.takes(self.gathering):  # no other thread has replaced it meanwhile
                self.gathering = new
        return self.gathering

    cdef Py_ssize_t join(self, SharedRound round, data) except -1:
        cdef Py_ssize_t index = len(round.entries)
        if index == 0:
            round.leader = PyThread_get_thread_ident()
        round.entries.append(data)
        round.size += len(data)
        if type(data) is Tagged:
            round.tags += tags_size(<Tagged> data)
        self.joined += 1
        if round.enough is not None and (index + 1 >= round.wanted or not self.takes(round)):
            round.enough.release()
            round.enough = None
        return index
