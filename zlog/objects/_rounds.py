"""Shares one piece of work among all callers that request it at about the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from zlog.errors import StoreTimeout
from zlog.extension import LogPort, Mutex, reentrant_call

T = TypeVar("T")


class _Turn(Generic[T]):
    def __init__(self, port: LogPort) -> None:
        self.done = port.event()
        self.leader = port.caller()
        self.abandoned = True  # until the work has succeeded or raised an error
        self.error: Exception | None = None
        self.result: T


class Rounds(Generic[T]):
    """Combines requests for the same work, so that one run can serve many callers.

    A request that arrives during a run is not served by that run, which may have begun too early
    for it. All such requests wait for the next run, and the first of them does the work for all.

    Args:
        port: gives access to the log.
        count: a function that returns a number that grows as the work progresses; see ``join``.

    Attributes:
        began_at: the number that ``count`` returned when the current run began.
    """

    def __init__(self, port: LogPort, count: Callable[[], int] = lambda: 0) -> None:
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
        """Return the result of a run that begins after this call. Another caller may do the work.

        If ``seconds`` is given, the current run's result is accepted too. The call then returns
        None after ``seconds``, or at once if ``count`` is already above ``seen``.

        Raises:
            ReentrantCall: a signal handler has interrupted the thread that does the work, and calls
                this.
            StoreTimeout: another thread does the work, and made no progress within the handle's
                time-out.
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
        """Raise ReentrantCall if a signal handler calls this while its thread does the work."""
        caller = self._port.caller()
        if any(turn and turn.leader == caller for turn in (self._running, self._gathering)):
            raise reentrant_call()

    async def _wait(self, turn: _Turn[T]) -> None:
        seconds = self._port.wait_seconds
        count = -1
        while count < (count := self._count()):
            if await turn.done.wait(seconds):
                return
        raise StoreTimeout(f"another thread has made no progress for {seconds} s")

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
