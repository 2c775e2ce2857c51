"""The code that all stores share.

C++ does the work. This module converts values, releases the interpreter's lock around calls that
may block, and checks for signals while it waits.
"""

from cython.operator cimport dereference as deref
from libc.errno cimport ETIMEDOUT
from libc.stdint cimport uint64_t
from libcpp.memory cimport make_shared, shared_ptr
from libcpp.string_view cimport string_view
from libcpp.utility cimport move
from libcpp.vector cimport vector
from posix.unistd cimport getpid

from zlog._native.completions cimport SLICE_MS, CompletionQueue, Wait
from zlog._native.host cimport (
    AsyncHost, CppCompletionQueue, Done, Pending, RequestBytes, Submission, Ticket, bytes_of,
    raise_caught, text_view, view_of
)
from zlog._native.writes cimport Request, encode

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from zlog.errors import StoreUnavailable, ZlogError

if TYPE_CHECKING:
    from typing_extensions import Self

    from zlog._native.local import SharedSequencer

cdef extern from "cls_zlog/host/async_host.h" namespace "zlog" nogil:
    Done queue_completer(shared_ptr[CppCompletionQueue] queue, uint64_t token) except +raise_caught


cdef shared_ptr[RequestBytes] payload_of(payload) except *:
    cdef string_view view
    cdef shared_ptr[RequestBytes] copy
    if isinstance(payload, Request):
        with nogil:
            encode(<Request> payload)
        return (<Request> payload).payload
    if not isinstance(payload, bytes):
        raise TypeError(f"a payload must be bytes or a Request, not {type(payload).__name__}")
    view = view_of(<bytes> payload)
    with nogil:
        copy = RequestBytes.copy_of(view)
    return copy


# Sets what to run. `object` and `method` must stay alive until it is started.
cdef int fill_in(Submission* one, str object, str method, payload, Done done) except -1:
    one.object, one.method, one.payload = text_view(object), text_view(method), payload_of(payload)
    one.done = move(done)
    return 0


# Returns a function that puts the result of an operation into a queue.
cdef Done completer(CompletionQueue queue, uint64_t token) except *:
    queue.check_process()
    return queue_completer(queue.queue, token)


cdef class UnderWay:
    """Operations that were submitted together."""

    def give_up(self) -> None:
        """Give up the operations, drop their replies and release their memory.

        If the store can cancel operations, those that do not complete soon end with -ECANCELED.
        Whether they take effect is unknown.
        """
        cdef Ticket ticket
        cdef shared_ptr[AsyncHost] host
        if self.store.pid == getpid():
            host = self.store.host
        if host:
            with nogil:
                for ticket in self.tickets:
                    deref(host).give_up(ticket)


