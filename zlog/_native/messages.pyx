"""Requests and replies of the class methods (docs/formats/wire.md).

The function with the name of a method encodes its request. It raises ValueError or OverflowError if
a value is not valid in a request. The function with ``_reply`` decodes the reply. It raises
`zlog.CorruptEntry` if the bytes are not such a reply, and `zlog.UnsupportedVersion` if a later
version made it. Positions belong to one object and ascend. A striping is a packed
:class:`zlog._base.striping.Striping`. Fields that were added in later versions may be left out.

The build makes these functions from the C++ declarations (tools/messages_cython.py). Messages with
entries are encoded and decoded elsewhere, many entries at once.
"""

from cpython.number cimport PyNumber_Index
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.map cimport map as cpp_map
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from zlog._native.completions cimport reply_view, well_formed
from zlog._native.host cimport bytes_of, text_view, view_of
from zlog._native.striping cimport Striping, positions_of, striping_of

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zlog._base.striping import ObjectPositions
from zlog._native.completions import ReplyBytes
from zlog.errors import CorruptEntry

if TYPE_CHECKING:
    from typing import NamedTuple


cdef extern from "<string>" namespace "std" nogil:
    string_view as_view "std::string_view"(const string& text)

cdef extern from "cls_zlog/wire/runs.h" namespace "zlog" nogil:
    cdef cppclass Runs:
        @staticmethod
        cbool of(const Striping& striping, const vector[uint64_t]& positions, Runs* out) except +
        @staticmethod
        cbool row(const Striping& striping, uint64_t first, uint32_t count, Runs* out) except +

cdef extern from "cls_zlog/wire/frame.h" namespace "zlog::wire" nogil:
    ctypedef int Decoded "zlog::wire::Decoded"
    Decoded decode_message "zlog::wire::decode"[T](string_view bytes, T* out) except +
    cbool encode_message "zlog::wire::encode"[T](const T& message, string* out) except +

    cdef cppclass Further:
        uint8_t version
        uint8_t compat
        string fields


# Conversion of Python values to fields. A view is valid as long as its object is.

cdef string_view bytes_view(bytes data) except *:
    if data is None:
        raise TypeError("expected bytes, not None")
    return view_of(data)


cdef optional[uint64_t] optional_of(value) except *:
    cdef optional[uint64_t] out
    if value is not None:
        out = <uint64_t> PyNumber_Index(value)
    return out


cdef cpp_map[string, string] map_of(texts) except *:
    cdef cpp_map[string, string] out
    for key, text in texts.items():
        out[string(text_view(key))] = string(text_view(text))
    return out


cdef Runs runs_of(uint32_t striping, positions) except *:
    cdef Runs runs
    cdef bint made
    if isinstance(positions, ObjectPositions):
        made = Runs.row(striping_of(striping), positions.start, len(positions), &runs)
    else:
        made = Runs.of(striping_of(striping), positions_of(positions), &runs)
    if not made:
        raise ValueError("positions must be ascending, belong to one object, and be at most 65536")
    return runs


# The fields of a later version (version, compat and the fields), which a client stores again. Empty
# if there are none.
cdef Further further_of(bytes data) except *:
    cdef Further further
    if len(data) > 1:
        further.version, further.compat, further.fields = data[0], data[1], data[2:]
    return further


# Conversion of fields to Python values.

cdef str text_of(string_view text):
    try:
        return PyUnicode_DecodeUTF8(text.data(), <Py_ssize_t> text.size(), NULL)
    except UnicodeDecodeError:
        raise CorruptEntry("the store answered with text that is not UTF-8") from None


cdef object or_none(const optional[uint64_t]& number):
    return number.value() if number.has_value() else None


cdef list texts_of(const vector[string]& texts):
    return [text_of(as_view(texts[i])) for i in range(texts.size())]


cdef dict text_map(const cpp_map[string, string]& texts):
    cdef object found = texts
    return {text_of(<bytes> key): text_of(<bytes> text) for key, text in found.items()}


cdef bytes further_bytes(const Further& further):
    if further.fields.empty():
        return b""
    return bytes([further.version, further.compat]) + further.fields


cdef int valid(bint encoded, str what) except -1:
    if not encoded:
        raise ValueError(f"not a valid {what} request: a value is out of range")
    return 0


include "described_messages.pxi"
