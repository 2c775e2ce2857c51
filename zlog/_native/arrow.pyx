"""Columns as a stream of Arrow, without Arrow's libraries.

https://arrow.apache.org/docs/format/CDataInterface.html defines the structures. Their consumer may
call the functions from any thread. A batch keeps the memory of its columns until it is released.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_SetInterrupt
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EIO
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

cdef extern from "Python.h":
    bint Py_IsInitialized() nogil


cdef struct ArrowSchema:
    const char* format
    const char* name
    const char* metadata
    int64_t flags
    int64_t n_children
    ArrowSchema** children
    ArrowSchema* dictionary
    void (*release)(ArrowSchema*) noexcept nogil
    void* private_data


cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void** buffers
    ArrowArray** children
    ArrowArray* dictionary
    void (*release)(ArrowArray*) noexcept nogil
    void* private_data


cdef struct ArrowArrayStream:
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept
    int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept
    const char* (*get_last_error)(ArrowArrayStream*) noexcept
    void (*release)(ArrowArrayStream*) noexcept nogil
    void* private_data


ctypedef fused Node:
    ArrowSchema
    ArrowArray


# Drops a structure's reference to a Python object. A consumer may outlive the interpreter.
cdef void drop(void* held) noexcept nogil:
    if Py_IsInitialized():
        with gil:
            Py_DECREF(<object> held)


cdef void release(Node* node) noexcept nogil:
    cdef int64_t i
    for i in range(node.n_children):
        if node.children[i].release != NULL:  # the consumer may have moved it
            node.children[i].release(node.children[i])
    node.release = NULL
    drop(node.private_data)


cdef void release_schema(ArrowSchema* schema) noexcept nogil:
    release(schema)


cdef void release_array(ArrowArray* values) noexcept nogil:
    release(values)


# Initializes a node and allocates its children. Adds their memory to the objects that it owns.
cdef int begin(Node* out, size_t children, list owned) except -1:
    cdef bytearray memory = bytearray(children * (sizeof(Node*) + sizeof(Node)))
    cdef Node* first
    cdef size_t i
    memset(out, 0, sizeof(Node))
    out.children = <Node**> PyByteArray_AS_STRING(memory)
    first = <Node*> (out.children + children)
    for i in range(children):
        out.children[i] = first + i
    out.n_children = <int64_t> children
    owned.append(memory)
    out.private_data = <void*> owned
    Py_INCREF(owned)
    return 0


# Sets a field's schema, except for its children. The texts must be literals.
cdef int set_field(
    ArrowSchema* out, const char* format, const char* name, size_t children=0
) except -1:
    begin(out, children, [])
    out.format, out.name = format, name
    out.flags = 2  # nullable: no value is null, but libraries expect it when they join tables
    out.release = release_schema
    return 0


# Sets an array, except for its children. Its first buffer is NULL, because no value is null.
cdef int set_array(ArrowArray* out, size_t length, tuple buffers, size_t children=0) except -1:
    cdef list views = [memoryview(each) for each in buffers]  # a caller may release the others
    cdef bytearray pointers = bytearray((1 + len(views)) * sizeof(void*))
    cdef size_t i
    begin(out, children, [*views, pointers])
    out.buffers = <const void**> PyByteArray_AS_STRING(pointers)
    for i in range(len(views)):
        out.buffers[i + 1] = PyMemoryView_GET_BUFFER(views[i]).buf
    out.length, out.n_buffers = <int64_t> length, 1 + len(views)
    out.release = release_array
    return 0


# Sets the record batch of a window of `zlog.Columns`.
cdef int set_batch(ArrowArray* out, columns) except -1:
    cdef size_t count = len(columns)
    tags = columns.tags
    set_array(out, count, (), 3 if tags is None else 4)
    set_array(out.children[0], count, (columns.positions,))
    set_array(out.children[1], count, (columns.timestamps,))
    set_array(out.children[2], count, (columns.offsets, columns.data))
    if tags is not None:
        texts = [tag.encode() for row in tags for tag in row]
        ends = array("i", accumulate(map(len, texts), initial=0))
        rows = array("i", accumulate(map(len, tags), initial=0))
        set_array(out.children[3], count, (rows,), 1)
        set_array(out.children[3].children[0], len(texts), (ends, b"".join(texts)))
    return 0


@cython.final
cdef class Source:
    cdef object windows
    cdef bint with_tags
    cdef bytes error

    # Keeps the text of an error for the consumer, which will raise an error of its own.
    cdef void keep(self, error) noexcept:
        self.error = f"{type(error).__name__}: {error}".encode(errors="replace")
        if isinstance(error, KeyboardInterrupt):
            PyErr_SetInterrupt()


cdef int get_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept with gil:
    cdef Source source = <Source> stream.private_data
    try:
        set_field(out, b"+s", b"", 3 + source.with_tags)
        set_field(out.children[0], b"l", b"position")
        set_field(out.children[1], b"tsu:UTC", b"timestamp")
        set_field(out.children[2], b"z", b"data")
        if source.with_tags:
            set_field(out.children[3], b"+l", b"tags", 1)
            set_field(out.children[3].children[0], b"u", b"item")
        return 0
    except BaseException as error:
        source.keep(error)
    return EIO


cdef int get_next(ArrowArrayStream* stream, ArrowArray* out) noexcept with gil:
    cdef Source source = <Source> stream.private_data
    out.release = NULL  # which means the end of the stream
    try:
        if source.error is None:
            for columns in source.windows:
                if len(columns) > 0:
                    return set_batch(out, columns)
            return 0
    except BaseException as error:
        source.keep(error)
        if out.release != NULL:
            out.release(out)
    return EIO


cdef const char* get_last_error(ArrowArrayStream* stream) noexcept with gil:
    error = (<Source> stream.private_data).error
    if error is None:
        return NULL
    return PyBytes_AS_STRING(error)


cdef void release_stream(ArrowArrayStream* stream) noexcept nogil:
    stream.release = NULL
    drop(stream.private_data)


cdef void free_stream(object capsule) noexcept:
    stream = <ArrowArrayStream*> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:  # the consumer may have moved it
        stream.release(stream)
    free(stream)


def stream_of(windows: Iterator[Any], bint with_tags) -> object:
    """Return a capsule ``arrow_array_stream``, with a batch of each non-empty ``zlog.Columns``."""
    cdef Source source = Source()
    stream = <ArrowArrayStream*> calloc(1, sizeof(ArrowArrayStream))
    if stream == NULL:
        raise MemoryError
    capsule = PyCapsule_New(stream, "arrow_array_stream", free_stream)
    source.windows, source.with_tags = windows, with_tags
    stream.get_schema, stream.get_next = get_schema, get_next
    stream.get_last_error, stream.release = get_last_error, release_stream
    stream.private_data = <void*> source
    Py_INCREF(source)
    return capsule
