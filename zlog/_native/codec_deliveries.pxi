# Requests and replies of the methods on deliveries to a log (cls_zlog/wire/delivery_messages.h).


cdef extern from "cls_zlog/wire/delivery_messages.h" namespace "zlog" nogil:
    cdef cppclass DeliveryRequest:
        uint64_t log_id
        string_view source
        uint64_t batch
        uint32_t part
        string encode() except +

    cdef cppclass DeliveryBeginRequest:
        DeliveryRequest delivery
        uint64_t timestamp
        string encode() except +

    cdef cppclass DeliveryBeginReply:
        uint32_t attempt
        uint32_t grants
        uint64_t incarnation
        @staticmethod
        int decode(string_view reply, DeliveryBeginReply* out)

    cdef cppclass DeliveryGrantRequest:
        DeliveryRequest delivery
        uint64_t incarnation
        uint32_t attempt
        uint64_t epoch
        uint64_t first
        uint32_t count
        cbool reserve
        string encode() except +

    cdef cppclass DeliveryGrant "zlog::Grant":
        uint64_t first
        uint64_t count

    cdef cppclass DeliveryReadReply:
        uint64_t incarnation
        uint32_t attempt
        vector[DeliveryGrant] grants
        @staticmethod
        int decode(string_view reply, DeliveryReadReply* out) except +

    cdef cppclass DeliveryDoneRequest:
        uint64_t log_id
        string_view source
        uint64_t batch
        uint64_t incarnation
        uint64_t timestamp
        string encode() except +

    cdef cppclass DeliveryListRequest:
        uint64_t log_id
        string_view after
        uint32_t count_max
        string encode() except +

    cdef cppclass DeliverySource:
        uint64_t batch
        uint32_t parts
        uint64_t created
        uint64_t updated

    cdef cppclass NamedDeliverySource:
        string_view name
        DeliverySource source

    cdef cppclass DeliveryListReply:
        cbool more
        vector[NamedDeliverySource] sources
        @staticmethod
        int decode(string_view reply, DeliveryListReply* out) except +


def encode_delivery(uint64_t log_id, str source not None, uint64_t batch, uint32_t part):
    cdef DeliveryRequest request
    cdef bytes name = source.encode()
    request.log_id, request.source = log_id, view_of(name)
    request.batch, request.part = batch, part
    return request.encode()


def encode_delivery_begin(
    uint64_t log_id, str source not None, uint64_t batch, uint32_t part, uint64_t timestamp
):
    cdef DeliveryBeginRequest request
    cdef bytes name = source.encode()
    request.delivery.log_id, request.delivery.source = log_id, view_of(name)
    request.delivery.batch, request.delivery.part = batch, part
    request.timestamp = timestamp
    return request.encode()


def decode_delivery_begin(reply not None):
    cdef DeliveryBeginReply out
    well_formed(DeliveryBeginReply.decode(reply_view(reply), &out), "delivery_begin")
    return out.attempt, out.grants, out.incarnation


def encode_delivery_grant(
    uint64_t log_id,
    str source not None,
    uint64_t batch,
    uint32_t part,
    uint64_t incarnation,
    uint32_t attempt,
    uint64_t epoch,
    uint64_t first,
    uint32_t count,
    bint reserve,
):
    cdef DeliveryGrantRequest request
    cdef bytes name = source.encode()
    request.delivery.log_id, request.delivery.source = log_id, view_of(name)
    request.delivery.batch, request.delivery.part = batch, part
    request.incarnation, request.attempt, request.epoch = incarnation, attempt, epoch
    request.first, request.count, request.reserve = first, count, reserve
    return request.encode()


def decode_delivery_read(reply not None):
    cdef DeliveryReadReply out
    cdef DeliveryGrant each
    well_formed(DeliveryReadReply.decode(reply_view(reply), &out), "delivery_read")
    grants = [range(each.first, each.first + each.count) for each in out.grants]
    return out.incarnation, out.attempt, grants


def encode_delivery_done(
    uint64_t log_id, str source not None, uint64_t batch, uint64_t incarnation, uint64_t timestamp
):
    cdef DeliveryDoneRequest request
    cdef bytes name = source.encode()
    request.log_id, request.source = log_id, view_of(name)
    request.batch, request.incarnation = batch, incarnation
    request.timestamp = timestamp
    return request.encode()


def encode_delivery_list(uint64_t log_id, str after not None, uint32_t count_max):
    cdef DeliveryListRequest request
    cdef bytes name = after.encode()
    request.log_id, request.after, request.count_max = log_id, view_of(name), count_max
    return request.encode()


def decode_delivery_list(reply not None):
    cdef DeliveryListReply out
    cdef NamedDeliverySource each
    well_formed(DeliveryListReply.decode(reply_view(reply), &out), "delivery_list")
    found = []
    for each in out.sources:
        name = bytes_of(each.name).decode()
        source = each.source
        found.append((name, source.batch, source.parts, source.created, source.updated))
    return bool(out.more), found
