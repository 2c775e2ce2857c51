# Locks of calls. A thread that would wait for itself, as a signal handler over a call does, gets an
# error, and so does a forked child: there the thread that holds the lock does not exist.

import os
import threading

from zlog._base.process import inherited_error
from zlog.errors import ReentrantCall, StoreTimeout


cdef extern from *:
    """
    static __thread int zlog_brief_locks = 0;
    """
    int brief_locks "zlog_brief_locks"  # that this thread holds

cdef extern from "pythread.h":
    unsigned long PyThread_get_thread_ident()


cdef enum:  # 100 ms each, of a process that runs: a suspended one gets no time-out from that
    BRIEF_WAITS = 600

cdef unsigned int forks = 0  # of the ancestors of this process, since they imported this


def _after_fork():
    global forks
    forks += 1


os.register_at_fork(after_in_child=_after_fork)


def reentrant_call():
    """Return the error of a call that would wait for another call of its own thread."""
    return ReentrantCall("this thread is in another call, which this one would wait for")


def begin_call(coroutine=None):
    if brief_locks:
        if coroutine is not None:
            coroutine.close()
        raise reentrant_call()


cdef class Mutex:
    cdef object lock
    cdef unsigned long owner
    cdef int depth  # how often its owner has taken it
    cdef unsigned int born
    cdef bint brief
    cdef bint reentrant

    def __init__(self, *, bint brief=True, bint reentrant=False):
        self.lock = threading.Lock()
        self.born = forks
        self.brief, self.reentrant = brief, reentrant

    def acquire(self, bint blocking=True, double timeout=-1):
        cdef unsigned long me = PyThread_get_thread_ident()
        if self.born != forks:
            raise inherited_error("what this call needs")
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
            "another thread, in the midst of a call, has not run for a minute",
            hint="It may be in a signal handler, or in a debugger.",
        )

    def release(self):
        if self.depth <= 0 or self.owner != PyThread_get_thread_ident():
            raise RuntimeError("this thread does not hold the lock")
        self.depth -= 1
        if self.brief:
            global brief_locks
            brief_locks -= 1
        if not self.depth:
            self.lock.release()

    def held(self):
        return self.depth > 0 and self.owner == PyThread_get_thread_ident()

    def locked(self):
        return self.depth > 0

    def __enter__(self):
        self.acquire()

    def __exit__(self, kind, error, trace):
        self.release()
