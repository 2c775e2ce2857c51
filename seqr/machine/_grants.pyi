"""The sequencer's hot path: NEXT and TAIL are answered in C++, a chunk at a time.

``seqr/machine/native/grants.h`` has the rules. This module stores the data that they work on: tails
and epochs, and the bytes of a stream that were not processed yet. The machine uses the same data.
"""

from typing import Generic, TypeVar

from zlog._sequencer.frames import RawFrame

class LogTail:
    """The state of a log that NEXT and TAIL use. All numbers are 0 to 2^64 - 1.

    Attributes:
        epoch: of the grants; 0 unless the log is active.
        tail: the next position to grant.
        wake_at: no request waits for a position below this one.
    """

    epoch: int
    tail: int
    wake_at: int

class Counters:
    """Counters over all streams since the start, and limits of each stream.

    Attributes:
        requests: number of requests.
        due: when the machine must read the counters. From then on nothing is answered here until
            the machine has set a later time.
        positions_burst: positions that a stream may take at once, not counting grants of one.
        positions_per_s: growth of this allowance per second.
    """

    requests: int
    due: float
    positions_burst: float
    positions_per_s: float

    @property
    def grants(self) -> int:
        """Number of NEXT requests that were granted."""

_Log = TypeVar("_Log", bound=LogTail)

class Stream(Generic[_Log]):
    """The requests of a connection.

    Pass each chunk to ``answer``. While the stream is ``unfinished`` then, handle the results of
    ``take_passed`` and ``take``, and call ``answer(b"", now)``.

    Attributes:
        expects_requests: whether the next frame is a request. The machine sets it after the HELLO,
            and clears it while the payload of an OPEN arrives.
    """

    expects_requests: bool

    def __init__(self, counters: Counters) -> None: ...
    @property
    def closed(self) -> bool:
        """Whether the connection has ended. Later chunks are ignored."""

    @property
    def unfinished(self) -> bool:
        """Whether ``take`` or ``take_passed`` has something to return."""

    def log(self, handle: int) -> _Log | None:
        """Return the log of a handle; None if the handle is not open."""

    def add(self, log: _Log) -> int:
        """Open a log; return its handle."""

    def remove(self, handle: int) -> None:
        """Close an open handle. A log that is opened later may get its number."""

    def answer(self, data: bytes, now: float) -> bytes:
        """Take a chunk of any length, and return the answers to its first requests.

        Every NEXT and TAIL before the first other frame is answered. The rest is kept.
        """

    def take(self) -> RawFrame | None:
        """Remove the next whole frame from the stream, without an answer; None if there is none."""

    def take_passed(self) -> list[_Log]:
        """Return each log whose tail has passed ``wake_at``; the caller must set it again."""

    def close(self) -> list[_Log]:
        """End the stream, and drop the rest of it. Returns the logs that were open."""
