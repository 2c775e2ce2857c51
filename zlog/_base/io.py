"""The world as the protocol's logic sees it, once for threads and once for asyncio.

zlog's logic is written a single time, as ``async def`` functions over an :class:`Io`. Driven by
:class:`AsyncioIo` they suspend as coroutines do. Driven by :class:`BlockingIo` they never suspend:
every await blocks inside and returns at once, so :func:`drive` runs a whole call with one
``send``, without an event loop and without handing work to another thread. A third Io, with
virtual time and a faulty store, is what a simulator brings.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from zlog._base.deadline import Deadline
from zlog._base.environment import REAL, World, world_of
from zlog._native.core import CompletionQueue, SharedSequencer
from zlog._sequencer import (
    SHARED_ADDRESS,
    AsyncioSequencer,
    AsyncioSharedSequencer,
    BlockingSequencer,
    Credentials,
    SequencerClient,
    SharedSequencerClient,
    is_remote,
)
from zlog.errors import SequencerUnavailable, StoreUnavailable
from zlog.store import RequestPayload, Start, Store

if TYPE_CHECKING:
    from zlog._native.core import ReplyBytes, UnderWay

T = TypeVar("T")


class Call(NamedTuple):
    """One call of a class method on one object."""

    object: str
    method: str
    payload: RequestPayload


class Reply(NamedTuple):
    """What came back: a negative errno or an inner code, and the method's reply."""

    code: int
    payload: ReplyBytes


_CALL_BITS = 32
_CALL_MASK = (1 << _CALL_BITS) - 1
"""A completion's token: the group of calls in the upper bits, which of them in the lower ones."""

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
        """Microseconds since 1970, UTC."""
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


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose awaits all block inside, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise AssertionError("a coroutine driven without an event loop suspended")


def _submission(store: Store, calls: Sequence[Call]) -> Start:
    return lambda queue, token: store.submit(queue, token, calls)


class _Base:
    """What both real drivers share: clocks, randomness, one sequencer client per address."""

    def __init__(
        self,
        store: Store,
        connect: Callable[[str, Credentials], SequencerClient],
        share: Callable[[SharedSequencer], SequencerClient],
        what: str,
        world: World = REAL,
    ) -> None:
        if not hasattr(store, "url"):
            raise TypeError(f"expected a store, as zlog.connect() returns it, not {store!r}")
        self.store = store
        self._what = what
        self._world = world
        self._closed = False
        self._connect = connect
        self._share = share
        self._credentials = Credentials.of(store.url)
        self._sequencers: dict[str, SequencerClient] = {}
        self._lock = threading.Lock()

    def wall_clock_us(self) -> int:
        return self._world.wall_clock_us()

    def random(self) -> float:
        return self._world.random()

    def token(self, count: int) -> bytes:
        return self._world.token(count)

    def sequencer(self, address: str) -> SequencerClient:
        with self._lock:
            self._check_open()
            client = self._sequencers.get(address)
            if client is None:
                client = self._sequencers[address] = self._new_sequencer(address)
            return client

    def _new_sequencer(self, address: str) -> SequencerClient:
        if address == SHARED_ADDRESS:
            shared = self.store.sequencer()
            if shared is None:
                raise SequencerUnavailable(f"{self.store.url} has no sequencer of its own")
            return self._share(shared)
        if is_remote(address):
            return self._connect(address, self._credentials)
        raise SequencerUnavailable(f"can't understand the sequencer address {address!r}")

    async def close(self) -> None:
        with self._lock:
            self._closed = True
            clients, self._sequencers = list(self._sequencers.values()), {}
        for client in clients:
            await client.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(
                f"{self._what} is closed; open it again",
                hint="Close a log when it and its iterators are of no more use.",
                retryable=False,
            )


