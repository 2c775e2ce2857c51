# Requests and replies of the methods on deliveries to a log (cls_zlog/delivery_messages.h).


cdef extern from "cls_zlog/delivery_messages.h" namespace "zlog" nogil:
    cdef cppclass DeliveryRequest:
        uint64_t log_id
        string_view source
        uint64_t batch
        uint32_t part
        string encode() except +

    cdef cppclass DeliveryBeginReply:
        uint32_t attempt
        uint32_t grants
        @staticmethod
        int decode(string_view reply, DeliveryBeginReply* out)

    cdef cppclass DeliveryGrantRequest:
        DeliveryRequest delivery
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
        uint32_t attempt
        vector[DeliveryGrant] grants
        @staticmethod
        int decode(string_view reply, DeliveryReadReply* out) except +

    cdef cppclass DeliveryDoneRequest:
        uint64_t log_id
        string_view source
        uint64_t batch
        string encode() except +


def encode_delivery(uint64_t log_id, str source not None, uint64_t batch, uint32_t part):
    cdef DeliveryRequest request
    cdef bytes name = source.encode()
    request.log_id, request.source = log_id, view_of(name)
    request.batch, request.part = batch, part
    return request.encode()


def decode_delivery_begin(reply not None):
    cdef DeliveryBeginReply out
    well_formed(DeliveryBeginReply.decode(reply_view(reply), &out), "delivery_begin")
    return out.attempt, out.grants


def encode_delivery_grant(
    uint64_t log_id,
    str source not None,
    uint64_t batch,
    uint32_t part,
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
    request.attempt, request.epoch = attempt, epoch
    request.first, request.count, request.reserve = first, count, reserve
    return request.encode()


def decode_delivery_read(reply not None):
    cdef DeliveryReadReply out
    cdef DeliveryGrant each
    well_formed(DeliveryReadReply.decode(reply_view(reply), &out), "delivery_read")
    return out.attempt, [range(each.first, each.first + each.count) for each in out.grants]


def encode_delivery_done(uint64_t log_id, str source not None, uint64_t batch):
    cdef DeliveryDoneRequest request
    cdef bytes name = source.encode()
    request.log_id, request.source, request.batch = log_id, view_of(name), batch
    return request.encode()
