# Requests and replies of the methods on the head and directory objects, and views
# (cls_zlog/wire/head_messages.h, cls_zlog/head/view.h).

from libcpp.map cimport map as cpp_map
from libcpp.pair cimport pair


cdef extern from "cls_zlog/wire/head_messages.h" namespace "zlog" nogil:
    string cpp_encode_empty "zlog::encode_empty"() except +

    cdef cppclass HeadCreateRequest:
        string_view name
        uint64_t log_id
        string encode() except +

    cdef cppclass EpochNextRequest:
        uint32_t width
        string encode() except +

    cdef cppclass EpochNextReply:
        uint64_t epoch
        uint64_t tail_floor
        @staticmethod
        int decode(string_view reply, EpochNextReply* out)

    cdef cppclass EpochReadReply:
        uint64_t counter
        uint64_t newest
        uint64_t tail_floor
        uint64_t trim_point
        uint64_t log_id
        @staticmethod
        int decode(string_view reply, EpochReadReply* out)

    cdef cppclass TailRaiseRequest:
        uint64_t log_id
        uint64_t epoch
        uint64_t tail
        string encode() except +

    cdef cppclass TrimPointRequest:
        uint64_t log_id
        uint64_t position
        cbool past_cursors
        string encode() except +

    cdef cppclass ViewProposeRequest:
        uint64_t base
        string_view view
        string encode() except +

    cdef cppclass ViewReadRequest:
        uint64_t from_epoch
        uint32_t count_max
        cbool latest
        string encode() except +

    cdef cppclass ViewReadReply:
        uint64_t counter
        uint64_t newest
        uint64_t tail_floor
        uint64_t trim_point
        uint64_t log_id
        cbool more
        vector[string_view] views
        @staticmethod
        int decode(string_view reply, ViewReadReply* out) except +

    cdef cppclass DirectoryEntryRequest:
        string_view name
        uint64_t log_id
        string encode() except +

    cdef cppclass DirectoryListRequest:
        string_view after
        uint32_t count_max
        string encode() except +

    cdef cppclass DirectoryListReply:
        cbool more
        vector[string_view] names
        @staticmethod
        int decode(string_view reply, DirectoryListReply* out) except +

    cdef cppclass AddressMessage:
        string_view address
        string encode() except +
        @staticmethod
        int decode(string_view reply, AddressMessage* out)

cdef extern from "cls_zlog/head/view.h" namespace "zlog" nogil:
    ctypedef uint8_t LogState "zlog::LogState"

    cdef cppclass Stripe:
        uint64_t id
        uint64_t start
        uint64_t end
        uint32_t width

    cdef cppclass View:
        uint64_t epoch
        uint64_t log_id
        LogState state
        string sequencer
        vector[Stripe] stripes
        cpp_map[string, string] options
        string encode() except +
        @staticmethod
        int decode(string_view bytes, View* out) except +


def encode_empty():
    return cpp_encode_empty()


def encode_head_create(str name not None, uint64_t log_id):
    cdef HeadCreateRequest request
    cdef bytes name_bytes = name.encode()
    request.name, request.log_id = view_of(name_bytes), log_id
    return request.encode()


def encode_epoch_next(uint32_t width):
    cdef EpochNextRequest request
    request.width = width
    return request.encode()


def decode_epoch_next(reply not None):
    cdef EpochNextReply out
    well_formed(EpochNextReply.decode(reply_view(reply), &out), "epoch_next")
    return out.epoch, out.tail_floor


def decode_epoch_read(reply not None):
    cdef EpochReadReply out
    well_formed(EpochReadReply.decode(reply_view(reply), &out), "epoch_read")
    return out.counter, out.newest, out.tail_floor, out.trim_point, out.log_id


def encode_tail_raise(uint64_t log_id, uint64_t epoch, uint64_t tail):
    cdef TailRaiseRequest request
    request.log_id, request.epoch, request.tail = log_id, epoch, tail
    return request.encode()


def encode_trim_point(uint64_t log_id, uint64_t position, bint past_cursors):
    cdef TrimPointRequest request
    request.log_id, request.position = log_id, position
    request.past_cursors = past_cursors
    return request.encode()


def encode_view(tuple view not None):
    cdef View out, check
    cdef Stripe stripe
    cdef bytes encoded
    epoch, log_id, state, sequencer, stripes, options = view
    out.epoch, out.log_id = epoch, log_id
    out.state = <LogState> <uint8_t> state
    out.sequencer = sequencer.encode()
    for stripe.id, stripe.start, stripe.end, stripe.width in stripes:
        out.stripes.push_back(stripe)
    for key, value in options:
        out.options[<string> (<bytes> key.encode())] = <string> (<bytes> value.encode())
    encoded = out.encode()
    if View.decode(view_of(encoded), &check) != 0:
        raise ValueError(f"not a valid view: {view!r}")
    return encoded


def decode_view(bytes data not None):
    cdef View out
    cdef Stripe stripe
    cdef pair[string, string] option
    if View.decode(view_of(data), &out) != 0:
        raise CorruptEntry("a stored view is damaged")
    stripes = []
    for stripe in out.stripes:
        stripes.append((stripe.id, stripe.start, stripe.end, stripe.width))
    options = []
    for option in out.options:
        options.append((option.first.decode(), option.second.decode()))
    sequencer = out.sequencer.decode()
    return out.epoch, out.log_id, <uint8_t> out.state, sequencer, tuple(stripes), tuple(options)


def encode_view_propose(uint64_t base, bytes view not None):
    cdef ViewProposeRequest request
    request.base, request.view = base, view_of(view)
    return request.encode()


def encode_view_read(uint64_t from_epoch, uint32_t count_max, bint latest):
    cdef ViewReadRequest request
    request.from_epoch, request.count_max, request.latest = from_epoch, count_max, latest
    return request.encode()


def decode_view_read(reply not None):
    cdef ViewReadReply out
    cdef string_view view
    well_formed(ViewReadReply.decode(reply_view(reply), &out), "view_read")
    views = []
    for view in out.views:
        views.append(bytes_of(view))
    more = bool(out.more)
    return out.counter, out.newest, out.tail_floor, out.trim_point, out.log_id, more, views


def encode_directory_entry(str name not None, uint64_t log_id):
    cdef DirectoryEntryRequest request
    cdef bytes name_bytes = name.encode()
    request.name, request.log_id = view_of(name_bytes), log_id
    return request.encode()


def encode_directory_list(str after not None, uint32_t count_max):
    cdef DirectoryListRequest request
    cdef bytes after_bytes = after.encode()
    request.after, request.count_max = view_of(after_bytes), count_max
    return request.encode()


def decode_directory_list(reply not None):
    cdef DirectoryListReply out
    cdef string_view name
    well_formed(DirectoryListReply.decode(reply_view(reply), &out), "directory_list")
    names = []
    for name in out.names:
        names.append(bytes_of(name).decode())
    return bool(out.more), names


def encode_address(str address not None):
    cdef AddressMessage message
    cdef bytes address_bytes = address.encode()
    message.address = view_of(address_bytes)
    return message.encode()


def decode_address(reply not None):
    cdef AddressMessage message
    well_formed(AddressMessage.decode(reply_view(reply), &message), "sequencer_find")
    return bytes_of(message.address).decode()
