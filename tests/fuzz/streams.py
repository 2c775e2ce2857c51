"""Streams that a hostile client may send a sequencer: sound frames, and what is made of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from random import Random

from zlog._base.sequencer import LogAddress
from zlog._sequencer.frames import FRAME, FRAME_BYTES, TAIL_MAX, Kind, pack_payload

FRAMES_MAX = 6
"""Requests in one stream, before it is mutated."""

LOGS = tuple(LogAddress("pool", "space", f"log-{number}", number) for number in range(24))
_PAYLOADS = (
    *(log.encode() for log in LOGS),
    b"pool\0\0bad name!\0" + b"0" * 16,
    b"pool\0\0log\0-00000000000000f",
    b"pool\0\0log\0" + b"1" + b"0" * 16,
    b"\xff\xfe",
    b"\0\0\0",
    b"a" * 1024,
    b"a" * 1025,
)
_COUNTS = (0, 1, 1, 1, 2, 65536, 65537, TAIL_MAX)
_NUMBERS = (0, 1, 2000, 2**16, 2**31, 2**32 - 1, 2**63, TAIL_MAX - 1, TAIL_MAX)
_WAITS_MS = (0, 1, 50, 1000, 2**63, TAIL_MAX)
_SPLICED = 64


def hello(number: int, request: int = 0) -> bytes:
    """Say HELLO; the number is not 0 where a token is to be shown."""
    return FRAME.pack(Kind.HELLO, 0, 0, request, 1, number)


def prove(a: int, b: int) -> bytes:
    """Show a proof."""
    return FRAME.pack(Kind.PROVE, 0, 0, 1, a, b)


class Streams:
    """Makes streams, each from chance and from those before it.

    Args:
        random: decides everything.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._before: deque[bytes] = deque([b""], _SPLICED)
        self._request = 0

    def body(self, epoch: int, *, opens: bool) -> bytes:
        """Requests of a client that has been let in; more than half of them as sound as can be.

        Args:
            epoch: the highest that any log is in.
            opens: whether to begin with an OPEN.
        """
        random = self._random
        count = int(random.random() ** 2 * FRAMES_MAX) + 1
        frames = [self._frame(epoch) for _ in range(count)]
        if opens:
            frames.insert(0, self._open(0, 0))
        data = b"".join(frames)
        return data if random.random() < 0.6 else self.mutated(data)

    def mutated(self, data: bytes) -> bytes:
        """Flip bits, lie about lengths, cut, insert, and splice with an earlier stream."""
        changed = bytearray(data)
        random = self._random
        for _ in range(random.choice((1, 1, 1, 2, 6))):
            self._change(changed)
        self._before.append(data)
        return bytes(changed)

    def cut(self, data: bytes) -> Iterable[bytes]:
        """Cut a stream into chunks, none of them empty; most of them stay whole."""
        random = self._random
        way = random.random()
        if way < 0.7 or not data:
            return (data,) if data else ()
        size_max = 1 if way > 0.99 else 4 * FRAME_BYTES
        chunks = []
        at = 0
        while at < len(data):
            size = 1 + int(random.random() * size_max)
            chunks.append(data[at : at + size])
            at += size
        return chunks

    def _frame(self, epoch: int) -> bytes:
        random = self._random
        kind = random.random()
        self._request = request = self._request + 1 & 0xFFFFFFFF
        handle = int(random.random() ** 2 * 3) if random.random() < 0.97 else random.getrandbits(16)
        known = 1 if random.random() < 0.95 else random.choice((0, epoch, epoch + 1, TAIL_MAX))
        if kind < 0.3:
            return FRAME.pack(Kind.NEXT, 0, handle, request, random.choice(_COUNTS), known)
        if kind < 0.4:
            return FRAME.pack(Kind.TAIL, 0, handle, request, 0, known)
        if kind < 0.7:
            return self._open(request, known)
        if kind < 0.94:
            position = random.choice(_NUMBERS)
            return FRAME.pack(Kind.WAIT, 0, handle, request, position, random.choice(_WAITS_MS))
        if kind < 0.955:
            return FRAME.pack(Kind.STATUS, 0, 0, request, 0, 0)
        if kind < 0.97:
            return FRAME.pack(Kind.HELLO, 0, 0, request, 1, 0)
        if kind < 0.98:
            return FRAME.pack(Kind.CLOSE, 0, handle, request, 0, 0)
        return random.randbytes(FRAME_BYTES)

    def _open(self, request: int, dead_epoch: int) -> bytes:
        random = self._random
        if random.random() < 0.9:
            payload = _PAYLOADS[int(random.random() ** 2 * len(LOGS))]
        else:
            payload = random.choice(_PAYLOADS)
        head = FRAME.pack(Kind.OPEN, 0, 0, request, len(payload), dead_epoch)
        return head + pack_payload(payload)

    def _change(self, data: bytearray) -> None:
        random = self._random
        at = int(random.random() * len(data))
        kind = int(random.random() * 8)
        if kind <= 1 and data:
            data[at] ^= 1 << int(random.random() * 8)
        elif kind == 2:  # a field of a frame: a length, a count, an epoch
            frame = at // FRAME_BYTES * FRAME_BYTES
            at = frame + random.choice((8, 16))
            data[at : at + 8] = random.choice(_NUMBERS).to_bytes(8, "little")
        elif kind == 3:
            del data[at : at + 1 + int(random.random() * 2 * FRAME_BYTES)]
        elif kind == 4:
            data[at:at] = random.randbytes(1 + int(random.random() * FRAME_BYTES))
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            other = random.choice(self._before)
            start = int(random.random() * len(other))
            data[at:at] = other[start : start + int(random.random() * 4 * FRAME_BYTES)]
        else:
            data[at:at] = data[at : at + FRAME_BYTES] * int(random.random() ** 4 * 100)
