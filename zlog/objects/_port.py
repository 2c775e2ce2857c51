"""What the logic of spaces asks of its surroundings: a log, and how tasks wait for each other.

As everywhere in zlog the logic is ``async def`` (docs/decisions/0002-logic-once.md): with
:class:`ThreadPort` every await blocks inside, with :class:`AsyncioPort` it suspends.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

from zlog import aio
from zlog._base.threads import start_thread
from zlog._client import LogClient
from zlog._io import drive
from zlog._native.core import Mutex, reentrant_call
from zlog.errors import StoreTimeout
from zlog.sync.log import Log

T = TypeVar("T")


class Event(Protocol):
    """Something that happens once."""

    def set(self) -> None:
        """Wake all that wait."""
        ...

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is set; False: it was not in that time."""
        ...


class Port(Protocol):
    """See the module.

    Attributes:
        client: of the log.
        lock: held where the state is changed, and where it is read.
        caller: returns what a thread is known by.
        wait_seconds: how long one caller waits for another that makes no progress.
    """

    client: LogClient
    lock: AbstractContextManager[Any]
    wait_seconds: float | None

    @property
    def caller(self) -> Callable[[], object]: ...

    def append(self, data: bytes, tags: Sequence[str]) -> Awaitable[int]:
        """Append an entry; those that come at the same time travel together."""
        ...

    def event(self) -> Event:
        """Make an event."""
        ...

    async def pause(self) -> None:
        """Let others run."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the caller, to its end."""
        ...


class _ThreadEvent:
    def __init__(self) -> None:
        self._event = threading.Event()
        self.set = self._event.set

    async def wait(self, seconds: float | None = None) -> bool:
        return self._event.wait(seconds)


class ThreadPort:
    """That of a blocking log."""

    def __init__(self, log: Log) -> None:
        self.client: LogClient = log._client
        self.lock: AbstractContextManager[Any] = Mutex(reentrant=True)
        self.caller = threading.get_ident
        self.wait_seconds = self.client.settings.timeout
        self._log = log

    async def append(self, data: bytes, tags: Sequence[str]) -> int:
        return self._log.append(data, tags=tags)

    def event(self) -> Event:
        return _ThreadEvent()

    async def pause(self) -> None:
        pass

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        start_thread(lambda: drive(work), "zlog.objects")


class _LoopEvent:
    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.set = self._event.set

    async def wait(self, seconds: float | None = None) -> bool:
        if seconds is None:
            return await self._event.wait()
        with contextlib.suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(self._event.wait(), seconds)
        return False


class AsyncioPort:
    """That of a log for asyncio."""

    def __init__(self, log: aio.Log) -> None:
        self.client: LogClient = log._client
        self.lock: AbstractContextManager[Any] = contextlib.nullcontext()
        self.caller = object  # no task waits for itself
        self.wait_seconds: float | None = None  # nor for one that can't run
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def append(self, data: bytes, tags: Sequence[str]) -> Awaitable[int]:
        return self._log.append(data, tags=tags)

    def event(self) -> Event:
        return _LoopEvent()

    async def pause(self) -> None:
        await asyncio.sleep(0)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Turn(Generic[T]):
    def __init__(self, port: Port) -> None:
        self.done = port.event()
        self.leader = port.caller()
        self.abandoned = True  # until it has ended well, or with an error
        self.error: Exception | None = None
        self.result: T


class Rounds(Generic[T]):
    """One piece of work, done for all that ask for it at about the same time.

    Who comes while it is under way gets the result of the next one, which begins after they came.
    The first of those that wait does it for all.

    Args:
        port: of the replica.
        count: something that only grows; see ``join``. It shows progress to those that wait.

    Attributes:
        began_at: the count when the work that is under way began.
    """

    def __init__(self, port: Port, count: Callable[[], int] = lambda: 0) -> None:
        self.began_at = 0
        self._port = port
        self._count = count
        self._mutex = Mutex()
        self._running: _Turn[T] | None = None
        self._gathering: _Turn[T] | None = None

    async def join(
        self,
        work: Callable[[], Awaitable[T]],
        *,
        seconds: float | None = None,
        seen: int = 0,
    ) -> T | None:
        """Have it done, and return its result.

        With ``seconds`` what is under way will do, and is waited for that long; None comes at the
        end of that time, and at once where the count is above ``seen``. So work that ends when
        the count grows ends for all that wait for it.

        Raises:
            ReentrantCall: this thread does it, below a signal handler.
            StoreTimeout: another thread is at it for longer than the handle's time-out.
        """
        while True:
            led: _Turn[T] | None = None
            try:  # an interrupt at any point below ends the turn
                with self._mutex:
                    self.check_caller()
                    if seconds is not None and self._count() > seen:
                        return None
                    turn = None if seconds is None else self._running
                    if turn is None:
                        turn = self._gathering
                    if turn is None:
                        turn = led = _Turn(self._port)
                        self._gathering = led
                if led is not None:
                    return await self._lead(led, work)
            finally:
                if led is not None:
                    self._end(led)
            if seconds is None:
                await self._wait(turn)
            elif not await turn.done.wait(seconds):
                return None
            if turn.error is not None:
                raise turn.error
            if not turn.abandoned:
                return turn.result

    def check_caller(self) -> None:
        """Raise ReentrantCall if this thread does it, below a signal handler."""
        caller = self._port.caller()
        if any(turn and turn.leader == caller for turn in (self._running, self._gathering)):
            raise reentrant_call()

    async def _wait(self, turn: _Turn[T]) -> None:
        seconds = self._port.wait_seconds
        count = -1
        while count < (count := self._count()):
            if await turn.done.wait(seconds):
                return
        raise StoreTimeout(f"another thread has not come further for {seconds} s")

    async def _lead(self, turn: _Turn[T], work: Callable[[], Awaitable[T]]) -> T:
        try:
            while True:
                with self._mutex:
                    before = self._running
                    if before is None:
                        self._running, self._gathering = turn, None
                        self.began_at = self._count()
                        break
                await self._wait(before)
            turn.result = await work()
            turn.abandoned = False
            return turn.result
        except Exception as error:
            turn.error, turn.abandoned = error, False
            raise

    def _end(self, turn: _Turn[T]) -> None:
        with self._mutex:
            if self._running is turn:
                self._running = None
            elif self._gathering is turn:
                self._gathering = None
        turn.done.set()
