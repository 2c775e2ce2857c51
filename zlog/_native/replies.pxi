# Replies of the methods that carry data (cls_zlog/wire/read_reply.h); messages.pyx has the others.

include "positions.pxi"

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.unicode cimport PyUnicode_DecodeUTF8
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libcpp.memory cimport unique_ptr
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.string_view cimport string_view

from typing import NamedTuple

from zlog.errors import CorruptEntry, UnsupportedVersion


cdef extern from "cls_zlog/base/crc32c.h" namespace "zlog" nogil:
    uint32_t cpp_crc32c "zlog::crc32c"(string_view data, uint32_t seed)

cdef extern from "cls_zlog/client/newest.h" namespace "zlog" nogil:
    optional[size_t] cpp_newest "zlog::newest"(const string& name, const vector[string]& values)

cdef extern from "cls_zlog/wire/frame.h" namespace "zlog::wire" nogil:
    ctypedef int Decoded "zlog::wire::Decoded"
    Decoded decode_message "zlog::wire::decode"[T](string_view bytes, T* out) except +

cdef extern from "cls_zlog/wire/stripe_messages.h" namespace "zlog" nogil:
    cdef cppclass Fullness:
        uint32_t records
        uint64_t bytes

cdef extern from "cls_zlog/wire/tags.h" namespace "zlog" nogil:
    cdef cppclass CppTags "zlog::Tags":
        cbool any()

    cdef cppclass CppTagsReader "zlog::TagsReader":
        CppTagsReader(const CppTags& tags) except +
        const vector[string_view]& names()
        const CppTags& tags()
        uint32_t begin_of(uint32_t i)
        uint32_t count_of(uint32_t i)
cdef extern from "cls_zlog/client/mac.h" namespace "zlog" nogil:
    cdef cppclass CppMacKey "zlog::MacKey":
        CppMacKey()
        CppMacKey(string_view key) except +
        cbool known()

cdef extern from "cls_zlog/wire/read_reply.h" namespace "zlog" nogil:
    # Its enumerations are read as the bytes that they are on the wire.
    cdef cppclass Column[T]:
        T operator[](uint32_t i)

cdef extern from "cls_zlog/client/taken_reply.h" namespace "zlog" nogil:
    cdef uint8_t forged_state

    cdef cppclass CppReadReply "zlog::TakenReply":
        const CppMacKey* mac
        cbool with_data
        uint32_t count
        cbool with_ids
        Column[uint64_t] timestamps
        Column[uint64_t] numbers
        CppTags tags
        string_view data_of(uint32_t i)
        string_view writer_of(uint32_t i)
        uint8_t reason_of "reason_of"(uint32_t i)
        void states_at(const uint64_t* positions, uint8_t* out) except +
        void states_of(uint64_t first, const Spacing& spacing, uint8_t* out) except +

    CppBuffer open_blocks(CppReadReply* reply) except +


FORGED = <int> forged_state


# The key of one log's MACs. It can't be got out again, printed or pickled. Made of None it says that
# the log has MACs and the client has no key: entries are counted, and their data is withheld.
@cython.final
cdef class MacKey:
    cdef unique_ptr[CppMacKey] key

    def __init__(self, bytes key):
        if key is None:
            self.key.reset(new CppMacKey())
        else:
            self.key.reset(new CppMacKey(view_of(key)))

    def __reduce__(self):
        raise TypeError("the key of a log can't be pickled or copied")


cdef const CppMacKey* mac_of(MacKey mac) noexcept:
    if mac is None:
        return NULL
    return mac.key.get()


cdef extern from "cls_zlog/wire/select_messages.h" namespace "zlog" nogil:
    cdef cppclass CppSelectGap "zlog::SelectGap":
        uint64_t first
        uint64_t last

    cdef cppclass CppSelectReply "zlog::SelectReply":
        optional[uint64_t] highest
        uint64_t end
        vector[CppSelectGap] gaps
        uint32_t count
        Column[uint64_t] positions


    cdef cppclass CppTagsListReply "zlog::TagsListReply":
        uint64_t end


