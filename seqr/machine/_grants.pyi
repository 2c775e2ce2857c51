"""The sequencer's hot path: NEXT and TAIL are answered in C++, a chunk at a time.

``seqr/machine/native/grants.h`` has the rules. What they work on is kept here and nowhere else, and
the machine reads and writes it where it is: tails and epochs, and the bytes of a stream that still
wait. No clock, no socket.
"""

from typing import Generic, TypeVar

from zlog._sequencer.frames import RawFrame

class LogTail:
    """What NEXT and TAIL read and write of a log. All numbers are 0 to 2^64 - 1.

    Attributes:
        epoch: in which the grants count; 0 unless the log is active.
        tail: the next position to hand out.
        wake_at: no request waits for a position below it.
    """

    epoch: int
    tail: int
    wake_at: int

class Counters:
    """What is counted over all streams since the start, and what each of them may have.

    Attributes:
        requests: all of them.
        due: when the machine must look at the counters; nothing is answered here from then on,
            until the machine has set a later time.
        positions_burst: that a stream may take at once, but for those that it takes one by one.
        positions_per_s: by which that grows again.
    """

    requests: int
    due: float
    positions_burst: float
    positions_per_s: float

    @property
    def grants(self) -> int:
        """NEXT requests that were granted."""

_Log = TypeVar("_Log", bound=LogTail)

class Stream(Generic[_Log]):
    """A connection's requests, as they arrive.

    Each chunk goes through ``answer``; while the stream is ``unfinished`` after it, the caller
    deals with ``take_passed`` and the frame of ``take``, and goes on with ``answer(b"", now)``.

    Attributes:
        expects_requests: whether the next frame is a request: set after the HELLO, and not while
            the payload of an OPEN is arriving.
    """

    expects_requests: bool

    def __init__(self, counters: Counters) -> None: ...
    @property
    def closed(self) -> bool:
        """Whether the connection has ended; what still arrives is thrown away."""

    @property
    def unfinished(self) -> bool:
        """Whether there is a frame to take, or a log whose waits have come up."""

    def log(self, handle: int) -> _Log | None:
        """Return what a handle means; None if it was never given out, or taken back."""

    def add(self, log: _Log) -> int:
        """Open a log; return its handle."""

    def remove(self, handle: int) -> None:
        """Take back a handle that means a log. A log that is opened later may get its number."""

    def answer(self, data: bytes, now: float) -> bytes:
        """Take a chunk of the stream, cut anywhere, and return answers to its first requests.

        It answers every NEXT and TAIL up to the first frame that is something else. Less than a
        frame is kept until the next chunk.
        """

    def take(self) -> RawFrame | None:
        """Take the next whole frame from the stream, unanswered; None if none is there."""

    def take_passed(self) -> list[_Log]:
        """Return the logs whose tail has passed ``wake_at``, once each.

        Their ``wake_at`` is out of reach meanwhile; the caller looks who waits and sets it.
        """

    def close(self) -> list[_Log]:
        """End the stream and forget what is left of it; return the logs that were open."""
