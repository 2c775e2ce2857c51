"""The sequencer's wire format: fixed frames of 24 bytes, shared by client and server.

A frame is ``<BBHIQQ``, little-endian: type, code, log, request, a, b. Every connection starts with
HELLO in both directions. A request has code 0 and a number chosen by the client, which its answer
repeats, because answers can arrive in any order. ``log`` is the handle that OPEN returned on this
connection.

======  ============================================  ==========================================
type    request                                       answer with code OK
======  ============================================  ==========================================
HELLO   a = protocol version, b = the client's own    a = protocol version
        number, 0 if it has no token
PROVE   a, b = the client's proof                     a, b = the sequencer's proof
OPEN    a = payload bytes, b = epoch held for dead;   log = handle, a = epoch, b = tail
        payload: the log's address
NEXT    log, a = count, b = epoch of the client's     a = first position, b = epoch
        view
TAIL    log, b = epoch of the client's view           a = tail, b = epoch
WAIT    log, a = position, b = milliseconds           a = tail, above the position, b = epoch
STATUS                                                a = payload bytes; payload: JSON
CLOSE   log                                           the handle may mean another log from now on
======  ============================================  ==========================================

A payload follows its frame in whole frames, padded with zeros, so that one fast ``iter_unpack``
splits a chunk of the stream. Packing an unpacked payload frame returns its bytes.

If a sequencer requires a token, it answers HELLO with TOKEN_WANTED and a challenge in a and b. The
next frame must be PROVE (``zlog._sequencer.token``).

The answer STALE_EPOCH has the sequencer's own epoch in a, BAD_VERSION the server's version in a,
and TOKEN_WANTED the challenge. TIMEOUT has the same fields as OK. In all other answers with a code
other than OK, the fields are zero.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

PROTOCOL_VERSION = 1

FRAME = struct.Struct("<BBHIQQ")
FRAME_BYTES = FRAME.size

TAIL_MAX = 2**64 - 1
"""The highest tail in a frame: the end of the last stripe, which is not a position."""

STATUS_BYTES_MAX = 4 << 20
"""The longest payload that a client accepts."""

RawFrame = tuple[int, int, int, int, int, int]
"""(type, code, log, request, a, b) as ``FRAME`` unpacks them."""


class Kind(IntEnum):
    """The type of a request and its answer."""

    HELLO = 1
    OPEN = 2
    NEXT = 3
    TAIL = 4
    WAIT = 5
    STATUS = 6
    PROVE = 7
    CLOSE = 8


class Code(IntEnum):
    """The result of a request."""

    OK = 0
    STALE_EPOCH = 1
    """The request's epoch is higher than the sequencer's, or the epoch of a WAIT has ended."""
    NOT_OPEN = 2
    """The handle is not open, or no longer open. OPEN the log again."""
    BAD_REQUEST = 3
    LIMIT = 4
    """A limit was exceeded; see ``zlog.seqr.limits``."""
    UNAVAILABLE = 5
    """The sequencer could not take over the log, or is about to stop."""
    LOG_NOT_FOUND = 6
    TIMEOUT = 7
    """The time of a WAIT passed before the tail reached the position."""
    NOT_LEADER = 8
    """Another sequencer is the leader, or may be by now."""
    BAD_VERSION = 9
    TOKEN_WANTED = 10
    """The client must PROVE that it knows the token."""
    TOKEN_WRONG = 11
    CERTIFICATE_WANTED = 12
    """The client must connect again with a certificate."""
    OTHER_STORE = 13
    """The sequencer does not serve the log's store."""


class Reply(NamedTuple):
    """An answer: a frame and its payload."""

    kind: int
    code: int
    handle: int
    request: int
    a: int
    b: int
    payload: bytes = b""


def payload_frames(length: int) -> int:
    """Return how many frames a payload of ``length`` bytes takes."""
    return -(-length // FRAME_BYTES)


def pack_payload(payload: bytes) -> bytes:
    """Pad a payload with zeros, so that it fills whole frames."""
    return payload.ljust(payload_frames(len(payload)) * FRAME_BYTES, b"\0")


class Payload:
    """Collects a payload from its frames."""

    __slots__ = ("_length", "_missing", "_parts")

    def __init__(self, length: int) -> None:
        self._length = length
        self._missing = payload_frames(length)
        self._parts: list[bytes] = []

    @property
    def complete(self) -> bool:
        """Whether all frames have been added."""
        return not self._missing

    def add(self, frame: RawFrame) -> None:
        """Add the next frame of the stream."""
        self._parts.append(FRAME.pack(*frame))
        self._missing -= 1

    def data(self) -> bytes:
        """Return the payload without its padding. Raises ValueError if the padding is not zero."""
        padded = b"".join(self._parts)
        if padded[self._length :].strip(b"\0"):
            raise ValueError("the padding of a payload is not zero")
        return padded[: self._length]


class ReplyReader:
    """Decodes a server's stream, which arrives in chunks of any length."""

    __slots__ = ("_head", "_payload", "_rest")

    def __init__(self) -> None:
        self._rest = b""  # less than a frame
        self._head: RawFrame | None = None
        self._payload = Payload(0)

    def feed(self, data: bytes) -> list[Reply]:
        """Decode received bytes. Returns the replies that are complete now.

        Raises:
            ValueError: the stream is invalid, so the connection must be closed.
        """
        replies = []
        data = self._rest + data
        whole = len(data) - len(data) % FRAME_BYTES
        self._rest = data[whole:]
        for frame in FRAME.iter_unpack(data[:whole]):
            if self._head is None:
                if frame[0] != Kind.STATUS or frame[1] != Code.OK:
                    replies.append(Reply(*frame))
                    continue
                if frame[4] > STATUS_BYTES_MAX:
                    raise ValueError(f"a payload of {frame[4]} bytes is not allowed")
                self._head = frame
                self._payload = Payload(frame[4])
            else:
                self._payload.add(frame)
            if self._payload.complete:
                replies.append(Reply(*self._head, self._payload.data()))
                self._head = None
        return replies