cdef extern from "cls_zlog/client/newest_of_tags.h" namespace "zlog" nogil:
    cdef cppclass CppNewestOfTags "zlog::NewestOfTags":
        void note(const CppTagsListReply& reply, size_t room) except +
        vector[uint64_t] superseded(const CppTagsListReply& reply) except +
        size_t size()
        cbool doubtful()


# A large reply, where the store put it: a read-only bytes-like object.
cdef class Payload:
    cdef CppBuffer buffer

    def __len__(self):
        return <Py_ssize_t> self.buffer.bytes.size()

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(
            view,
            self,
            <void*> self.buffer.bytes.data(),
            <Py_ssize_t> self.buffer.bytes.size(),
            True,
            flags,
        )


# Below this, copying a reply is cheaper than keeping it.
cdef enum:
    PAYLOAD_BYTES_MIN = 4096


cdef object reply_of(const CppBuffer& reply):
    cdef Payload kept
    if reply.bytes.size() < PAYLOAD_BYTES_MIN:
        return bytes_of(reply.bytes)
    kept = Payload.__new__(Payload)
    kept.buffer = reply
    return kept


# The bytes of a reply, valid as long as the object is.
cdef string_view reply_view(reply) except *:
    if isinstance(reply, Payload):
        return (<Payload> reply).buffer.bytes
    if not isinstance(reply, bytes):
        raise TypeError(f"a reply is bytes, not {type(reply).__name__}")
    return view_of(<bytes> reply)


# The bytes of a Python object, valid as long as the object is.
cdef inline string_view view_of(bytes data) noexcept:
    return string_view(PyBytes_AS_STRING(data), <size_t> PyBytes_GET_SIZE(data))


cdef inline bytes bytes_of(string_view data):
    return PyBytes_FromStringAndSize(data.data(), <Py_ssize_t> data.size())


cdef int well_formed(int decoded, str what) except -1:
    if decoded == 2:
        raise UnsupportedVersion(f"a newer version of zlog made the {what} reply that was read")
    if decoded != 0:
        raise CorruptEntry(f"the store answered with a malformed {what} reply")
    return 0


# A reply to a read of `asked` positions of a log with such MACs, with its blocks decompressed into
# `plain` if data was asked for. The key is used while states are asked for.
cdef int decode_read_reply(
    string_view reply, uint64_t asked, const CppMacKey* mac, bint with_data, CppReadReply* out,
    CppBuffer* plain
) except -1 nogil:
    cdef int decoded = <int> decode_message(reply, out)
    out.mac, out.with_data = mac, with_data
    if decoded == 0 and out.count <= asked:
        plain[0] = open_blocks(out)
        return 0
    return 1 if decoded == 0 else decoded


# The tags of a reply's entries, as tuples of text. Entries with one tag, the same, share theirs.
cdef class TagTable:
    cdef unique_ptr[CppTagsReader] reader
    cdef list names
    cdef list alone

    cdef tuple of(self, uint32_t i):
        cdef CppTagsReader* reader = self.reader.get()
        cdef uint32_t at = reader.begin_of(i), id
        cdef uint32_t end = at + reader.count_of(i)
        if end == at:
            return ()
        if end > at + 1:
            return tuple([self.names[tag_id(reader, each)] for each in range(at, end)])
        id = tag_id(reader, at)
        found = self.alone[id]
        if found is None:
            found = self.alone[id] = (self.names[id],)
        return <tuple> found


