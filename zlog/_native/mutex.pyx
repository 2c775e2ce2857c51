"""Locks that are held during calls.

A lock raises an error if a thread would wait for itself, for example because its signal handler
interrupted a call. It also raises an error in a forked child, where the thread that holds the lock
does not exist.
"""

from cpython.pythread cimport PyThread_get_thread_ident

import os
import threading
from collections.abc import Coroutine
from typing import Any

from zlog._base.process import inherited_error
from zlog.errors import ReentrantCall, StoreTimeout

cdef extern from *:
    """
    static __thread int zlog_brief_locks = 0;
    """
    int brief_locks "zlog_brief_locks"  # that this thread holds


cdef enum:  # slices of 100 ms, so that time spent suspended does not count
    BRIEF_WAITS = 600


forks = 0


def _after_fork():
    global forks
    forks += 1


os.register_at_fork(after_in_child=_after_fork)


cdef int brief_locks_held() noexcept:
    return brief_locks


def reentrant_call() -> ReentrantCall:
    """Return the error of a call that would wait for another call of its own thread."""
    return ReentrantCall("this call would wait for another call of the same thread")


def begin_call(coroutine: Coroutine[Any, Any, Any] | None = None) -> None:
    """If this thread holds a brief :class:`Mutex`, close the coroutine and raise ReentrantCall."""
    if brief_locks:
        if coroutine is not None:
            coroutine.close()
        raise reentrant_call()


cdef class Mutex:
    """A lock that raises an error if its holder waits for it, or if this is a forked child.

    Args:
        brief: the lock is held for a few instructions, never during a wait. A thread that holds a
            brief lock must not begin a call. No thread waits for a brief lock longer than a minute.
        reentrant: the holder may acquire the lock again.
    """

    def __init__(self, *, bint brief=True, bint reentrant=False):
        self.lock = threading.Lock()
        self.born = forks
        self.brief, self.reentrant = brief, reentrant

    def acquire(self, bint blocking=True, double timeout=-1) -> bool:
        """Acquire the lock, with the parameters of ``threading.Lock.acquire``.

        Raises:
            ReentrantCall: this thread holds the lock.
            StoreUnavailable: this is a forked child, and its parent made the lock.
        """
        cdef unsigned long me = PyThread_get_thread_ident()
        if self.born != forks:
            raise inherited_error("an object that this call needs")
        if self.depth and self.owner == me:
            if not self.reentrant:
                if blocking:
                    raise reentrant_call()
                return False
        elif not (self.lock.acquire(False) or (blocking and self.wait(timeout))):
            return False
        self.owner = me
        self.depth += 1
        if self.brief:
            global brief_locks
            brief_locks += 1
        return True

    cdef bint wait(self, double timeout) except -1:
        if not self.brief:
            return self.lock.acquire(True, timeout)
        for _ in range(BRIEF_WAITS):
            if self.lock.acquire(True, 0.1):
                return True
        raise StoreTimeout(
            "another thread has made no progress in a call for a minute",
            hint="It may be in a signal handler, or in a debugger.",
        )

    def release(self) -> None:
        """Release the lock."""
        if self.depth <= 0 or self.owner != PyThread_get_thread_ident():
            raise RuntimeError("this thread does not hold the lock")
        self.depth -= 1
        if self.brief:
            global brief_locks
            brief_locks -= 1
        if not self.depth:
            self.lock.release()

    def held(self) -> bool:
        """Whether this thread holds the lock."""
        return self.depth > 0 and self.owner == PyThread_get_thread_ident()

    def locked(self) -> bool:
        """Whether any thread holds the lock."""
        return self.depth > 0

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.release()