class BlockingIo(_Base):
    """Io whose coroutines block the calling thread. Usable from several threads at once.

    Args:
        store: where calls run.
        what: whose it is, for the message that it is closed.
    """

    monotonic = staticmethod(time.monotonic)  # without a detour: an append asks it ten times

    def __init__(self, store: Store, what: str = "the handle") -> None:
        super().__init__(store, BlockingSequencer, SharedSequencerClient, what)

    async def execute(self, calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
        self._check_open()
        if len(calls) == 1:
            return [Reply(*self.store.execute(*calls[0], timeout=deadline.remaining()))]
        return await self.start(calls).finish(deadline)

    def start(self, calls: Sequence[Call]) -> Started:
        return self._begin(_submission(self.store, calls), len(calls))

    async def run(self, start: Start, deadline: Deadline) -> Reply:
        (reply,) = await self._begin(start, 1).finish(deadline)
        return reply

    def _begin(self, start: Start, count: int) -> Started:
        self._check_open()
        return _BlockingCalls(start, count)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - this Io blocks on purpose, see drive()


class _BlockingCalls:
    """Calls under way, with a queue of their own: giving them up leaves nothing behind."""

    def __init__(self, start: Start, count: int) -> None:
        self._queue = CompletionQueue()
        self._replies = [TIMED_OUT] * count
        self._under_way = start(self._queue, 0)

    async def finish(self, deadline: Deadline) -> list[Reply]:
        waiting = len(self._replies)
        try:
            while waiting and self._queue.wait(deadline.remaining()):
                for index, code, payload in self._queue.drain():
                    self._replies[index] = Reply(code, payload)
                    waiting -= 1
        finally:
            if waiting and self._under_way is not None:
                self._under_way.give_up()
        return self._replies


class AsyncioIo(_Base):
    """Io of one running event loop: completions wake the loop through one file descriptor.

    Args:
        store: where calls run.
        what: whose it is, for the message that it is closed.
    """

    def __init__(self, store: Store, what: str = "the handle") -> None:
        self._loop = asyncio.get_running_loop()
        world = world_of(self._loop)
        super().__init__(store, AsyncioSequencer, AsyncioSharedSequencer, what, world)
        self._queue = CompletionQueue()
        self._groups = itertools.count()
        self._waiting: dict[int, _AsyncioCalls] = {}
        self._loop.add_reader(self._queue.fileno(), self._drain)

    def monotonic(self) -> float:
        return self._loop.time()

    async def execute(self, calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
        return await self.start(calls).finish(deadline)

    def start(self, calls: Sequence[Call]) -> Started:
        return self._begin(_submission(self.store, calls), len(calls))

    async def run(self, start: Start, deadline: Deadline) -> Reply:
        (reply,) = await self._begin(start, 1).finish(deadline)
        return reply

    def _begin(self, start: Start, count: int) -> Started:
        self._check_open()
        number = next(self._groups)
        group = _AsyncioCalls(self._loop, count)
        self._waiting[number] = group
        try:
            group.under_way = start(self._queue, number << _CALL_BITS)
        except BaseException:
            del self._waiting[number]
            raise
        return group

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        if not self._closed:
            self._loop.remove_reader(self._queue.fileno())
            # Replies are not taken out any more: what is under way has no known outcome.
            for group in self._waiting.values():
                group.give_up()
            self._waiting.clear()
        await super().close()

    def _drain(self) -> None:
        for token, code, payload in self._queue.drain():
            number = token >> _CALL_BITS
            group = self._waiting.get(number)
            if group is not None and group.put(token & _CALL_MASK, Reply(code, payload)):
                del self._waiting[number]


class _AsyncioCalls:
    """Calls under way on an event loop, with one future for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self._loop = loop
        self._replies = [TIMED_OUT] * count
        self._left = count
        self.under_way: UnderWay | None = None
        self._over: asyncio.Future[None] = loop.create_future()
        if not count:
            self.give_up()

    def put(self, index: int, reply: Reply) -> bool:
        """Take in a reply; returns whether it is the last one."""
        self._replies[index] = reply
        self._left -= 1
        if not self._left:
            self.give_up()
        return not self._left

    def give_up(self) -> None:
        """Wait no longer for what is not there yet."""
        if not self._over.done():
            self._over.set_result(None)

    async def finish(self, deadline: Deadline) -> list[Reply]:
        left = deadline.remaining()
        timer = None if left is None else self._loop.call_later(left, self.give_up)
        try:
            await self._over
        finally:
            if timer is not None:
                timer.cancel()
            if self._left and self.under_way is not None:
                self.under_way.give_up()
        return [*self._replies]