cdef extern from *:
    """
    static inline uint32_t tag_id(const zlog::TagsReader* reader, uint32_t at) {
      return reader->tags().ids[at];
    }
    static inline zlog::TakenReply taken_of(const zlog::SelectReply& reply,
                                            const zlog::MacKey* mac, bool with_data) {
      zlog::TakenReply taken;
      static_cast<zlog::ReadReply&>(taken) = reply.entries;
      taken.mac = mac;
      taken.with_data = with_data;
      return taken;
    }
    static inline uint8_t gap_state(const zlog::SelectGap& gap) {
      return static_cast<uint8_t>(gap.state);
    }
    """
    uint32_t tag_id(const CppTagsReader* reader, uint32_t at) nogil
    uint8_t gap_state(const CppSelectGap& gap) nogil
    CppReadReply taken_of(const CppSelectReply& reply, const CppMacKey* mac, cbool data) nogil


# None where no entry has any. What is no UTF-8, which only a hostile writer sends, is escaped.
cdef TagTable tag_table(const CppReadReply& reply):
    cdef TagTable table
    cdef string_view name
    cdef size_t i
    if not reply.tags.any():
        return None
    table = TagTable.__new__(TagTable)
    table.reader.reset(new CppTagsReader(reply.tags))
    table.names = []
    for i in range(table.reader.get().names().size()):
        name = table.reader.get().names()[i]
        table.names.append(
            PyUnicode_DecodeUTF8(name.data(), <Py_ssize_t> name.size(), "backslashreplace")
        )
    table.alone = [None] * len(table.names)
    return table


# What keeps the data of a decoded reply.
cdef object keeper(reply, const CppBuffer& plain):
    cdef Payload kept
    if plain.bytes.data() == NULL:
        return reply
    kept = Payload.__new__(Payload)
    kept.buffer = plain
    return kept


def crc32c(data, uint32_t seed=0):
    cdef const uint8_t[::1] buffer = data
    if buffer.shape[0] == 0:
        return seed
    return cpp_crc32c(string_view(<const char*> &buffer[0], <size_t> buffer.shape[0]), seed)


def fullest(replies not None):
    cdef Fullness fullness
    cdef uint32_t records = 0
    cdef uint64_t size = 0
    for _, payload in replies:
        if <int> decode_message(reply_view(payload), &fullness) == 0:
            records, size = max(records, fullness.records), max(size, fullness.bytes)
    return records, size


cdef class ReadReply:
    cdef object reply  # what `decoded` points into
    cdef MacKey mac  # the same
    cdef CppBuffer plain  # the same, for data that was in blocks
    cdef CppReadReply decoded
    cdef vector[uint8_t] states
    cdef TagTable table

    def __len__(self):
        return self.decoded.count

    @property
    def count(self):
        return self.decoded.count

    cdef uint32_t at(self, Py_ssize_t i) except? 0:
        if not 0 <= i < <Py_ssize_t> self.decoded.count:
            raise IndexError(f"entry {i} of {self.decoded.count}")
        return <uint32_t> i

    cdef uint32_t at_id(self, Py_ssize_t i) except? 0:
        if not self.decoded.with_ids:
            raise ValueError("the read was made without with_ids")
        return self.at(i)

    def state(self, Py_ssize_t i):
        return self.states[self.at(i)]

    def taken_end(self):
        cdef size_t end = self.states.size()
        while end > 0 and self.states[end - 1] == 1:
            end -= 1
        return end

    def timestamp(self, Py_ssize_t i):
        return self.decoded.timestamps[self.at(i)]

    def data(self, Py_ssize_t i):
        # Of an entry whose checksum is wrong the bytes are there, and are not the entry.
        cdef uint32_t at = self.at(i)
        return bytes_of(self.decoded.data_of(at)) if self.states[at] == 0 else b""

    def tags(self, Py_ssize_t i):
        cdef uint32_t at = self.at(i)
        return () if self.table is None else self.table.of(at)

    def entry(self, Py_ssize_t i):
        return new_tagged(self.data(i), self.tags(i))

    def at_position(self, Py_ssize_t i, uint64_t position):
        cdef Entry entry = Entry.__new__(Entry)
        entry.at, entry.us = position, self.decoded.timestamps[self.at(i)]
        entry.data, entry.tags = self.data(i), self.tags(i)
        return entry

    def writer(self, Py_ssize_t i):
        return bytes_of(self.decoded.writer_of(self.at_id(i)))

    def number(self, Py_ssize_t i):
        return self.decoded.numbers[self.at_id(i)]

    def reason(self, Py_ssize_t i):
        return <uint8_t> self.decoded.reason_of(self.at_id(i))


