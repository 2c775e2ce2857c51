"""Sends concurrent appends of one handle together, with one grant and one write per stripe object.

On an event loop, an append is sent at once if no round is in flight. Otherwise it waits, and all
waiting appends are sent together when a round returns. Rounds therefore grow with the load.

With threads, the first thread to append leads a round. It waits until the previous round is over,
then sends its own entry and those of the threads that have joined it in the meantime. A thread that
appends alone does not wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from zlog._append.conditions import Condition
from zlog._append.ordered import OrderedAppender, Part
from zlog._append.rounds import (
    QUICK_SECONDS,
    ROUND_BYTES_MAX,
    ROUND_ENTRIES_MAX,
    ROUNDS_MAX,
    SUBMITTED_MAX,
    Failed,
    RoundPolicy,
    interrupted,
    not_confirmed,
    not_sent,
)
from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._io import AsyncioIo, drive
from zlog._io.future import LazyFuture
from zlog._native.gather import Append, Gathering
from zlog._native.mutex import Mutex, begin_call, reentrant_call
from zlog._native.new_entries import NewEntry, entries_owned
from zlog._native.rounds import QuickRound, QuickRounds
from zlog._native.share import SharedRound, SharedRounds
from zlog.environment import world_of

_CHECK_SECONDS = 0.05
"""How often to check whether rounds take too long."""

_WAITING_BYTES_MAX = 64 << 20
"""How many bytes of data may wait to be sent. Later appends are held back."""


class Coalescer:
    """Sends the appends of one event loop in rounds.

    Attributes:
        append: a function that returns a coroutine to append one entry. The coroutine raises
            StoreTimeout if the timeout passes before the entry is sent. Once the entry is sent, the
            coroutine waits for the end of the round, so it can take up to twice its timeout.
        submit: a function that returns the future of an entry's position.
    """

    def __init__(self, appender: OrderedAppender, io: Io, timeout: float | None) -> None:
        assert isinstance(io, AsyncioIo)
        self._appender = appender
        self._io = io
        self._timeout = timeout
        self._loop = loop = asyncio.get_running_loop()
        clock = world_of(loop).clock
        self._gathering = Gathering(
            loop, self._send, appender, SUBMITTED_MAX, _WAITING_BYTES_MAX, timeout, clock
        )
        self._quick = QuickRounds(loop, io, appender, clock, QUICK_SECONDS, self._quick_over)
        self._tasks: set[asyncio.Task[Sequence[int] | Failed]] = set()  # each sends a round
        self._under_way = 0  # the number of entries in the rounds in flight
        self._checking: asyncio.TimerHandle | None = None
        self._change: asyncio.Future[None] | None = None
        self._policy = RoundPolicy(io.store)
        self._parts: list[tuple[Part, asyncio.Future[None]]] = []  # they wait to be sent
        self._parts_sent: list[tuple[Part, asyncio.Future[None]]] = []
        self._parts_sender: asyncio.Task[None] | None = None
        self.append = self._gathering.append
        self.submit = self._gathering.submit

    @property
    def full(self) -> bool:
        """Whether callers of :attr:`submit` should wait."""
        return self._gathering.full

    async def wait_for_space(self, deadline: Deadline) -> None:
        """Wait while this is full. Raises StoreTimeout at the deadline."""
        while self._gathering.full:
            if not await self._changed(deadline):
                raise not_sent()

    @property
    def waiting_bytes(self) -> int:
        """The bytes of data that wait to be sent, not counting appends that are held back."""
        return self._gathering.waiting_bytes

    async def append_together(self, entries: Sequence[NewEntry], condition: Condition) -> range:
        """Append a part together with those of other tasks, and return its positions."""
        appender, deadline = self._appender, deadline_of(self._io, self._timeout)
        part = appender.part(entries, condition)
        await appender.search_ended(part, appender.layout.view, deadline)
        if part.outcome is None:
            sent = self._loop.create_future()
            self._parts.append((part, sent))
            if self._parts_sender is None:
                self._begin_parts()
            await sent
        return await appender.positions_of(part, deadline_of(self._io, self._timeout))

    def _begin_parts(self) -> None:
        self._parts_sent, self._parts = self._parts, []
        deadline = deadline_of(self._io, self._timeout)
        work = self._appender.append_parts([part for part, _ in self._parts_sent], deadline)
        self._parts_sender = self._loop.create_task(work)
        self._parts_sender.add_done_callback(self._parts_over)

    def _parts_over(self, sender: asyncio.Task[None]) -> None:
        error = interrupted() if sender.cancelled() else sender.exception()
        for part, sent in self._parts_sent:
            part.outcome = error if part.outcome is None else part.outcome
            if not sent.done():
                sent.set_result(None)
        self._parts_sent, self._parts_sender = [], None
        # This runs after the tasks of these parts, so that their next appends are sent together.
        self._loop.call_soon(self._next_parts)

    def _next_parts(self) -> None:
        if self._parts and self._parts_sender is None:
            self._begin_parts()

    async def flush(self, deadline: Deadline) -> None:
        """Wait until all appends are acknowledged or have failed."""
        parts = [sent for _, sent in (*self._parts_sent, *self._parts)]
        if parts and (await asyncio.wait(parts, timeout=deadline.remaining()))[1]:
            raise not_confirmed()
        while self._under_way or len(self._gathering):
            if not await self._changed(deadline):
                raise not_confirmed()

    async def close(self) -> None:
        """Wait until all appends are acknowledged or have failed."""
        await self.flush(Deadline(None))

    async def _changed(self, deadline: Deadline) -> bool:
        """Wait until rounds have begun or ended. Returns False if the deadline passes first."""
        self._change = self._change or self._loop.create_future()
        done, _ = await asyncio.wait({self._change}, timeout=deadline.remaining())
        return bool(done)

    def _send(self) -> None:
        gathering, quickly = self._gathering, self._timeout is None or self._timeout >= 1
        share = self._policy.share(len(gathering) + self._under_way)
        begun = 0  # some stores execute a round at once, and the loop's other tasks must run too
        while len(gathering) and begun < ROUNDS_MAX and self._may_begin():
            entries, appends, late = gathering.take(share, ROUND_BYTES_MAX)
            if late:
                gathering.complete(late, [not_sent() for _ in late])
            if entries:
                begun += 1
                self._under_way += len(appends)
                if not (quickly and self._quick.begin(entries, appends)):
                    self._begin_task(entries, appends)
        gathering.alert = self._may_begin()
        if len(self._quick) and self._checking is None:
            self._checking = self._loop.call_later(_CHECK_SECONDS, self._check)
        if self._change is not None:
            self._change.set_result(None)
            self._change = None

    def _may_begin(self) -> bool:
        in_flight = len(self._quick) + len(self._tasks)
        return in_flight < self._policy.rounds_max(len(self._gathering) + self._under_way)

    def _check(self) -> None:
        self._checking = None
        if self._quick.check():
            self._checking = self._loop.call_later(_CHECK_SECONDS, self._check)

    def _begin_task(
        self,
        entries: list[NewEntry],
        appends: list[Append],
        passed: float = 0.0,
        begun: QuickRound | None = None,
    ) -> None:
        left = None if self._timeout is None else max(0.0, self._timeout - passed)
        deadline = deadline_of(self._io, left)
        work = self._appender.append_round(entries, 0, len(entries), deadline, begun)
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._finished, appends))

    def _quick_over(self, each: QuickRound, hand_over: bool) -> None:
        if hand_over:
            passed = self._io.monotonic() - each.began
            begun = None if each.calls is None else each
            self._begin_task(each.entries, each.appends, passed, begun)
            return
        took = self._io.monotonic() - each.began
        self._appender.quick_ended(len(each.appends), took, each.error)
        if each.error is None:
            self._complete(each.appends, range(each.first, each.first + len(each.appends)))
        else:
            self._complete(each.appends, Failed(each.error, (None,) * len(each.appends)))

    def _finished(self, appends: list[Append], task: asyncio.Task[Sequence[int] | Failed]) -> None:
        self._tasks.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        appended = task.result() if error is None else Failed(error, (None,) * len(appends))
        self._complete(appends, appended)

    def _complete(self, appends: list[Append], appended: Sequence[int] | Failed) -> None:
        self._under_way -= len(appends)
        outcomes = appended.outcomes() if isinstance(appended, Failed) else appended
        self._gathering.complete(appends, outcomes)
        # This runs after the tasks of this round, so that their next appends are sent together.
        self._loop.call_soon(self._send)


_GAP_SECONDS = 0.0001
"""How long a leader waits for each further thread of the previous round. Those threads are woken
one after another, and append again as soon as they run. Without this wait, the threads would split
into two groups that take turns."""

_WAIT_SECONDS_MAX = 0.005


class SharedAppends:
    """Sends the appends of all threads in rounds.

    Submitted entries are sent by a thread of their own.

    Attributes:
        append: a function that appends one entry and returns its position. It raises StoreTimeout
            if the timeout passes before the entry is sent. Once the entry is sent, the call waits
            for the end of the round, so it can take up to twice its timeout.
    """

    def __init__(self, appender: OrderedAppender, io: Io, timeout: float | None) -> None:
        self._appender = appender
        self._io = io
        self._timeout = timeout
        self._turn = Mutex(brief=False)  # held while a round is in flight
        self._rounds = SharedRounds(
            self._turn,
            self._lead,
            appender,
            not_sent,
            not_confirmed,
            timeout,
            ROUND_ENTRIES_MAX,
            ROUND_BYTES_MAX,
        )
        self._expected = 1  # how many entries to expect: as many as threads have just appended
        self._patience = 0.0  # how many seconds a leader waits for these entries
        self.append = self._rounds.append
        self._change = threading.Condition(Mutex())  # type: ignore[arg-type]
        self._submitted: deque[tuple[NewEntry, Future[int]]] = deque()
        self._submitted_bytes = 0
        self._sender: ThreadPoolExecutor | None = None
        self._sending = False
        self._sending_thread: int | None = None
        self._parts: list[Part] = []  # they wait to be sent
        self._sending_parts = False

    @property
    def full(self) -> bool:
        """Whether callers of :meth:`submit` should wait."""
        entries, size = len(self._submitted), self._submitted_bytes
        return entries >= SUBMITTED_MAX or size >= _WAITING_BYTES_MAX

    def wait_for_space(self, deadline: Deadline) -> None:
        """Wait while this is full. Raises StoreTimeout at the deadline."""
        self._begin_wait()
        with self._change:
            while self.full:
                if not self._change.wait(deadline.remaining()):
                    raise not_sent()

    def submit(self, entry: NewEntry) -> Future[int]:
        """Submit an entry, and return the future of its position."""
        begin_call()
        self._appender.check((entry,))
        (owned,) = entries_owned((entry,))
        future: Future[int] = LazyFuture()
        with self._change:
            self._submitted.append((owned, future))
            self._submitted_bytes += len(owned)
            start, self._sending = not self._sending, True
        if start:
            try:
                self._sender = self._sender or ThreadPoolExecutor(1, "zlog-sender")
                self._sender.submit(self._send_submitted)
            except RuntimeError:  # the system allows no other thread, or the handle is closed
                self._send_submitted()
        return future

    def _begin_wait(self) -> None:
        """Raise ReentrantCall in a callback of a submitted entry, which runs in the sender."""
        begin_call()
        if self._sending_thread == threading.get_ident():
            raise reentrant_call()

    def _send_submitted(self) -> None:
        self._sending_thread = threading.get_ident()
        try:
            self._send_all_submitted()
        finally:
            self._sending_thread = None

    def _send_all_submitted(self) -> None:
        while True:
            with self._change:
                count = min(len(self._submitted), ROUND_ENTRIES_MAX)
                taken = [self._submitted.popleft() for _ in range(count)]
                self._submitted_bytes -= sum(len(entry) for entry, _ in taken)
                self._sending = bool(taken)
                self._change.notify_all()
            if not taken:
                return
            taken = [each for each in taken if each[1].set_running_or_notify_cancel()]
            entries = [entry for entry, _ in taken]
            try:
                deadline = deadline_of(self._io, self._timeout)
                outcomes: Sequence[int | BaseException] = drive(
                    self._appender.append(entries, deadline)
                )
            except BaseException as error:  # noqa: BLE001 - passed to the futures
                positions = getattr(error, "positions", ()) or (None,) * len(taken)
                outcomes = Failed(error, positions).outcomes()
            for (_, future), outcome in zip(taken, outcomes, strict=True):
                if isinstance(outcome, BaseException):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

    def append_together(self, entries: Sequence[NewEntry], condition: Condition) -> range:
        """Append a part together with those of other threads, and return its positions."""
        self._begin_wait()
        appender, deadline = self._appender, deadline_of(self._io, self._timeout)
        part = appender.part(entries, condition)
        drive(appender.search_ended(part, appender.layout.view, deadline))
        taken: list[Part] = []
        try:
            with self._change:
                self._parts.append(part)
                while part.outcome is None and self._sending_parts:
                    self._change.wait()
                if part.outcome is None:
                    taken, self._parts, self._sending_parts = self._parts, [], True
            if taken:
                drive(appender.append_parts(taken, deadline_of(self._io, self._timeout)))
        finally:
            with self._change:
                if part in self._parts:  # interrupted while it waited
                    self._parts.remove(part)
                for each in taken:
                    each.outcome = interrupted() if each.outcome is None else each.outcome
                if taken:
                    self._sending_parts = False
                    self._change.notify_all()
        return drive(appender.positions_of(part, deadline_of(self._io, self._timeout)))

    def flush(self, deadline: Deadline) -> None:
        """Wait until all submitted entries are acknowledged or have failed."""
        self._begin_wait()
        with self._change:
            while self._sending:
                if not self._change.wait(deadline.remaining()):
                    raise not_confirmed()

    def close(self) -> None:
        """Wait until all submitted entries are acknowledged or have failed, and end the thread."""
        self.flush(Deadline(None))
        with self._change:
            sender, self._sender = self._sender, None
        if sender is not None:
            sender.shutdown()

    def _lead(self, gathering: SharedRound, deadline: float) -> None:
        """Send the gathered entries once the previous round is over."""
        left = max(0.0, deadline - self._io.monotonic())
        if not self._turn.acquire(timeout=min(left, threading.TIMEOUT_MAX)):
            raise not_sent()
        try:
            self._wait_for_others(gathering)
            self._send(gathering)
        finally:
            self._turn.release()

    def _wait_for_others(self, gathering: SharedRound) -> None:
        """Wait while other threads arrive, but no longer than the previous round took."""
        if len(gathering) >= self._expected:
            return
        enough = gathering.wait_for(self._expected)
        end = self._io.monotonic() + self._patience
        came = 0
        while came < len(gathering) and self._io.monotonic() < end:
            came = len(gathering)
            if enough.acquire(timeout=_GAP_SECONDS):
                return

    def _send(self, gathering: SharedRound) -> None:
        entries = gathering.close()
        joined, began = self._rounds.joined, self._io.monotonic()
        try:
            round_deadline = deadline_of(self._io, self._timeout)
            work = self._appender.append_round(entries, 0, len(entries), round_deadline)
            appended = drive(work)
            gathering.outcomes = appended.outcomes() if isinstance(appended, Failed) else appended
        except Exception as error:  # noqa: BLE001 - passed to all appends of the round
            gathering.outcomes = Failed(error, (None,) * len(entries)).outcomes()
        except BaseException:  # a signal handler ended only the leader's call
            gathering.outcomes = Failed(interrupted(), (None,) * len(entries)).outcomes()
            raise
        finally:
            self._patience = min(self._io.monotonic() - began, _WAIT_SECONDS_MAX)
            self._expected = len(entries) + self._rounds.joined - joined
