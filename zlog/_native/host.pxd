# The C++ classes that several modules use (cls_zlog/host/): operations and completions.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stddef cimport size_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector
from libc.stdint cimport uint64_t


cdef extern from "zlog/_native/raising.h" namespace "zlog::python":
    # For `except +raise_caught`: a system error becomes a ZlogError, and not a RuntimeError.
    void raise_caught()


cdef extern from "cls_zlog/base/buffer.h" namespace "zlog" nogil:
    cdef cppclass CppBuffer "zlog::Buffer":
        @staticmethod
        CppBuffer of(string content) except +raise_caught
        string_view bytes


# Returns the bytes of a Python object. They are valid as long as the object is.
cdef inline string_view view_of(bytes data) noexcept:
    return string_view(PyBytes_AS_STRING(data), <size_t> PyBytes_GET_SIZE(data))


# Returns the text of a str. It is valid as long as the str is.
cdef inline string_view text_view(str text) except *:
    cdef Py_ssize_t size
    cdef const char* data = PyUnicode_AsUTF8AndSize(text, &size)
    return string_view(data, <size_t> size)


cdef inline bytes bytes_of(string_view data):
    return PyBytes_FromStringAndSize(data.data(), <Py_ssize_t> data.size())


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
        cbool wait(int timeout_ms)
        int code()
        const CppBuffer& reply()
        @staticmethod
        Done completer(shared_ptr[Pending] pending)

    ctypedef uint64_t Ticket

    cdef cppclass AsyncHost:
        Ticket submit(Submission submission) except +raise_caught
        cbool gathers()
        void submit_all(vector[Submission] submissions) except +raise_caught
        Ticket run(Submission submission) except +raise_caught
        Ticket lock(Submission submission) except +raise_caught
        void ask_replica(Submission submission) except +raise_caught
        void list(string_view prefix, string_view after, Done done) except +raise_caught
        void ask_monitor(string_view command, Done done) except +raise_caught
        void notify(string_view object) except +raise_caught
        Ticket watch(string_view object, uint64_t seen, Done done) except +raise_caught
        void remove_watched(string_view object, Done done) except +raise_caught
        void give_up(Ticket ticket) except +raise_caught
        void close() except +raise_caught