def decode_read(reply not None, positions, MacKey mac, bint with_data=True):
    cdef ReadReply out = ReadReply.__new__(ReadReply)
    cdef vector[uint64_t] asked = positions_of(positions)
    cdef string_view content = reply_view(reply)
    cdef const CppMacKey* key = mac_of(mac)
    cdef int result
    out.reply, out.mac = reply, mac
    with nogil:
        result = decode_read_reply(content, asked.size(), key, with_data, &out.decoded, &out.plain)
        if result == 0:
            out.states.resize(out.decoded.count)
            out.decoded.states_at(asked.data(), out.states.data())
    well_formed(result, "read")
    out.table = tag_table(out.decoded)
    return out


class Selected(NamedTuple):
    highest: object
    end: int
    gaps: list
    entries: list
    damaged: list


def decode_select(reply not None, MacKey mac, bint with_data=True):
    cdef CppSelectReply decoded
    cdef CppReadReply taken
    cdef string_view content = reply_view(reply)
    cdef const CppMacKey* key = mac_of(mac)
    cdef CppBuffer plain
    cdef TagTable table
    cdef vector[uint64_t] positions
    cdef vector[uint8_t] states
    cdef uint32_t i
    cdef int result
    with nogil:
        result = <int> decode_message(content, &decoded)
        if result == 0 and decoded.count > 0:
            taken = taken_of(decoded, key, with_data)
            plain = open_blocks(&taken)
            for i in range(decoded.count):
                positions.push_back(decoded.positions[i])
            states.resize(decoded.count)
            taken.states_at(positions.data(), states.data())
    well_formed(result, "select")
    table = tag_table(taken)
    entries, damaged = [], []
    for i in range(decoded.count):
        if states[i] == WRITTEN:
            tags = () if table is None else table.of(i)
            entries.append(new_entry(positions[i], taken.data_of(i), taken.timestamps[i], tags))
        elif states[i] != TRIMMED:  # which it was since the index was made
            damaged.append(positions[i])
    gaps = [
        (decoded.gaps[i].first, decoded.gaps[i].last, gap_state(decoded.gaps[i]))
        for i in range(decoded.gaps.size())
    ]
    highest = decoded.highest.value() if decoded.highest.has_value() else None
    return Selected(highest, decoded.end, gaps, entries, damaged)


@cython.final
cdef class NewestOfTags:
    cdef CppNewestOfTags known

    def __len__(self):
        return <Py_ssize_t> self.known.size()

    @property
    def doubtful(self):
        return self.known.doubtful()

    def note(self, reply not None, Py_ssize_t room=-1):
        cdef CppTagsListReply decoded
        cdef string_view content = reply_view(reply)
        cdef int result
        with nogil:
            result = <int> decode_message(content, &decoded)
            if result == 0:
                self.known.note(decoded, <size_t> room)  # -1: as much as it takes
        well_formed(result, "tags_list")
        return decoded.end

    def superseded(self, reply not None):
        cdef CppTagsListReply decoded
        cdef vector[uint64_t] found
        cdef string_view content = reply_view(reply)
        cdef int result
        with nogil:
            result = <int> decode_message(content, &decoded)
            if result == 0:
                found = self.known.superseded(decoded)
        well_formed(result, "tags_list")
        return decoded.end, found


def newest(bytes name not None, values):
    cdef optional[size_t] found = cpp_newest(name, values)
    return found.value() if found.has_value() else None
