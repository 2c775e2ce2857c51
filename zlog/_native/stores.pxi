# Completions, stores over any host, and the one whose objects live in memory.

from cpython.exc cimport PyErr_CheckSignals
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from cython.operator cimport dereference as deref
from libc.errno cimport ETIMEDOUT
from libc.stddef cimport size_t
from libcpp.map cimport map as cpp_map
from libcpp.memory cimport make_shared, shared_ptr, unique_ptr
from libcpp.utility cimport move
from posix.unistd cimport getpid

import math
import time

from zlog.errors import StoreUnavailable, ZlogError


cdef extern from "cls_zlog/host/async_host.h" namespace "zlog" nogil:
    Done queue_completer(shared_ptr[CppCompletionQueue] queue, uint64_t token) except +raise_caught

cdef extern from "cls_zlog/host/memory/memory_host.h" namespace "zlog" nogil:
    cdef cppclass MemoryObject:
        cpp_map[string, string] attrs
        cpp_map[string, string] omap
        string stream

    cdef cppclass MemoryHost(AsyncHost):
        MemoryHost()
        cbool peek(const string& object, MemoryObject* out) except +raise_caught
        void poke(const string& object, MemoryObject content) except +raise_caught


# A wait that no event ends is cut into slices of this length: a signal may have come just before.
cdef enum:
    SLICE_MS = 100


# The text of a str, which keeps it as long as it lives.
cdef string_view utf8_of(str text) except *:
    cdef Py_ssize_t size
    cdef const char* data = PyUnicode_AsUTF8AndSize(text, &size)
    return string_view(data, <size_t> size)


cdef class Wait:
    def __cinit__(self, timeout):
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
    def __cinit__(self):
        self.queue.reset(new CppCompletionQueue())
        self.pid = getpid()

    cdef int check_process(self) except -1:
        if self.pid != getpid():
            raise StoreUnavailable(
                "a completion queue is of no use in a forked child",
                hint="Make a new one there.",
                retryable=False,
            )
        return 0

    def fileno(self):
        return deref(self.queue).fileno()

    def put(self, uint64_t token, int code, bytes reply not None):
        cdef CppCompletion done
        self.check_process()
        done.token, done.code, done.reply = token, code, CppBuffer.of(<string> reply)
        deref(self.queue).push(done)

    def drain(self):
        cdef vector[CppCompletion] taken
        cdef size_t i
        self.check_process()
        taken = deref(self.queue).drain()
        out = []
        for i in range(taken.size()):
            out.append((taken[i].token, taken[i].code, reply_of(taken[i].reply)))
        return out

    def wait(self, timeout=None):
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

cdef shared_ptr[RequestBytes] payload_of(payload) except *:
    cdef string_view view
    cdef shared_ptr[RequestBytes] copy
    if isinstance(payload, Request):
        with nogil:
            encode(<Request> payload)
        return (<Request> payload).payload
    if not isinstance(payload, bytes):
        raise TypeError(f"a payload is bytes or a Request, not {type(payload).__name__}")
    view = view_of(<bytes> payload)
    with nogil:
        copy = RequestBytes.copy_of(view)
    return copy


cdef class UnderWay:
    cdef HostStore store
    cdef vector[Ticket] tickets

    def give_up(self):
        cdef Ticket ticket
        cdef shared_ptr[AsyncHost] host
        if self.store.pid == getpid():
            host = self.store.host
        if host:
            with nogil:
                for ticket in self.tickets:
                    deref(host).give_up(ticket)


