"""The world as the protocol's logic sees it, once for threads and once for asyncio.

zlog's logic is written a single time, as ``async def`` functions over an :class:`Io`. Driven by
``AsyncioIo`` they suspend as coroutines do. Driven by ``BlockingIo`` they never suspend: every
await blocks inside and returns at once, so ``drive`` runs a whole call with one ``send``, without
an event loop and without handing work to another thread. Both are in :mod:`zlog._io`. A third Io,
with virtual time and a faulty store, is what a simulator brings.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.refusals import from_code, refused_call
from zlog._base.sequencer import SequencerClient
from zlog._native import messages
from zlog.environment import SteadyTime
from zlog.store import RequestPayload, Start, Store

if TYPE_CHECKING:
    from zlog._native.completions import ReplyBytes


class Call(NamedTuple):
    """One call of a class method on one object."""

    object: str
    method: str
    payload: RequestPayload


class Reply(NamedTuple):
    """What came back: a negative errno or an inner code, and the method's reply."""

    code: int
    payload: ReplyBytes

    @property
    def number(self) -> int:
        """The number that comes with a refusal."""
        return messages.refusal(self.payload).number

    def check(self, what: str, *expected: int) -> None:
        """Raise what the code means, unless it is OK or expected."""
        if self.code not in (Code.OK, *expected):
            raise from_code(self.code, what)

    def check_call(self, method: str, object: str, *expected: int) -> None:
        """Raise what the code of a call means, unless it is OK or expected."""
        if self.code not in (Code.OK, *expected):
            raise refused_call(self.code, method, object)


TIMED_OUT = Reply(-errno.ETIMEDOUT, b"")
"""No answer came in time; whether the call took effect is unknown."""


class Started(Protocol):
    """Calls under way."""

    async def finish(self, deadline: Deadline) -> list[Reply]:
        """Wait for all of them; replies in the calls' order."""
        ...


class Io(Protocol):
    """What the logic may ask of the world."""

    store: Store
    rescued: Counter[str]
    """Replies that another copy gave since the primary one was damaged, by object."""
    in_vain: dict[tuple[str, str | int], float]
    """Until when copies of an object are not asked again, for a position or by a method."""

    async def execute(self, calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
        """Run independent calls at the same time; replies in the calls' order."""
        ...

    def start(self, calls: Sequence[Call]) -> Started:
        """Start independent calls, to wait for them later or never."""
        ...

    async def run(self, start: Start, deadline: Deadline) -> Reply:
        """Run one operation of the store that is no call of the class's methods."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def wall_clock_us(self) -> int:
        """Microseconds since 1970, UTC; 0 if the clock shows an earlier time."""
        ...

    def steady_clock(self) -> SteadyTime:
        """Return a time that is not set, and can be compared with other processes' times."""
        ...

    def random(self) -> float:
        """Return a random number, 0 ≤ x < 1."""
        ...

    def token(self, count: int) -> bytes:
        """Return ``count`` random bytes, to tell something apart from everything else."""
        ...

    def sequencer(self, address: str) -> SequencerClient:
        """Return the client for a sequencer's address, the same one each time."""
        ...

    async def close(self) -> None:
        """Close what was opened here; the store stays open."""
        ...


def deadline_of(io: Io, seconds: float | None) -> Deadline:
    """Start a time budget of ``seconds`` (None: no end) on the Io's own clock."""
    return Deadline(seconds, clock=io.monotonic)
