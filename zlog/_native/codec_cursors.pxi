# Requests and replies of the methods on a log's cursors (cls_zlog/wire/cursor_messages.h).


cdef extern from "cls_zlog/wire/cursor_messages.h" namespace "zlog" nogil:
    ctypedef uint8_t CommitMode "zlog::CommitMode"

    cdef cppclass CursorCommitRequest:
        uint64_t log_id
        string_view name
        CommitMode mode
        uint64_t position
        uint64_t timestamp
        string encode() except +

    cdef cppclass CursorRequest:
        uint64_t log_id
        string_view name
        string encode() except +

    cdef cppclass CursorReadReply:
        uint64_t position
        uint64_t created
        uint64_t updated
        @staticmethod
        int decode(string_view reply, CursorReadReply* out)

    cdef cppclass CursorListRequest:
        uint64_t log_id
        string_view after
        uint32_t count_max
        string encode() except +

    cdef cppclass NamedCursor:
        string_view name
        CursorReadReply cursor

    cdef cppclass CursorListReply:
        cbool more
        vector[NamedCursor] cursors
        @staticmethod
        int decode(string_view reply, CursorListReply* out) except +


def encode_cursor_commit(
    uint64_t log_id, str name not None, uint8_t mode, uint64_t position, uint64_t timestamp
):
    cdef CursorCommitRequest request
    cdef bytes name_bytes = name.encode()
    request.log_id, request.name = log_id, view_of(name_bytes)
    request.mode = <CommitMode> mode
    request.position, request.timestamp = position, timestamp
    return request.encode()


def encode_cursor(uint64_t log_id, str name not None):
    cdef CursorRequest request
    cdef bytes name_bytes = name.encode()
    request.log_id, request.name = log_id, view_of(name_bytes)
    return request.encode()


def decode_cursor(reply not None):
    cdef CursorReadReply out
    well_formed(CursorReadReply.decode(reply_view(reply), &out), "cursor_read")
    return out.position, out.created, out.updated


def encode_cursor_list(uint64_t log_id, str after not None, uint32_t count_max):
    cdef CursorListRequest request
    cdef bytes after_bytes = after.encode()
    request.log_id, request.after, request.count_max = log_id, view_of(after_bytes), count_max
    return request.encode()


def decode_cursor_list(reply not None):
    cdef CursorListReply out
    cdef NamedCursor each
    well_formed(CursorListReply.decode(reply_view(reply), &out), "cursor_list")
    found = []
    for each in out.cursors:
        name = bytes_of(each.name).decode()
        found.append((name, each.cursor.position, each.cursor.created, each.cursor.updated))
    return bool(out.more), found