cdef class HostStore:
    # Once per object: its holder may rely on what it is over.
    cdef int attach(
        self, shared_ptr[AsyncHost] host, str url, str pool="", str namespace=""
    ) except -1:
        if self.url is not None:
            raise TypeError("a store is opened once")
        self.host, self.pid = host, getpid()
        self.url, self.pool, self.namespace = url, pool, namespace
        self.identity = ""
        return 0

    cdef shared_ptr[AsyncHost] opened(self) except *:
        if self.pid != getpid():
            raise StoreUnavailable(
                f"{self.url} was opened by another process, before a fork",
                hint="Open the store anew in the child process.",
                retryable=False,
            )
        if not self.host:
            raise StoreUnavailable(f"{self.url} is closed", hint="Connect again.", retryable=False)
        return self.host

    def execute(
        self, str object not None, str method not None, payload, timeout=None
    ):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef shared_ptr[Pending] pending = make_shared[Pending]()
        cdef bytes object_bytes = object.encode(), method_bytes = method.encode()
        cdef string_view object_view = view_of(object_bytes), method_view = view_of(method_bytes)
        cdef shared_ptr[RequestBytes] shared = payload_of(payload)
        cdef Wait budget = Wait(timeout)
        cdef int slice_ms
        cdef bint done = False
        cdef Ticket ticket
        with nogil:
            ticket = deref(host).run(object_view, method_view, shared, Pending.completer(pending))
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
            if not done:  # or a signal's handler raised
                with nogil:
                    deref(host).give_up(ticket)

    def submit(self, CompletionQueue queue not None, uint64_t token, calls):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef shared_ptr[CppCompletionQueue] results = queue.queue
        cdef vector[Submission] submissions
        cdef Submission one
        cdef list alive = []  # what `submissions` points into
        cdef str object, method
        cdef bint gathers = deref(host).gathers()
        cdef UnderWay under_way = UnderWay.__new__(UnderWay)
        cdef Ticket ticket
        under_way.store = self
        queue.check_process()
        for object, method, payload in calls:
            one.object, one.method, one.payload = utf8_of(object), utf8_of(method), payload_of(payload)
            one.done = queue_completer(results, token)
            token += 1
            if gathers:
                alive.append((object, method))
                submissions.push_back(one)
            else:
                with nogil:
                    ticket = deref(host).submit(
                        one.object, one.method, move(one.payload), move(one.done)
                    )
                under_way.tickets.push_back(ticket)
        if gathers:
            with nogil:
                deref(host).submit_all(move(submissions))
        return under_way

    def list_objects(
        self, CompletionQueue queue not None, uint64_t token, str prefix not None, bytes after=b""
    ):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view prefix_view = utf8_of(prefix), after_view = view_of(after)
        cdef Done done = queue_completer(queue.queue, token)
        queue.check_process()
        with nogil:
            deref(host).list(prefix_view, after_view, move(done))

    def lock(
        self,
        CompletionQueue queue not None,
        uint64_t token,
        str object not None,
        str method not None,
        bytes request not None,
    ):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view object_view = utf8_of(object), method_view = utf8_of(method)
        cdef shared_ptr[RequestBytes] payload = payload_of(request)
        cdef Done done = queue_completer(queue.queue, token)
        cdef UnderWay under_way = UnderWay.__new__(UnderWay)
        cdef Ticket ticket
        under_way.store = self
        queue.check_process()
        with nogil:
            ticket = deref(host).lock(object_view, method_view, move(payload), move(done))
        under_way.tickets.push_back(ticket)
        return under_way

    def ask_copy(
        self,
        CompletionQueue queue not None,
        uint64_t token,
        str object not None,
        str method not None,
        bytes request not None,
    ):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view object_view = utf8_of(object), method_view = utf8_of(method)
        cdef shared_ptr[RequestBytes] payload = payload_of(request)
        cdef Done done = queue_completer(queue.queue, token)
        queue.check_process()
        with nogil:
            deref(host).ask_replica(object_view, method_view, move(payload), move(done))

    def ask_monitor(
        self, CompletionQueue queue not None, uint64_t token, str command not None
    ):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view command_view = utf8_of(command)
        cdef Done done = queue_completer(queue.queue, token)
        queue.check_process()
        with nogil:
            deref(host).ask_monitor(command_view, move(done))

    def notify(self, str object not None):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view object_view = utf8_of(object)
        with nogil:
            deref(host).notify(object_view)

    def watch(
        self, CompletionQueue queue not None, uint64_t token, str object not None, uint64_t seen=0
    ):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view object_view = utf8_of(object)
        cdef Done done = queue_completer(queue.queue, token)
        cdef UnderWay under_way = UnderWay.__new__(UnderWay)
        cdef Ticket ticket
        under_way.store = self
        queue.check_process()
        with nogil:
            ticket = deref(host).watch(object_view, seen, move(done))
        under_way.tickets.push_back(ticket)
        return under_way

    def remove_watched(
        self, CompletionQueue queue not None, uint64_t token, str object not None
    ):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef string_view object_view = utf8_of(object)
        cdef Done done = queue_completer(queue.queue, token)
        queue.check_process()
        with nogil:
            deref(host).remove_watched(object_view, move(done))

    def sequencer(self):
        return None

    def compact(self):
        self.opened()
        raise ZlogError(
            f"{self.url} has no file that could be compacted",
            hint="Only an embedded store, file:///PATH, has one.",
        )

    def close(self):
        cdef shared_ptr[AsyncHost] host
        if self.pid == getpid():
            host.swap(self.host)
            if host:
                with nogil:
                    deref(host).close()
                    host.reset()

    def __enter__(self):
        self.opened()
        return self

    def __exit__(self, kind, error, trace):
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
            # The threads behind it live in the parent: even its destructor must not run here.
            left = new shared_ptr[AsyncHost]()
            left.swap(self.host)


cdef class MemoryStore(HostStore):
    cdef MemoryHost* memory  # owned by the host
    cdef SharedSequencer shared

    def __cinit__(self):
        self.memory = new MemoryHost()
        self.attach(shared_ptr[AsyncHost](self.memory), "mem://")
        self.shared = SharedSequencer()

    def sequencer(self):
        self.opened()
        return self.shared

    def peek(self, str object not None):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef MemoryObject content
        if not self.memory.peek(<bytes> object.encode(), &content):
            return None
        return dict(content.attrs), dict(content.omap), content.stream

    def poke(self, str object not None, attrs, omap, bytes stream not None):
        cdef shared_ptr[AsyncHost] host = self.opened()
        cdef MemoryObject content
        content.attrs, content.omap, content.stream = attrs, omap, stream
        self.memory.poke(<bytes> object.encode(), content)
