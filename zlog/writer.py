"""The exclusive writer of a log: what :meth:`zlog.Log.writer` returns."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from zlog._append.exclusive import Exclusive
from zlog._append.outcomes import not_confirmed
from zlog._append.place import take
from zlog._append.room import RECOUNT_SECONDS, Limits, Room
from zlog._append.rounds import Handed
from zlog._base.deadline import Deadline, Timeout
from zlog._client import LogClient, Tags, new_entries, new_entry
from zlog._io import drive
from zlog._log.writer import WriterHandle
from zlog._native import core
from zlog._native.core import Items
from zlog.entry import Entry, Gap
from zlog.errors import ZlogError

if TYPE_CHECKING:
    from typing_extensions import Self

    from zlog._native.core import NewEntry

_THREADS = 2


class _Appends(Exclusive):
    """Those of a blocking writer: an append that is alone is sent by its own thread."""

    def prepare(self) -> None:
        """Get ready; no request is made."""
        self.changed = threading.Condition(core.Mutex())  # type: ignore[arg-type]
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
        core.begin_call()
        if threading.get_ident() in self._runners:
            raise core.reentrant_call()

    def spawn(self) -> None:
        with self.changed:
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
        with self.changed:
            self.changed.notify_all()

    def close(self) -> None:
        """End the threads."""
        with self.changed:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()


class Writer(WriterHandle):
    """The only client that appends to a log. Made by :meth:`zlog.Log.writer`; thread-safe.

    Entries are in the log in the order in which they were handed in, always, and an entry is
    confirmed once all before it are durable. Readers see it from then on at the latest.

    The log stays this writer's, also when the program ends or dies, until another writer takes it,
    or :meth:`release` gives it back. From then on every call that writes raises Fenced.

    After any other error of an append, what was handed in and not confirmed has failed: it may be
    in the log or not, from the front on, and in its order. The writer can go on. Where the futures
    of :meth:`submit` have failed, the next call raises that first, whatever it is: so no entry
    comes behind one that is missing without its sender's knowing.
    """

    _appends: _Appends

    def append(self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...) -> int:
        """Append one entry and return its position, once it is confirmed.

        Where nothing else is under way, this is one operation of the store.

        Args:
            data: the entry.
            tags: as :meth:`zlog.Log.append` takes them.
            timeout: seconds to wait; the entry, once it was handed in, goes on its way after that.

        Raises:
            Fenced: the log is not this writer's any more.
            EntryTooLarge, InvalidTag: nothing was sent.
            LimitReached: the log is at the writer's capacity, which is not to wait.
            StoreTimeout: the entry may be in the log or not.
        """
        position: int = self._append((new_entry(data, tags),), timeout)
        return position

    def append_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> range:
        """Append entries and return their positions, which follow each other, once confirmed.

        Args:
            entries, tags, tags_each: as :meth:`zlog.Log.append_many` takes them.
            timeout: see :meth:`append`.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached, StoreTimeout: see :meth:`append`. Of
                entries that may be in the log, those come first that were first in the list.
        """
        items = new_entries(entries, tags, tags_each)
        if not items:
            return range(0)
        positions: range = self._append(items, timeout, many=True)
        return positions

    def submit(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> concurrent.futures.Future[int]:
        """Hand an entry in, and return the future of its position.

        Futures are resolved in the order of the calls. What waits to be sent leaves together, the
        more the slower the store is. Where too much is under way the call waits for room.

        Args:
            data: the entry.
            tags: as :meth:`zlog.Log.append` takes them.
            timeout: seconds to wait for room.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached: see :meth:`append`.
            StoreTimeout: there was no room in time. The entry was not sent.
        """
        return self._submit((new_entry(data, tags),), timeout)

    def submit_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> concurrent.futures.Future[range]:
        """Hand entries in, and return the future of their positions, which follow each other.

        As :meth:`submit`, and quicker for each of them. They are confirmed together.

        Args:
            entries, tags, tags_each: as :meth:`zlog.Log.append_many` takes them.
            timeout: seconds to wait for room.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached, StoreTimeout: see :meth:`submit`. None
                of them was sent.
        """
        items = new_entries(entries, tags, tags_each)
        if items:
            return self._submit(items, timeout, many=True)
        none: concurrent.futures.Future[range] = concurrent.futures.Future()
        none.set_result(range(0))
        return none

    def flush(self, *, timeout: Timeout = ...) -> None:
        """Wait until all that was handed in is confirmed, or has failed.

        Raises:
            StoreTimeout: it took too long.
            ZlogError: entries have failed, and no call has raised that yet.
        """
        deadline = self._deadline(timeout)
        appends = self._appends
        appends.check_caller()
        with appends.changed:
            while not appends.idle:
                if not appends.changed.wait(deadline.remaining()):
                    raise not_confirmed()
        appends.raise_untold()

    def recover(self) -> Iterator[Entry | Gap]:
        """Iterate over what the log held when this writer took it, from the trim point on.

        In large reads, of which some are under way while the caller works. Gaps are only found
        where the log was not exclusive.
        """
        reader = drive(self._recovery())
        return Items(lambda: drive(reader.next()))

    def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """Trim every position below ``position``; see :meth:`zlog.Log.trim_to`.

        Raises:
            BeyondTail: the log is not confirmed so far.
            HeldByCursor: a reader with a cursor has not come so far.
        """
        drive(self._trim(position, timeout))

    def reset(self, *, timeout: Timeout = ...) -> int:
        """Trim all that is confirmed, and return where the log begins then."""
        position = self.confirmed
        self.trim(position, timeout=timeout)
        return position

    def release(self, *, timeout: Timeout = ...) -> None:
        """Wait for what is under way, and give the log back: any client may append again.

        A log that is not this writer's any more is left alone. Safe to repeat.
        """
        self.flush(timeout=timeout)
        drive(self._give_back(timeout))

    def close(self) -> None:
        """Wait for what is under way. The log stays this writer's; see :meth:`release`."""
        self._appends.check_caller()
        try:
            self.flush()
        finally:
            self._appends.close()

    def _submit(
        self, entries: Sequence[NewEntry], timeout: Timeout, *, many: bool = False
    ) -> concurrent.futures.Future[Any]:
        handed, future = self._prepare(entries, self._deadline(timeout), awaited=False, many=many)
        with self._appends.running():
            if self._appends.hand_in(handed):
                self._appends.spawn()
        return future

    def _append(self, entries: Sequence[NewEntry], timeout: Timeout, *, many: bool = False) -> Any:
        appends, deadline = self._appends, self._deadline(timeout)
        appends.check_caller()
        handed, future = self._prepare(entries, deadline, awaited=True, many=many)
        with appends.running():
            if appends.hand_in(handed):
                if timeout is ...:
                    drive(appends.run())
                else:
                    appends.spawn()
        try:
            return future.result(deadline.remaining())
        except concurrent.futures.TimeoutError:
            raise not_confirmed() from None

    def _prepare(
        self, entries: Sequence[NewEntry], deadline: Deadline, *, awaited: bool, many: bool
    ) -> tuple[Handed, concurrent.futures.Future[Any]]:
        """Check entries and wait until there is room for them."""
        self._client.appender.check(entries)
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()
        handed = Handed(core.entries_owned(entries), future, awaited=awaited, many=many)
        room, changed = self._room, self._appends.changed
        while not room.has(handed.size):
            self._appends.check_caller()
            drive(room.recount(handed.size, deadline))
            with changed:
                if not room.has(handed.size):
                    changed.wait(deadline.within(RECOUNT_SECONDS))
                    if deadline.expired and not room.has(handed.size):
                        raise room.not_sent(handed.size)
        return handed, future

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What the block has raised tells more than what became of the rest.
        with contextlib.suppress(*(() if error is None else (ZlogError,))):
            self.close()


def open_writer(
    client: LogClient,
    name: str | None,
    limits: Limits,
    timeout: Timeout,
) -> Writer:
    """Take the log; see :meth:`zlog.Log.writer`."""
    deadline = client.deadline(timeout)
    writer, view, end = drive(take(client.layout, name, deadline))
    appends = _Appends(client.layout, writer, view, end, client.settings.timeout)
    appends.prepare()
    room = Room(appends, limits)
    drive(room.count(deadline))
    return Writer(client, appends, room)
