"""The interface between zlog's logic and its environment, for threads and for asyncio.

zlog's logic consists of ``async def`` functions over an :class:`Io`. With ``AsyncioIo`` they
suspend as usual. With ``BlockingIo`` every await blocks and returns without suspending, so
``drive`` runs a whole call with one ``send``, without an event loop or another thread. Both classes
are in :mod:`zlog._io`. Tests use other Ios, with virtual time and faulty stores.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.refusals import from_code, refused_call
from zlog._base.sequencer import SequencerClient
from zlog._native import messages
from zlog._native.completions import ReplyBytes
from zlog.environment import SteadyTime
from zlog.store import RequestPayload, Start, Store


class Call(NamedTuple):
    """A method to be called on an object, with its request."""

    object: str
    method: str
    payload: RequestPayload


class Reply(NamedTuple):
    """The result of a call: a negative errno or a code of the class, with the method's reply."""

    code: int
    payload: ReplyBytes

    @property
    def number(self) -> int:
        """The number that a refusal contains."""
        return messages.refusal(self.payload).number

    def check(self, what: str, *expected: int) -> None:
        """Raise the exception for the code if it is neither OK nor expected."""
        if self.code not in (Code.OK, *expected):
            raise from_code(self.code, what)

    def check_call(self, method: str, object: str, *expected: int) -> None:
        """Raise the exception for the code of a call if it is neither OK nor expected."""
        if self.code not in (Code.OK, *expected):
            raise refused_call(self.code, method, object)


class OffloadedObject(str):
    """The name of an object of an offloaded stripe, with what was read from the stripe's file.

    Only the positions of one segment of the file are in ``store``, and they are not changed.

    Attributes:
        store: a store with the object. None if the file is missing or damaged.
        error: the code of calls if ``store`` is None.
    """

    store: Store | None
    error: int

    def __new__(cls, name: str, store: Store | None, error: int = 0) -> OffloadedObject:
        """Name an object."""
        made = super().__new__(cls, name)
        made.store, made.error = store, error
        return made

    def execute(self, method: str, payload: RequestPayload) -> Reply:
        """Run a method on the object, without waiting."""
        if method in _CHANGES:
            return Reply(Code.FROZEN, b"")
        if self.store is None:
            return Reply(self.error, b"")
        return Reply(*self.store.execute(str(self), method, payload))


_CHANGES = ("trim", "trim_to", "compact", "remove")
"""Methods that could change a settled position. Writes and fills report what is stored there."""


def answer_offloaded(calls: Sequence[Call]) -> list[Reply] | None:
    """Return the replies of an offloaded stripe's objects, or None if the first is in the store.

    Callers never mix calls of objects in the store with others.
    """
    if not calls or type(calls[0].object) is str:
        return None
    replies: list[Reply] = []
    for name, method, payload in calls:
        assert isinstance(name, OffloadedObject)
        replies.append(name.execute(method, payload))
    return replies


TIMED_OUT = Reply(-errno.ETIMEDOUT, b"")
"""The reply if no answer came in time. The call may still have taken effect."""


class Started(Protocol):
    """Calls in progress."""

    async def finish(self, deadline: Deadline) -> list[Reply]:
        """Wait for the calls, and return their replies in order."""


class Answered:
    """Calls whose replies are known already."""

    def __init__(self, replies: list[Reply]) -> None:
        self._replies = replies

    async def finish(self, _: Deadline) -> list[Reply]:
        """Return the replies."""
        return self._replies


class Io(Protocol):
    """The environment of the logic."""

    store: Store
    replica_reads: Counter[str]
    """The number of replies from other replicas because the primary was damaged, by object."""
    failed_reads: dict[tuple[str, str | int], float]
    """When other replicas may be asked again, for a position or method of an object."""

    async def execute(self, calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
        """Run independent calls concurrently, and return their replies in order."""

    def start(self, calls: Sequence[Call]) -> Started:
        """Start independent calls without waiting for them."""

    async def run(self, start: Start, deadline: Deadline) -> Reply:
        """Run an operation of the store that is not a call of a method."""

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds."""

    def monotonic(self) -> float:
        """Return the seconds of a monotonic clock."""

    def wall_clock_us(self) -> int:
        """Return the microseconds since 1970, UTC, at least 0."""

    def steady_clock(self) -> SteadyTime:
        """Return a time that is comparable among processes, from a clock that is never set."""

    def random(self) -> float:
        """Return a random number x with 0 ≤ x < 1."""

    def token(self, count: int) -> bytes:
        """Return ``count`` random bytes for use as a unique id."""

    def sequencer(self, address: str) -> SequencerClient:
        """Return the client for a sequencer's address. The same address gives the same client."""

    async def close(self) -> None:
        """Close the sequencers' clients. The store stays open."""


def deadline_of(io: Io, seconds: float | None) -> Deadline:
    """Start a time budget on the clock of the Io. None means no limit."""
    return Deadline(seconds, clock=io.monotonic)
