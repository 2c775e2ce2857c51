# cython: language_level=3, binding=True, embedsignature=False
"""Requests and replies of the class methods, as the C++ messages declare them (messages.h).

``messages.pyi``, which is generated, documents the functions and classes that this makes.
"""

include "positions.pxi"

from cpython.ref cimport PyObject
from libcpp.map cimport map as cpp_map
from libcpp.string cimport string
from libcpp.string_view cimport string_view

from inspect import Parameter, Signature

from zlog.errors import CorruptEntry, UnsupportedVersion


cdef extern from "zlog/_native/messages.h" namespace "zlog::python":
    ctypedef int (*TakeRuns)(uint32_t spacing, object positions, Runs* out) except -1
    ctypedef object (*Encode)(const char* what, object values)
    ctypedef object (*Decode)(string_view bytes, int* how)

    cdef cppclass Names:
        vector[string] found
        size_t required

    cdef cppclass CppEncoder "zlog::python::Encoder":
        string name
        Names parameters
        Encode call

    cdef cppclass CppDecoder "zlog::python::Decoder":
        string name
        string what
        Decode call

    cdef cppclass Functions:
        Functions(TakeRuns take_runs) except +
        vector[CppEncoder] encoders
        vector[CppDecoder] decoders

    cpp_map[string, PyObject*] tuple_classes


cdef int take_runs(uint32_t spacing, object positions, Runs* out) except -1:
    out[0] = runs_of(spacing, positions)
    return 0


cdef class _Encoder:
    """Encodes a request of the values that it is called with."""

    cdef bytes _name
    cdef Encode _call
    cdef tuple _parameters
    cdef size_t _required
    cdef readonly object __signature__

    def __call__(self, *values, **named):
        if named:
            values = self._bind(values, named)
        return self._call(self._name, values)

    cdef tuple _bind(self, tuple values, dict named):
        # As Signature.bind() does, whose errors these are, in a tenth of its time: each call pays.
        cdef list bound = list(values)
        cdef object name
        cdef dict rest = named.copy()
        for name in self._parameters[len(bound):]:
            if name not in rest:
                break
            bound.append(rest.pop(name))
        if rest or len(bound) < self._required:
            self.__signature__.bind(*values, **named)
            raise TypeError(f"{', '.join(rest)} needs what comes before it, {name!r}, too")
        return tuple(bound)


cdef class _Decoder:
    """Makes a named tuple of a reply."""

    cdef str _what
    cdef Decode _call

    def __call__(self, const unsigned char[::1] reply not None):
        cdef int how = 0
        cdef size_t size = reply.shape[0]
        try:
            found = self._call(string_view(<const char*> &reply[0] if size else NULL, size), &how)
        except UnicodeDecodeError:
            raise CorruptEntry("the store answered with text that is not UTF-8") from None
        if how == 2:
            raise UnsupportedVersion(f"a newer version of zlog made the {self._what} that was read")
        if how:
            raise CorruptEntry(f"the store answered with a malformed {self._what}")
        return found


cdef void add_all(dict module) except *:
    cdef Functions* functions = new Functions(take_runs)
    cdef _Encoder encoder
    cdef _Decoder decoder
    try:
        for encodes in functions.encoders:
            encoder = _Encoder.__new__(_Encoder)
            encoder._name, encoder._call = encodes.name, encodes.call
            encoder._required = encodes.parameters.required
            parameters = []
            for each in encodes.parameters.found:
                needed = len(parameters) < encodes.parameters.required
                default = Parameter.empty if needed else None
                kind = Parameter.POSITIONAL_OR_KEYWORD
                parameters.append(Parameter(each.decode(), kind, default=default))
            encoder._parameters = tuple(each.name for each in parameters)
            encoder.__signature__ = Signature(parameters)
            module[encoder._name.decode()] = encoder
        for decodes in functions.decoders:
            decoder = _Decoder.__new__(_Decoder)
            decoder._what, decoder._call = decodes.what.decode(), decodes.call
            module[decodes.name.decode()] = decoder
        for named in tuple_classes:
            tuple_class = <object> named.second
            tuple_class.__module__ = __name__
            module[named.first.decode()] = tuple_class
    finally:
        del functions


add_all(globals())
