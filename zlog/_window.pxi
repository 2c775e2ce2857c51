# A window of positions, put together from the replies of the stripe objects that hold them.

from cpython.datetime cimport import_datetime, timedelta_new
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF

from datetime import datetime, timezone

from zlog.entry import Entry, GapKind

import_datetime()

cdef extern from "Python.h":
    PyObject* PyType_GenericAlloc(PyTypeObject* type, Py_ssize_t items) except NULL
    void PyTuple_SET_ITEM(PyObject* tuple, Py_ssize_t at, PyObject* item)
    void Py_DECREF_PTR "Py_DECREF"(PyObject* object)
    void PyObject_GC_UnTrack(PyObject* object)

cdef object EPOCH_ZERO = datetime(1970, 1, 1, tzinfo=timezone.utc)
cdef object LAST_TIME = datetime.max.replace(tzinfo=timezone.utc)
cdef uint64_t DAY_US = 86_400_000_000
cdef tuple GAPS = (None, GapKind.UNWRITTEN, GapKind.FILLED, GapKind.TRIMMED, GapKind.LOST)
cdef PyTypeObject* ENTRY = <PyTypeObject*> Entry


def from_timestamp(uint64_t us):
    cdef uint64_t days = us // DAY_US, rest = us % DAY_US
    if days > 2_932_896:  # 9999-12-31
        return LAST_TIME
    return EPOCH_ZERO + timedelta_new(<int> days, <int> (rest // 1_000_000), <int> (rest % 1_000_000))


cdef object new_entry(object position, object data, object timestamp):
    """Make an Entry as its own constructor would, several times faster.

    The garbage collector need not look at it, as with any tuple of atoms: an int, bytes and a
    datetime lead nowhere. Going through millions of them would cost more than making them.
    """
    cdef PyObject* made = PyType_GenericAlloc(ENTRY, 3)
    Py_INCREF(position)
    Py_INCREF(data)
    Py_INCREF(timestamp)
    PyTuple_SET_ITEM(made, 0, <PyObject*> position)
    PyTuple_SET_ITEM(made, 1, <PyObject*> data)
    PyTuple_SET_ITEM(made, 2, <PyObject*> timestamp)
    PyObject_GC_UnTrack(made)
    entry = <object> made
    Py_DECREF_PTR(made)
    return entry


cdef class Window:
    cdef readonly uint64_t start
    cdef readonly uint64_t end
    cdef readonly list items
    cdef readonly Py_ssize_t entries
    cdef readonly Py_ssize_t unanswered
    cdef readonly uint64_t data_bytes
    cdef uint64_t stamp_us
    cdef object stamp

    def __init__(self, uint64_t start, uint64_t end):
        if end < start:
            raise ValueError("a window's end lies before its start")
        self.start, self.end = start, end
        self.unanswered = <Py_ssize_t> (end - start)
        self.items = [None] * self.unanswered
        self.stamp_us, self.stamp = 0, EPOCH_ZERO

    def add(self, bytes reply not None, uint64_t first, uint32_t stride):
        cdef CppReadReply decoded
        cdef vector[uint8_t] states
        cdef uint64_t asked
        cdef uint32_t i, count
        if stride == 0 or not self.start <= first < self.end:
            raise ValueError("the reply is not about this window")
        asked = (self.end - first + stride - 1) // stride
        well_formed(
            CppReadReply.decode(view_of(reply), False, <uint32_t> min(asked, <uint64_t> 65536), &decoded),
            "read",
        )
        count = decoded.count
        with nogil:
            states.reserve(count)
            for i in range(count):
                states.push_back(<uint8_t> decoded.state_of(i, first + <uint64_t> i * stride))
        for i in range(count):
            self.put(first + <uint64_t> i * stride, states[i], &decoded, i)
        return count

    cdef int put(
        self, uint64_t position, uint8_t state, CppReadReply* decoded, uint32_t i
    ) except -1:
        cdef string_view data
        cdef Py_ssize_t at = <Py_ssize_t> (position - self.start)
        if self.items[at] is not None:
            return 0
        if state != 0:
            self.items[at] = GAPS[state]
        else:
            if decoded.timestamps[i] != self.stamp_us:
                self.stamp_us = decoded.timestamps[i]
                self.stamp = from_timestamp(self.stamp_us)
            data = decoded.data_of(i)
            self.data_bytes += data.size()
            self.entries += 1
            self.items[at] = new_entry(position, bytes_of(data), self.stamp)
        self.unanswered -= 1
        return 0

    def found(self):
        cdef Py_ssize_t i
        return {
            self.start + i: self.items[i]
            for i in range(len(self.items))
            if self.items[i] is not None
        }
