"""The sequencer's wire format: fixed frames of 24 bytes, shared by client and server.

A frame is ``<BBHIQQ``, little-endian: type, code, log, request, a, b. Every connection starts with
HELLO in both directions. A request carries code 0 and a number of the client's choice, which the
answer repeats; answers may overtake each other. ``log`` is the handle that OPEN gave out on this
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

A payload follows its frame in whole frames, padded with zeros, so that a chunk of the stream can
always be cut with one ``iter_unpack``: what the measurements say makes the server fast. A payload
frame that was unpacked by mistake gives its bytes back when packed again.

A sequencer that wants a token answers HELLO with TOKEN_WANTED, and a challenge in a and b; nothing
but PROVE is understood then (``zlog._sequencer.token``).

STALE_EPOCH answers carry in a the sequencer's own epoch; TIMEOUT carries what
an OK would. All other answers with a code other than OK carry zeros, except that BAD_VERSION has
the server's version in a, and TOKEN_WANTED the challenge.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

PROTOCOL_VERSION = 1

FRAME = struct.Struct("<BBHIQQ")
FRAME_BYTES = FRAME.size

TAIL_MAX = 2**64 - 1
"""The highest tail that a frame can carry: where the last stripe ends, so no position."""

STATUS_BYTES_MAX = 4 << 20
"""The longest payload that a client accepts."""

RawFrame = tuple[int, int, int, int, int, int]
"""(type, code, log, request, a, b) as ``FRAME`` unpacks them."""


class Kind(IntEnum):
    """What a frame asks for, or answers."""

    HELLO = 1
    OPEN = 2
    NEXT = 3
    TAIL = 4
    WAIT = 5
    STATUS = 6
    PROVE = 7
    CLOSE = 8


class Code(IntEnum):
    """How a request went."""

    OK = 0
    STALE_EPOCH = 1
    """The request names a higher epoch than the sequencer's; or a WAIT's has come to its end."""
    NOT_OPEN = 2
    """The handle means nothing, or no longer: OPEN the log again."""
    BAD_REQUEST = 3
    LIMIT = 4
    """Too many of something; see ``zlog.seqr.limits``."""
    UNAVAILABLE = 5
    """The sequencer could not take the log over, or is about to stop."""
    LOG_NOT_FOUND = 6
    TIMEOUT = 7
    """A WAIT's time passed, and the tail did not."""
    NOT_LEADER = 8
    """Another sequencer leads in the log's place, or may lead by now."""
    BAD_VERSION = 9
    TOKEN_WANTED = 10
    """Show that you know the token: PROVE comes next, or the end."""
    TOKEN_WRONG = 11
    CERTIFICATE_WANTED = 12
    """Connect again with a client's certificate."""
    OTHER_STORE = 13
    """The log is in another store than those that the sequencer serves."""


class Reply(NamedTuple):
    """An answer as a client sees it: a frame and its payload."""

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
    """Pad a payload with zeros to whole frames."""
    return payload.ljust(payload_frames(len(payload)) * FRAME_BYTES, b"\0")


class Cutter:
    """Cuts a stream that arrives in arbitrary chunks into frames.

    Bytes after the last whole frame of a chunk, fewer than 24, wait here for the next chunk.
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[RawFrame]:
        """Return the frames that ``data`` completes, in one ``iter_unpack``."""
        if self._rest:
            data = self._rest + data
        extra = len(data) % FRAME_BYTES
        if extra:
            self._rest = data[-extra:]
            data = data[:-extra]
        elif self._rest:
            self._rest = b""
        return FRAME.iter_unpack(data)


class Payload:
    """Collects one payload from the frames that follow its announcement.

    Args:
        length: the payload's bytes, without padding; the caller has checked the limit.
    """

    __slots__ = ("_length", "_missing", "_parts")

    def __init__(self, length: int) -> None:
        self._length = length
        self._missing = payload_frames(length)
        self._parts: list[bytes] = []

    @property
    def complete(self) -> bool:
        """Whether all frames of the payload are there."""
        return not self._missing

    def add(self, frame: RawFrame) -> None:
        """Take the next frame of the stream as a part of the payload."""
        self._parts.append(FRAME.pack(*frame))
        self._missing -= 1

    def data(self) -> bytes:
        """Return the payload, its padding cut off.

        Raises:
            ValueError: the padding holds anything but zeros.
        """
        padded = b"".join(self._parts)
        if padded[self._length :].strip(b"\0"):
            raise ValueError("the padding of a payload is not zero")
        return padded[: self._length]


class ReplyReader:
    """Turns a server's stream into replies: the client's half of the codec.

    Args:
        payload_bytes_max: an announced payload above this is a broken stream.
    """

    __slots__ = ("_cutter", "_head", "_payload", "_payload_bytes_max")

    def __init__(self, payload_bytes_max: int) -> None:
        self._cutter = Cutter()
        self._payload_bytes_max = payload_bytes_max
        self._head: RawFrame | None = None
        self._payload = Payload(0)

    def feed(self, data: bytes) -> Iterable[Reply]:
        """Return the replies that ``data`` completes.

        Raises:
            ValueError: this is no stream of a sequencer; the connection must go.
        """
        replies = []
        for frame in self._cutter.feed(data):
            if self._head is None:
                if frame[0] != Kind.STATUS or frame[1] != Code.OK:
                    replies.append(Reply(*frame))
                    continue
                if frame[4] > self._payload_bytes_max:
                    raise ValueError(f"a payload of {frame[4]} bytes was announced")
                self._head = frame
                self._payload = Payload(frame[4])
            else:
                self._payload.add(frame)
            if self._payload.complete:
                replies.append(Reply(*self._head, self._payload.data()))
                self._head = None
        return replies
