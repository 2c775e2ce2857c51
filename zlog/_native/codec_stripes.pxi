# Requests and replies of the methods on a log's stripe index (cls_zlog/wire/stripe_index_messages.h).


cdef extern from "cls_zlog/wire/stripe_index_messages.h" namespace "zlog" nogil:
    cdef cppclass StripesReadRequest:
        uint64_t log_id
        uint64_t position
        uint32_t count_max
        string encode() except +

    cdef cppclass StripesReadReply:
        cbool more
        vector[Stripe] stripes
        @staticmethod
        int decode(string_view reply, StripesReadReply* out) except +

    cdef cppclass StripesLooseRequest:
        uint64_t log_id
        uint64_t after_id
        uint32_t count_max
        string encode() except +

    cdef cppclass LooseStripe:
        uint64_t id
        uint32_t width

    cdef cppclass StripesLooseReply:
        uint64_t newest
        cbool more
        vector[LooseStripe] stripes
        @staticmethod
        int decode(string_view reply, StripesLooseReply* out) except +

    cdef cppclass StripeForgetRequest:
        uint64_t log_id
        uint64_t id
        string encode() except +


def encode_stripes_read(uint64_t log_id, uint64_t position, uint32_t count_max):
    cdef StripesReadRequest request
    request.log_id, request.position, request.count_max = log_id, position, count_max
    return request.encode()


def decode_stripes_read(reply not None):
    cdef StripesReadReply out
    cdef Stripe stripe
    well_formed(StripesReadReply.decode(reply_view(reply), &out), "stripes_read")
    stripes = []
    for stripe in out.stripes:
        stripes.append((stripe.id, stripe.start, stripe.end, stripe.width))
    return bool(out.more), stripes


def encode_stripes_loose(uint64_t log_id, uint64_t after_id, uint32_t count_max):
    cdef StripesLooseRequest request
    request.log_id, request.after_id, request.count_max = log_id, after_id, count_max
    return request.encode()


def decode_stripes_loose(reply not None):
    cdef StripesLooseReply out
    cdef LooseStripe stripe
    well_formed(StripesLooseReply.decode(reply_view(reply), &out), "stripes_loose")
    stripes = []
    for stripe in out.stripes:
        stripes.append((stripe.id, stripe.width))
    return out.newest, bool(out.more), stripes


def encode_stripe_forget(uint64_t log_id, uint64_t id):
    cdef StripeForgetRequest request
    request.log_id, request.id = log_id, id
    return request.encode()
