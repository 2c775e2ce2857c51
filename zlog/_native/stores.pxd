from libcpp.memory cimport shared_ptr
from libcpp.vector cimport vector
from posix.types cimport pid_t

from zlog._native.host cimport AsyncHost, Ticket


cdef class UnderWay:
    cdef HostStore store
    cdef vector[Ticket] tickets


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
    cdef UnderWay under_way(self)
    cdef shared_ptr[AsyncHost] opened(self) except *
