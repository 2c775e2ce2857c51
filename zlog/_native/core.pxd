# What _native shares with _rados: the completion queue and the shell of a store.

from libc.stddef cimport size_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector
from libc.stdint cimport uint64_t
from posix.types cimport pid_t


cdef extern from "zlog/_native/raising.h" namespace "zlog::python":
    # For `except +raise_caught`: a system error becomes a ZlogError, and not a RuntimeError.
    void raise_caught()


cdef extern from "cls_zlog/base/buffer.h" namespace "zlog" nogil:
    cdef cppclass CppBuffer "zlog::Buffer":
        @staticmethod
        CppBuffer of(string content) except +raise_caught
        string_view bytes


cdef extern from "cls_zlog/host/completion_queue.h" namespace "zlog" nogil:
    cdef cppclass CppCompletion "zlog::Completion":
        uint64_t token
        int code
        CppBuffer reply

    cdef cppclass CppCompletionQueue "zlog::CompletionQueue":
        CppCompletionQueue() except +raise_caught
        void push(CppCompletion completion) except +raise_caught
        int fileno()
        vector[CppCompletion] drain() except +raise_caught
        cbool wait(int timeout_ms)


cdef extern from "cls_zlog/client/latch.h" namespace "zlog" nogil:
    cdef cppclass CppLatch "zlog::Latch":
        CppLatch()
        void open()
        cbool wait(double seconds) except +raise_caught


cdef extern from "cls_zlog/host/request_bytes.h" namespace "zlog" nogil:
    cdef cppclass RequestBytes:
        RequestBytes(size_t size) except +raise_caught
        char* data()
        size_t size()
        @staticmethod
        shared_ptr[RequestBytes] copy_of(string_view bytes) except +raise_caught


cdef extern from "cls_zlog/host/async_host.h" namespace "zlog" nogil:
    cdef cppclass Done:
        pass

    cdef cppclass Submission:
        string_view object
        string_view method
        shared_ptr[RequestBytes] payload
        Done done

    cdef cppclass Pending:
        Pending()
        cbool wait(int timeout_ms)
        void complete(int code, CppBuffer reply)
        int code()
        const CppBuffer& reply()
        @staticmethod
        Done completer(shared_ptr[Pending] pending)

    ctypedef uint64_t Ticket

    cdef cppclass AsyncHost:
        Ticket submit(
            string_view object, string_view method, shared_ptr[RequestBytes] payload, Done done
        ) except +raise_caught
        cbool gathers()
        void submit_all(vector[Submission] submissions) except +raise_caught
        Ticket run(
            string_view object, string_view method, shared_ptr[RequestBytes] payload, Done done
        ) except +raise_caught
        Ticket lock(
            string_view object, string_view method, shared_ptr[RequestBytes] payload, Done done
        ) except +raise_caught
        void ask_replica(
            string_view object, string_view method, shared_ptr[RequestBytes] payload, Done done
        ) except +raise_caught
        void list(string_view prefix, string_view after, Done done) except +raise_caught
        void ask_monitor(string_view command, Done done) except +raise_caught
        void notify(string_view object) except +raise_caught
        Ticket watch(string_view object, uint64_t seen, Done done) except +raise_caught
        void remove_watched(string_view object, Done done) except +raise_caught
        void give_up(Ticket ticket) except +raise_caught
        void close() except +raise_caught


cdef class CompletionQueue:
    cdef shared_ptr[CppCompletionQueue] queue
    cdef pid_t pid

    cdef int check_process(self) except -1


cdef class HostStore:
    cdef shared_ptr[AsyncHost] host
    cdef pid_t pid
    cdef readonly str url
    cdef readonly str pool
    cdef readonly str namespace
    cdef readonly bint read_only
    cdef readonly str identity

    cdef int attach(
        self, shared_ptr[AsyncHost] host, str url, str pool=*, str namespace=*
    ) except -1
    cdef shared_ptr[AsyncHost] opened(self) except *


cdef class Wait:
    # One time budget, spent in slices between which signals are looked at.
    cdef object deadline
    cdef int slice_ms(self, int most) except -1
    cdef bint over(self) except -1
