"""Codes that the object class answers with when the store itself had no complaint."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """Inner result of a class method (cls_zlog/base/codes.h)."""

    OK = 0
    STALE_EPOCH = 1
    READ_ONLY = 2
    NOT_WRITTEN = 3
    INVALIDATED = 4
    INVALID_EPOCH = 5


class State(enum.IntEnum):
    """State of one position in a read's reply."""

    WRITTEN = 0
    UNWRITTEN = 1
    FILLED = 2
    TRIMMED = 3
    LOST = 4


class FillCode(enum.IntEnum):
    """Why a position was filled; kept with the junk. Users see a `zlog.FillReason`."""

    UNKNOWN = 0
    READER_WAITED = 1
    ASKED = 2
    WRITER_GAVE_UP = 3