cdef class HostStore:
    """The base of all stores. `zlog.store.Store` documents its methods."""

    # This is called once for each store.
    cdef int attach(
        self, shared_ptr[AsyncHost] host, str url, str pool="", str namespace=""
    ) except -1:
        if self.url is not None:
            raise TypeError("a store can be opened only once")
        self.host, self.pid = host, getpid()
        self.url, self.pool, self.namespace = url, pool, namespace
        self.identity = ""
        return 0

    cdef UnderWay under_way(self):
        cdef UnderWay under_way = UnderWay.__new__(UnderWay)
        under_way.store = self
        return under_way

    cdef shared_ptr[AsyncHost] opened(self) except *:
        if self.pid != getpid():
            raise StoreUnavailable(
                f"{self.url} was opened by another process, before a fork",
                hint="Open the store again in the child process.",
                retryable=False,
            )
        if not self.host:
            raise StoreUnavailable(f"{self.url} is closed", hint="Connect again.", retryable=False)
        return self.host

    def execute(
        self,
        str object not None,
        str method not None,
        payload: bytes | Request,
        timeout: float | None = None,
    ) -> tuple[int, bytes]:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef shared_ptr[Pending] pending = make_shared[Pending]()
        cdef Submission one
        cdef Wait budget = Wait(timeout)
        cdef int slice_ms
        cdef bint done = False
        cdef Ticket ticket
        fill_in(&one, object, method, payload, Pending.completer(pending))
        with nogil:
            ticket = deref(host).run(move(one))
        try:
            while True:
                slice_ms = budget.slice_ms(SLICE_MS)
                with nogil:
                    done = deref(pending).wait(slice_ms)
                if done:
                    return deref(pending).code(), bytes_of(deref(pending).reply().bytes)
                if budget.over():
                    return -ETIMEDOUT, b""
        finally:
            if not done:  # or a signal handler raised an exception
                with nogil:
                    deref(host).give_up(ticket)

    def submit(
        self,
        CompletionQueue queue not None,
        uint64_t token,
        calls: Sequence[tuple[str, str, bytes | Request]],
    ) -> UnderWay:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef shared_ptr[CppCompletionQueue] results = queue.queue
        cdef vector[Submission] submissions
        cdef Submission one
        cdef list alive = []  # the objects that `submissions` points into
        cdef str object, method
        cdef bint gathers = deref(host).gathers()
        cdef UnderWay under_way = self.under_way()
        cdef Ticket ticket
        queue.check_process()
        for object, method, payload in calls:
            fill_in(&one, object, method, payload, queue_completer(results, token))
            token += 1
            if gathers:
                alive.append((object, method))
                submissions.push_back(one)
            else:
                with nogil:
                    ticket = deref(host).submit(move(one))
                under_way.tickets.push_back(ticket)
        if gathers:
            with nogil:
                deref(host).submit_all(move(submissions))
        return under_way

    def list_objects(
        self,
        CompletionQueue queue not None,
        uint64_t token,
        str prefix not None,
        bytes after not None=b"",
    ) -> None:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view prefix_view = text_view(prefix), after_view = view_of(after)
        cdef Done done = completer(queue, token)
        with nogil:
            deref(host).list(prefix_view, after_view, move(done))

    def lock(
        self,
        CompletionQueue queue not None,
        uint64_t token,
        str object not None,
        str method not None,
        bytes request not None,
    ) -> UnderWay:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef Submission one
        cdef UnderWay under_way = self.under_way()
        cdef Ticket ticket
        fill_in(&one, object, method, request, completer(queue, token))
        with nogil:
            ticket = deref(host).lock(move(one))
        under_way.tickets.push_back(ticket)
        return under_way

    def ask_replica(
        self,
        CompletionQueue queue not None,
        uint64_t token,
        str object not None,
        str method not None,
        bytes request not None,
    ) -> None:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef Submission one
        fill_in(&one, object, method, request, completer(queue, token))
        with nogil:
            deref(host).ask_replica(move(one))

    def ask_monitor(
        self, CompletionQueue queue not None, uint64_t token, str command not None
    ) -> None:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view command_view = text_view(command)
        cdef Done done = completer(queue, token)
        with nogil:
            deref(host).ask_monitor(command_view, move(done))

    def notify(self, str object not None) -> None:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view object_view = text_view(object)
        with nogil:
            deref(host).notify(object_view)

    def watch(
        self, CompletionQueue queue not None, uint64_t token, str object not None, uint64_t seen=0
    ) -> UnderWay:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view object_view = text_view(object)
        cdef Done done = completer(queue, token)
        cdef UnderWay under_way = self.under_way()
        cdef Ticket ticket
        with nogil:
            ticket = deref(host).watch(object_view, seen, move(done))
        under_way.tickets.push_back(ticket)
        return under_way

    def remove_watched(
        self, CompletionQueue queue not None, uint64_t token, str object not None
    ) -> None:
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view object_view = text_view(object)
        cdef Done done = completer(queue, token)
        with nogil:
            deref(host).remove_watched(object_view, move(done))

    def sequencer(self) -> SharedSequencer | None:
        return None

    def compact(self) -> int:
        self.opened()
        raise ZlogError(
            f"{self.url} cannot be compacted, because it has no file",
            hint="Only an embedded store, file:///PATH, has a file.",
        )

    def close(self) -> None:
        cdef shared_ptr[AsyncHost] host
        if self.pid == getpid():
            host.swap(self.host)
            if host:
                with nogil:
                    deref(host).close()
                    host.reset()

    def __enter__(self) -> Self:
        self.opened()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self):
        raise TypeError(f"a store can't be pickled or copied: open {self.url} in the other process")

    def __repr__(self):
        return f"<{type(self).__name__} {self.url}{'' if self.host else ' closed'}>"

    def __dealloc__(self):
        cdef shared_ptr[AsyncHost]* left
        if not self.host:
            return
        if self.pid == getpid():
            with nogil:
                deref(self.host).close()
                self.host.reset()
        else:
            # The store's threads are in the parent process, so not even its destructor may run.
            left = new shared_ptr[AsyncHost]()
            left.swap(self.host)
