"""The appends of an exclusive writer in two forms: on an event loop and in threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from zlog._append.append import Appender
from zlog._append.exclusive import Begun, Exclusive
from zlog._append.ownership import Ownership
from zlog._append.quota import RECOUNT_SECONDS, WriterLimits
from zlog._append.rounds import (
    QUICK_SECONDS,
    ROUND_BYTES_MAX,
    ROUND_ENTRIES_MAX,
    SUBMITTED_MAX,
    Pending,
    Round,
    again,
    not_confirmed,
    not_sent,
)
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._io import drive
from zlog._io.future import LazyFuture
from zlog._native.calls import Calls
from zlog._native.gather import Append, Gathering
from zlog._native.mutex import Mutex, begin_call, reentrant_call
from zlog._native.new_entries import NewEntry, entries_owned
from zlog.environment import world_of
from zlog.errors import ZlogError


class _Gathered:
    """The outcome of appends that were submitted together."""

    def __init__(self, gathering: Gathering, appends: list[Append]) -> None:
        self._gathering = gathering
        self._appends = appends

    def done(self) -> bool:
        return False

    def set_result(self, positions: range) -> None:
        self._gathering.complete(self._appends, positions)

    def set_exception(self, error: BaseException) -> None:
        self._gathering.complete(self._appends, [again(error) for _ in self._appends])


class AsyncioAppends(Exclusive):
    """An exclusive writer's appends on the running event loop.

    Attributes:
        append: a function that returns a coroutine to append one entry. Appends that begin in the
            same iteration of the loop are submitted together.
    """

    def __init__(
        self, appender: Appender, taken: Ownership, limits: WriterLimits, timeout: float | None
    ) -> None:
        super().__init__(appender, taken, limits, timeout)
        self._loop = loop = asyncio.get_running_loop()
        self._gathering = Gathering(
            loop,
            self.enqueue_gathered,
            appender,
            SUBMITTED_MAX,
            limits.window_bytes,
            timeout,
            world_of(loop).clock,
        )
        self.append = self._gathering.append
        self._failed: ZlogError | None = None  # why entries failed since the last freed()
        self._agents: set[asyncio.Task[None]] = set()
        self._waiting_for_change: list[asyncio.Future[None]] = []

    def _fail(self, error: ZlogError) -> None:
        super()._fail(error)
        self._failed = error if len(self._gathering) else None

    def spawn(self) -> None:
        if self._broken:
            self._create_task(self.run())
            return
        with self._mutex:
            self._starting -= 1
            sent = self._take()
        if sent is None:
            self.proceed(self.confirmed)
        else:
            self._send_quickly(sent)

    def _create_task(self, work: Coroutine[Any, Any, None]) -> None:
        agent = self._loop.create_task(work)
        self._agents.add(agent)
        agent.add_done_callback(self._agents.discard)

    def _send_quickly(self, sent: Round) -> None:
        """Send a round. A task continues if a reply is late or not OK."""
        view, confirmed = self._view, self.confirmed
        try:
            begun = self._begin(view, sent)
        except Exception:  # noqa: BLE001 - the task gets the error again, and fails the entries
            self._create_task(self.run(sent))
            return
        started = begun[1]
        assert isinstance(started, Calls)

        def ended() -> None:
            late.cancel()
            if not started.all_ok:
                self._create_task(self.run(sent, begun))
            elif self._end(view, sent, started.replies, None):
                self._create_task(self._recover_and_proceed(confirmed))
            else:
                self.proceed(confirmed)

        def hand_over() -> None:
            started.on_end(None)
            self._create_task(self.run(sent, begun))

        patience = QUICK_SECONDS if self._timeout is None else min(QUICK_SECONDS, self._timeout)
        late = self._loop.call_later(patience, hand_over)
        started.on_end(ended)

    async def _recover_and_proceed(self, confirmed: int) -> None:
        try:
            await self._recover()
        finally:
            self.proceed(confirmed)

    def enqueue_gathered(
        self, failed: ZlogError | None = None, *, all_of_it: bool = False
    ) -> ZlogError | None:
        """Enqueue the gathered appends that fit into the writer's window. Returns the first error.

        If ``all_of_it`` is set, the other appends are enqueued too. Once an append has failed, all
        later ones fail with the same error, so that no entry follows a missing one. ``failed`` is
        the error of an earlier append, or None.
        """
        gathering = self._gathering
        while len(gathering) and (
            all_of_it
            or failed is not None
            or self.quota.unconfirmed_bytes < self.quota.window_bytes
        ):
            entries, appends, late = gathering.take(ROUND_ENTRIES_MAX, ROUND_BYTES_MAX)
            gathering.complete(late, [not_sent() for _ in late])
            if late and failed is None:
                failed = not_sent()
            if not entries:
                continue
            outcome = _Gathered(gathering, appends)
            try:
                pending = Pending(entries, outcome, awaited=True, many=True)
                if failed is None and self.enqueue(pending):
                    self.spawn()
            except ZlogError as error:
                failed = error
            if failed is not None:
                outcome.set_exception(failed)
        gathering.alert = not len(gathering)
        return failed

    @property
    def idle(self) -> bool:
        return super().idle and not len(self._gathering)

    def freed(self) -> None:
        failed, self._failed = self._failed, None
        self.enqueue_gathered(failed)
        waiting, self._waiting_for_change = self._waiting_for_change, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def append_all(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, own: bool, many: bool = False
    ) -> Any:
        """Append entries, and return their position or positions once all of them are confirmed.

        If the caller has chosen a timeout, ``own`` is set, and the call waits no longer than until
        ``deadline``. Otherwise it waits until the entries are confirmed or have failed.
        """
        outcome = await self._submit(entries, deadline, awaited=True, many=many)
        if not own:
            return await outcome
        try:
            return await asyncio.wait_for(outcome, deadline.remaining())
        except (TimeoutError, asyncio.TimeoutError):
            raise not_confirmed() from None

    async def submit(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, many: bool = False
    ) -> asyncio.Future[Any]:
        """Submit entries once there is space. Returns the future of the position or positions."""
        if not entries:
            none: asyncio.Future[range] = self._loop.create_future()
            none.set_result(range(0))
            return none
        return await self._submit(entries, deadline, awaited=False, many=many)

    async def _submit(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, awaited: bool, many: bool
    ) -> asyncio.Future[Any]:
        self._appender.check(entries)
        quota = self.quota
        outcome: asyncio.Future[Any] = self._loop.create_future()
        pending = Pending(entries_owned(entries), outcome, awaited=awaited, many=many)
        while not quota.has(pending.size):
            await quota.recount(pending.size, deadline)
            if not quota.has(pending.size):
                await self._changed(deadline.sooner(RECOUNT_SECONDS))
                if deadline.expired and not quota.has(pending.size):
                    raise quota.not_sent(pending.size)
        failed = self.enqueue_gathered(all_of_it=True)  # these appends came first
        if failed is not None:
            raise again(failed)
        if self.enqueue(pending):
            self.spawn()
        return outcome

    async def flush(self, deadline: Deadline) -> None:
        """Wait until all submitted entries are confirmed or have failed."""
        while not self.idle:
            if not await self._changed(deadline):
                raise not_confirmed()
        self.raise_failure()

    async def close(self, deadline: Deadline) -> None:
        """Wait until all submitted entries are confirmed or have failed."""
        await self.flush(deadline)

    async def _changed(self, deadline: Deadline) -> bool:
        """Wait until there may be more space. Returns False if the deadline passes first."""
        change = self._loop.create_future()
        self._waiting_for_change.append(change)
        try:
            await asyncio.wait_for(change, deadline.remaining())
        except (TimeoutError, asyncio.TimeoutError):
            return False
        return True


_THREADS = 2


class BlockingAppends(Exclusive):
    """The appends of a blocking writer."""

    def __init__(
        self, appender: Appender, taken: Ownership, limits: WriterLimits, timeout: float | None
    ) -> None:
        super().__init__(appender, taken, limits, timeout)
        self._changed = threading.Condition(Mutex())  # type: ignore[arg-type]
        self._threads: concurrent.futures.ThreadPoolExecutor | None = None
        self._runners: set[int] = set()  # the threads that send a round

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Record that this thread is sending a round, so that its own calls do not wait for it."""
        runner = threading.get_ident()
        outermost = runner not in self._runners
        self._runners.add(runner)
        try:
            yield
        finally:
            if outermost:
                self._runners.discard(runner)

    async def run(self, sent: Round | None = None, begun: Begun | None = None) -> None:
        """Send a round; see :class:`Exclusive`."""
        with self.running():
            await super().run(sent, begun)

    def check_caller(self) -> None:
        """Raise ReentrantCall if the caller's own thread is sending a round."""
        begin_call()
        if threading.get_ident() in self._runners:
            raise reentrant_call()

    def spawn(self) -> None:
        with self._changed:
            if self._threads is None:
                threads = concurrent.futures.ThreadPoolExecutor(_THREADS, "zlog-writer")
                with contextlib.suppress(RuntimeError):  # the system allows no more threads
                    threads.submit(int)
                    self._threads = threads
            if self._threads is not None:
                try:
                    self._threads.submit(drive, self.run())
                except RuntimeError as error:
                    if "new thread" not in str(error):
                        raise
                return  # if no second thread can start, this thread sends the round
        drive(self.run())

    def freed(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def append(self, entry: NewEntry) -> int:
        """Append one entry and return its position once it is confirmed."""
        deadline = deadline_of(self._io, self._timeout)
        position: int = self.append_all((entry,), deadline, own=False)
        return position

    def append_all(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, own: bool, many: bool = False
    ) -> Any:
        """Append entries, and return their position or positions once all of them are confirmed.

        If the caller has chosen a timeout, ``own`` is set. If no round is in flight, another thread
        then sends the entries, so that the call can return at ``deadline``.
        """
        self.check_caller()
        pending, future = self._prepare(entries, deadline, awaited=True, many=many)
        with self.running():
            if self.enqueue(pending):
                if own:
                    self.spawn()
                else:
                    drive(self.run())
        try:
            return future.result(deadline.remaining())
        except concurrent.futures.TimeoutError:
            raise not_confirmed() from None

    def submit(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, many: bool = False
    ) -> concurrent.futures.Future[Any]:
        """Submit entries once there is space. Returns the future of the position or positions."""
        if not entries:
            none: concurrent.futures.Future[range] = concurrent.futures.Future()
            none.set_result(range(0))
            return none
        pending, future = self._prepare(entries, deadline, awaited=False, many=many)
        with self.running():
            if self.enqueue(pending):
                self.spawn()
        return future

    def _prepare(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, awaited: bool, many: bool
    ) -> tuple[Pending, concurrent.futures.Future[Any]]:
        """Check entries and wait until there is space for them."""
        self._appender.check(entries)
        future: concurrent.futures.Future[Any] = LazyFuture()
        future.set_running_or_notify_cancel()
        pending = Pending(entries_owned(entries), future, awaited=awaited, many=many)
        quota = self.quota
        while not quota.has(pending.size):
            self.check_caller()
            drive(quota.recount(pending.size, deadline))
            with self._changed:
                if not quota.has(pending.size):
                    self._changed.wait(deadline.within(RECOUNT_SECONDS))
                    if deadline.expired and not quota.has(pending.size):
                        raise quota.not_sent(pending.size)
        return pending, future

    def flush(self, deadline: Deadline) -> None:
        """Wait until all submitted entries are confirmed or have failed."""
        self.check_caller()
        with self._changed:
            while not self.idle:
                if not self._changed.wait(deadline.remaining()):
                    raise not_confirmed()
        self.raise_failure()

    def close(self, deadline: Deadline) -> None:
        """Wait until all submitted entries are confirmed or have failed, and end the threads."""
        self.check_caller()
        try:
            self.flush(deadline)
        finally:
            with self._changed:
                threads, self._threads = self._threads, None
            if threads is not None:
                threads.shutdown()
