"""What both Ios have in common: clocks, random numbers, and a client for each sequencer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from zlog._base.deadline import Deadline
from zlog._base.io import Answered, Call, Reply, Started, answer_offloaded
from zlog._base.process import ProcessBound
from zlog._base.sequencer import SHARED_ADDRESS, SequencerClient, is_remote
from zlog._native.local import SharedSequencer
from zlog._native.mutex import Mutex
from zlog._sequencer import Credentials
from zlog.environment import REAL, SteadyTime, World
from zlog.errors import SequencerUnavailable, StoreUnavailable
from zlog.store import Start, Store

T_co = TypeVar("T_co", covariant=True)


class Batches(Protocol[T_co]):
    """A reader that returns items in batches."""

    async def next(self) -> Sequence[T_co] | None:
        """Return the next items in order, or None at the end."""


class Driver(ProcessBound, ABC):
    """Base class of the blocking and the asyncio Io.

    Args:
        connect: a function that makes a client for the sequencer at an address.
        share: a function that makes a client for the sequencer shared through the store.
    """

    def __init__(
        self,
        store: Store,
        connect: Callable[[str, Credentials], SequencerClient],
        share: Callable[[SharedSequencer], SequencerClient],
        what: str,
        world: World = REAL,
    ) -> None:
        if not hasattr(store, "url"):
            wait = "; await it, or use `async with`" if hasattr(store, "__await__") else ""
            raise TypeError(f"expected a store, as zlog.connect() returns it, not {store!r}{wait}")
        self.store = store
        self.replica_reads: Counter[str] = Counter()
        self.failed_reads: dict[tuple[str, str | int], float] = {}
        self._what = what
        self._world = world
        self._closed = False
        self._connect = connect
        self._share = share
        self._credentials = Credentials.of(store.url)
        self._sequencers: dict[str, SequencerClient] = {}
        self._lock = Mutex()

    def start(self, calls: Sequence[Call]) -> Started:
        if (replies := answer_offloaded(calls)) is not None:
            return Answered(replies)
        store = self.store
        return self._begin(lambda queue, token: store.submit(queue, token, calls), len(calls))

    async def execute(self, calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
        return await self.start(calls).finish(deadline)

    async def run(self, start: Start, deadline: Deadline) -> Reply:
        (reply,) = await self._begin(start, 1).finish(deadline)
        return reply

    @abstractmethod
    def _begin(self, start: Start, count: int) -> Started:
        """Start an operation that gets ``count`` replies."""

    def wall_clock_us(self) -> int:
        return max(0, self._world.wall_clock_us())

    def steady_clock(self) -> SteadyTime:
        return self._world.steady_clock()

    def random(self) -> float:
        return self._world.random()

    def token(self, count: int) -> bytes:
        return self._world.token(count)

    def sequencer(self, address: str) -> SequencerClient:
        with self._lock:
            self.check_open()
            client = self._sequencers.get(address)
            if client is None:
                client = self._sequencers[address] = self._new_sequencer(address)
            return client

    def _new_sequencer(self, address: str) -> SequencerClient:
        if self.store.read_only:  # a sequencer may take a log over, which changes the log
            raise SequencerUnavailable(f"{self.store.url} is read-only, so no sequencer is used")
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

    def check_open(self) -> None:
        """Raise StoreUnavailable if the handle is closed."""
        if self._closed:
            raise StoreUnavailable(
                f"{self._what} is closed; open it again",
                hint="Close a log only after you have finished with it and its iterators.",
                retryable=False,
            )
