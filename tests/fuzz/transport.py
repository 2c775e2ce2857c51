"""The server's end of a connection, and the client behind it, who checks what it is told."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Protocol

from zlog._sequencer.frames import FRAME, FRAME_BYTES, Code, Kind, payload_frames
from zlog._sequencer.token import Pair, Token
from zlog.seqr.peer import Peer
from zlog.seqr.server import Server

STATUS_BYTES_MAX = 2048
TOKEN = Token(b"the token of this test")

# What may come back, by what was asked. HELLO and PROVE once more are requests of no known type.
_GREETING = {Kind.HELLO: {Code.OK, Code.BAD_VERSION, Code.TOKEN_WANTED, Code.LIMIT}}
_GREETING[Kind.PROVE] = {Code.OK, Code.TOKEN_WRONG}
CODES = {
    Kind.HELLO: _GREETING[Kind.HELLO] | {Code.BAD_REQUEST},
    Kind.PROVE: _GREETING[Kind.PROVE] | {Code.BAD_REQUEST},
    Kind.OPEN: {Code.OK, Code.BAD_REQUEST, Code.LIMIT, Code.UNAVAILABLE, Code.LOG_NOT_FOUND}
    | {Code.NOT_LEADER, Code.OTHER_STORE},
    Kind.NEXT: {Code.OK, Code.STALE_EPOCH, Code.NOT_OPEN, Code.BAD_REQUEST, Code.LIMIT},
    Kind.TAIL: {Code.OK, Code.STALE_EPOCH, Code.NOT_OPEN},
    Kind.WAIT: {Code.OK, Code.TIMEOUT, Code.NOT_OPEN, Code.LIMIT, Code.STALE_EPOCH},
    Kind.STATUS: {Code.OK, Code.LIMIT},
    Kind.CLOSE: {Code.OK, Code.NOT_OPEN},
}


class Broken(AssertionError):
    """Something that must hold does not."""


def expect(holds: object, what: object) -> None:
    """Raise Broken unless it holds."""
    if not holds:
        raise Broken(str(what))


class Surroundings(Protocol):
    """What a client knows of the others.

    Attributes:
        server: that is tried.
        strict: whether no client is served without the token.
        granted: the first position of the last grant, by epoch.
    """

    server: Server
    strict: bool
    granted: dict[int, int]


class _Socket:
    def setsockopt(self, *_: object) -> None:
        pass


class Transport:
    """A connection.

    As asyncio's transport: no data after ``close``, and ``connection_lost`` soon after all that was
    written is out.
    """

    def __init__(self, world: Surroundings, ip: str, *, reads: bool = True) -> None:
        self._world = world
        self._ip = ip
        self._loop = asyncio.get_running_loop()
        self._high = 1 << 16
        self._reads = reads
        self._closing = False
        self.gone = False  # whether the server has heard that it ended
        self._paused = self._full = False
        self._unread = self._longest = 0
        self._rest = b""
        self._asked: Counter[tuple[int, int]] = Counter()
        self._payload_left = 0
        self._number: int | None = None
        self._may_be_served = not world.strict
        self.proof: Pair | None = None  # the right answer to the challenge, if there was one
        self.answered = 0
        self.peer = Peer(world.server)
        self.peer.connection_made(self)  # type: ignore[arg-type]

    # What a client does.

    @property
    def open(self) -> bool:
        """Whether anything that is sent would be read."""
        return not self._closing and not self._paused

    def send(self, chunk: bytes) -> None:
        """Have a chunk arrive where ``open``."""
        data = self._rest + chunk
        extra = len(data) % FRAME_BYTES
        self._rest = data[len(data) - extra :]
        asked = self._asked
        for kind, _, _, request, a, b in FRAME.iter_unpack(data[: len(data) - extra]):
            asked[kind, request] += 1
            if self._number is None:
                self._number = b
            elif kind == Kind.PROVE and (a, b) == self.proof:
                self._may_be_served = True
        self.peer.data_received(chunk)

    def catch_up(self, part: float) -> None:
        """Read a part of what was left unread."""
        self._unread -= int(self._unread * part)
        if self._full and self._unread <= self._high // 4:
            self._full = False
            self.peer.resume_writing()
        if self._closing and not self._unread:
            self._end()

    def leave(self, *, silently: bool) -> None:
        """End the connection from the client's side; or vanish, and leave it to the server."""
        if not silently:
            self.abort()

    # What the server does.

    def get_extra_info(self, name: str) -> object:
        if name == "peername":
            return (self._ip, 1) if self._ip else None
        return _Socket()

    def set_write_buffer_limits(self, high: int) -> None:
        self._high = high

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False

    def write(self, data: bytes) -> None:
        if self.gone:
            return  # the server does not know yet
        expect(len(data) % FRAME_BYTES == 0, f"{len(data)} bytes are no frames")
        for frame in FRAME.iter_unpack(data):
            if self._payload_left:
                self._payload_left -= 1
            else:
                self._check(*frame)
        if self._reads:
            return
        self._unread += len(data)
        self._longest = max(self._longest, len(data))
        # A chunk has answers of the hot path and others; and what waits is answered in any case.
        waits = self._world.server.limits.outstanding_per_connection_max * FRAME_BYTES
        expect(
            self._unread <= self._high + 2 * self._longest + waits,
            f"{self._unread} bytes wait for a peer that does not read",
        )
        if self._unread > self._high and not self._full:
            self._full = True
            self.peer.pause_writing()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._unread:
                self._end()

    def abort(self) -> None:
        self._closing = True
        self._end()

    def _end(self) -> None:
        if not self.gone:
            self.gone = True
            self._loop.call_soon(self.peer.connection_lost, None)

    def _check(self, kind: int, code: int, handle: int, request: int, a: int, b: int) -> None:
        shown = kind, code, handle, request, a, b
        refused = kind == Kind.HELLO and code == Code.LIMIT and not self._asked
        left = self._asked[kind, request]
        expect(left or refused, f"{shown} answers nothing that was asked")
        self._asked[kind, request] = left - 1
        self.answered += 1
        known = CODES.get(kind, {Code.BAD_REQUEST})  # type: ignore[call-overload]
        expect(code in known, f"{shown} has a code that is none of this request")
        if kind in (Kind.HELLO, Kind.PROVE):
            if code == Code.TOKEN_WANTED:
                assert self._number is not None
                self.proof = TOKEN.client_proof(self._number, Pair(a, b))
            return
        expect(self._may_be_served or code == Code.BAD_REQUEST, f"{shown} to a untrusted")
        if code != Code.OK:
            return
        if kind == Kind.STATUS:
            expect(a <= STATUS_BYTES_MAX, f"a STATUS of {a} bytes")
            self._payload_left = payload_frames(a)
        elif kind == Kind.OPEN:
            expect(handle < self._world.server.limits.logs_per_connection_max, f"handle {handle}")
        elif kind == Kind.NEXT:
            expect(self._world.granted.get(b, -1) < a, f"{shown} grants what was granted before")
            self._world.granted[b] = a
