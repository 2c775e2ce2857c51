"""Appends of an exclusive writer in threads: an append that is alone is sent by its own thread."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from zlog._append.append import Appender
from zlog._append.exclusive import Exclusive
from zlog._append.outcomes import not_confirmed
from zlog._append.room import RECOUNT_SECONDS, Room
from zlog._append.rounds import Handed
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._io import drive
from zlog._native.mutex import Mutex, begin_call, reentrant_call
from zlog._native.new_entries import entries_owned

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry

_THREADS = 2


class BlockingAppends(Exclusive):
    """The appends of a blocking writer."""

    def prepare(self, appender: Appender, room: Room) -> None:
        """Get ready; no request is made."""
        self._appender = appender
        self._room = room
        self._changed = threading.Condition(Mutex())  # type: ignore[arg-type]
        self._threads: concurrent.futures.ThreadPoolExecutor | None = None
        self._runners: set[int] = set()  # threads

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Note that this thread sends a round, or is about to: its calls can't wait for that."""
        runner = threading.get_ident()
        outermost = runner not in self._runners
        self._runners.add(runner)
        try:
            yield
        finally:
            if outermost:
                self._runners.discard(runner)

    async def run(self) -> None:
        """Send a round; see :class:`Exclusive`."""
        with self.running():
            await super().run()

    def check_caller(self) -> None:
        """Raise ReentrantCall if what the caller would wait for is done by its own thread."""
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
                return  # without a second thread the first one does it
        drive(self.run())

    def freed(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def append(self, entry: NewEntry) -> int:
        """Append one entry, and return its position once it is confirmed."""
        deadline = deadline_of(self._io, self._timeout)
        position: int = self.append_all((entry,), deadline, own=False)
        return position

    def append_all(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, own: bool, many: bool = False
    ) -> Any:
        """Append entries, and return the position or positions once they are confirmed.

        Args:
            entries: at least one.
            deadline: of the call.
            own: whether the call has a time-out of its own. Else its thread may send the round.
            many: whether to return all positions.
        """
        self.check_caller()
        handed, future = self._prepare(entries, deadline, awaited=True, many=many)
        with self.running():
            if self.hand_in(handed):
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
        """Submit entries, once there is room; returns the future of the position or positions."""
        if not entries:
            none: concurrent.futures.Future[range] = concurrent.futures.Future()
            none.set_result(range(0))
            return none
        handed, future = self._prepare(entries, deadline, awaited=False, many=many)
        with self.running():
            if self.hand_in(handed):
                self.spawn()
        return future

    def _prepare(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, awaited: bool, many: bool
    ) -> tuple[Handed, concurrent.futures.Future[Any]]:
        """Check entries and wait until there is room for them."""
        self._appender.check(entries)
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()
        handed = Handed(entries_owned(entries), future, awaited=awaited, many=many)
        room = self._room
        while not room.has(handed.size):
            self.check_caller()
            drive(room.recount(handed.size, deadline))
            with self._changed:
                if not room.has(handed.size):
                    self._changed.wait(deadline.within(RECOUNT_SECONDS))
                    if deadline.expired and not room.has(handed.size):
                        raise room.not_sent(handed.size)
        return handed, future

    def flush(self, deadline: Deadline) -> None:
        """Wait until all that was submitted is confirmed, or has failed."""
        self.check_caller()
        with self._changed:
            while not self.idle:
                if not self._changed.wait(deadline.remaining()):
                    raise not_confirmed()
        self.raise_untold()

    def close(self, deadline: Deadline) -> None:
        """Wait for what is under way, and end the threads."""
        self.check_caller()
        try:
            self.flush(deadline)
        finally:
            with self._changed:
                threads, self._threads = self._threads, None
            if threads is not None:
                threads.shutdown()
