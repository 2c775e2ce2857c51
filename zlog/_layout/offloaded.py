"""Reads offloaded stripes, which are in files instead of objects (docs/design/offload.md).

A file has segments, which are read one by one. The content of a segment is put into objects in
memory, which have the striping of the stripe's objects. These run the same methods of the class, so
all kinds of readers find the same positions as before.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache, partial
from typing import Protocol, TypeVar

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._base.wanted import Wanted
from zlog._catalog.head import Head
from zlog._layout.segments import Content, Form, Part, SegmentColumns, object_part, part_of
from zlog._native.mutex import Mutex
from zlog.errors import CorruptEntry, StoreTimeout, StoreUnavailable
from zlog.store import CompletionQueue
from zlog.view import PLACED, Stripe, StripeFile

T = TypeVar("T")

_CACHE_BYTES = 256 << 20
"""How much memory the segments may take that all logs of this process have read."""

_POSITION_BYTES = 128
"""How much memory a position takes in addition to its data, about."""

_READS_MAX = 4
"""How many segments are read at once. Each read takes a few times the memory of its segment."""

_RETRY_SECONDS = 5.0
"""After this time, a file that was missing or damaged is read again."""

_PAUSE_SECONDS = 0.5
"""How long to wait before a file is read again that could not be read."""

_LOCKS = 64
"""The number of locks for readers. All readers of one segment use the same lock."""

_NO_ANSWER = "no answer in time"

_logger = logging.getLogger(__name__)


class StripeFiles(Protocol):
    """Reads and removes the files of offloaded stripes. Its methods block and are thread-safe."""

    def read(self, file: StripeFile, number: int, wanted: Wanted | None) -> Iterable[Content]:
        """Return the pieces of a segment, in order. Entries without wanted tags are left out.

        Raises:
            FileNotFoundError: the file does not exist.
            CorruptEntry: the file is damaged, or is not the recorded one.
            OSError: the file cannot be read now.
        """

    def columns(self, file: StripeFile, number: int) -> SegmentColumns:
        """Return the columns of a segment of a log without MACs. Raises as :meth:`read` does."""

    def remove(self, file: StripeFile, *, of_log: bool = False) -> None:
        """Remove a file. Does nothing if it does not exist. Raises OSError if it fails.

        ``of_log`` says that the log is removed, and so are the last remains of its folder.
        """


_Key = tuple[str, int, Form]
"""A segment: the URL of its file, its number, and how it was read."""


class _Cache:
    """The segments that this process has read."""

    def __init__(self) -> None:
        self.clear()
        os.register_at_fork(after_in_child=self.clear)

    def clear(self) -> None:
        """Drop everything. A forked child cannot use its parent's stores."""
        self._lock = Mutex()
        self._slots = threading.Semaphore(_READS_MAX)
        self._reading = [threading.Lock() for _ in range(_LOCKS)]
        self._drops = [0] * _LOCKS  # how often segments with each lock were dropped
        self._parts: OrderedDict[_Key, tuple[Part, int, float]] = OrderedDict()
        self._bytes = 0

    def get(self, file: StripeFile, number: int, form: Form) -> Part | None:
        """Return a segment if it is in the cache, in the given form or whole."""
        with self._lock:
            for key in ((file.url, number, form), (file.url, number, "objects")):
                part, _, until = self._parts.get(key, (None, 0, math.inf))
                if part is not None and time.monotonic() < until:
                    self._parts.move_to_end(key)
                    return part
        return None

    def put(self, key: _Key, part: Part, size: int, drops: int) -> None:
        """Add a segment, and drop those that were not used for the longest time.

        Does nothing if the segment was dropped while it was read, because the file may have changed
        since.
        """
        until = time.monotonic() + _RETRY_SECONDS if part.problem else math.inf
        with self._lock:
            if self._drops[_lock_of(key)] != drops:
                return
            self._remove(key)
            self._parts[key] = (part, size, until)
            self._bytes += size
            while self._bytes > _CACHE_BYTES and len(self._parts) > 1:
                _, (_, dropped, _) = self._parts.popitem(last=False)
                self._bytes -= dropped

    def drop(self, key: _Key) -> None:
        """Drop a segment, so that its file is read again."""
        with self._lock:
            self._drops[_lock_of(key)] += 1
            self._remove(key)

    def _remove(self, key: _Key) -> None:
        _, size, _ = self._parts.pop(key, (None, 0, 0.0))
        self._bytes -= size

    def load(
        self, stripe: Stripe, file: StripeFile, number: int, form: Form, seconds: float
    ) -> Part:
        """Return a segment, after reading it if it is not in the cache. This blocks."""
        which = _lock_of((file.url, number, form))
        lock = self._reading[which]
        if not lock.acquire(timeout=seconds):
            raise OSError(errno.EAGAIN, _NO_ANSWER)
        try:
            if (part := self.get(file, number, form)) is None:  # another thread may have read it
                drops = self._drops[which]
                with self._slots:
                    part = _read(stripe, file, number, form)
                form = "objects" if part.problem else form
                start, end = file.bounds(number)
                size = file.segments[number].bytes + _POSITION_BYTES * (end - start)
                self.put((file.url, number, form), part, 0 if part.problem else size, drops)
            return part
        finally:
            lock.release()


def _lock_of(key: _Key) -> int:
    return hash(key[:2]) % _LOCKS


_cache = _Cache()


class OffloadedStripes:
    """The offloaded stripes of a log.

    Attributes:
        known: the files that readers may use, by stripe id. None if they were not listed yet.
    """

    def __init__(self, io: Io, head: Head, log_id: int) -> None:
        self._io = io
        self._head = head
        self._log_id = log_id
        self._lock = Mutex()
        self._count = 0  # of all files that were ever known
        self.known: dict[int, StripeFile] | None = None

    async def refresh(self, trim_point: int, deadline: Deadline) -> int:
        """Read the new records from the head. Returns how many were ever known."""
        start = trim_point
        for file in self.files():
            start = file.end if file.start <= start < file.end else start
        listed = await self._head.offload_list(self._log_id, start, deadline)
        new = {file.id: file for file in listed if file.state >= PLACED}
        with self._lock:  # readers rely on records that were once known, until they are trimmed
            old = self.known or {}
            self._count += len(new.keys() - old.keys())
            self.known = {id_: file for id_, file in (old | new).items() if file.end > trim_point}
            return self._count

    def file_of(self, stripe: Stripe) -> StripeFile | None:
        """Return the file of a stripe. None if the stripe is in objects, as far as is known."""
        return (self.known or {}).get(stripe.id)

    def files(self) -> list[StripeFile]:
        """Return the known files, in order."""
        return sorted((self.known or {}).values(), key=lambda file: file.end)

    def drop(self, stripe: Stripe, position: int) -> None:
        """Make the next call of :meth:`load` read the file again."""
        if (file := self.file_of(stripe)) is not None:
            _cache.drop((file.url, file.segment_of(position), "objects"))

    def part(self, stripe: Stripe, position: int, form: Form) -> Stripe | None:
        """Return the segment that has a position, or the stripe itself if it is in objects.

        Returns None if the records or the segment must be read first.
        """
        if self.known is None:
            return None
        file = self.known.get(stripe.id)
        return stripe if file is None else _cache.get(file, file.segment_of(position), form)

    async def load(self, stripe: Stripe, position: int, deadline: Deadline, form: Form) -> Stripe:
        """Return what :meth:`part` returns, after reading the segment. The records are known.

        Raises:
            StoreUnavailable: the file could not be read in time.
        """
        reason = _NO_ANSWER
        while (part := self.part(stripe, position, form)) is None:
            file = self.file_of(stripe)
            assert file is not None
            segment = stripe, file, file.segment_of(position), form
            seconds = deadline.within(threading.TIMEOUT_MAX)
            reading = await _in_thread(self._io, partial(_cache.load, *segment, seconds), deadline)
            if reading.done() and (error := reading.exception()) is not None:
                reason = _words(error)
                if not isinstance(error, OSError):
                    raise unreadable(file.url, reason, final=True) from error
                await self._io.sleep(deadline.within(_PAUSE_SECONDS))
            if deadline.expired:
                late = unreadable(file.url, reason)
                raise StoreTimeout(str(late), hint=late.hint)
        return part


async def _in_thread(io: Io, call: Callable[[], T], deadline: Deadline) -> Future[T]:
    """Run a call that blocks in a thread. The result is not done if the time is up."""
    result: Future[T] = Future()

    def run(queue: CompletionQueue, token: int) -> None:
        try:
            result.set_result(call())
        except Exception as error:  # noqa: BLE001 - the caller raises it
            result.set_exception(error)
        queue.put(token, 0, b"")

    def start(queue: CompletionQueue, token: int) -> None:
        thread = threading.Thread(target=run, args=(queue, token), name="zlog.offloaded")
        thread.daemon = True
        try:
            thread.start()
        except RuntimeError as error:  # there are too many
            result.set_exception(OSError(errno.EAGAIN, str(error)))
            queue.put(token, 0, b"")

    await io.run(start, deadline)
    return result


async def remove_file(
    io: Io, file: StripeFile, deadline: Deadline, *, of_log: bool = False
) -> None:
    """Remove the file of a stripe. Raises StoreUnavailable if this fails."""
    removal = await _in_thread(io, lambda: provider().remove(file, of_log=of_log), deadline)
    error = removal.exception() if removal.done() else TimeoutError(_NO_ANSWER)
    if error is not None:
        raise unreadable(file.url, _words(error))


def unreadable(url: str, reason: str, *, final: bool = False) -> StoreUnavailable:
    """Return the error for a file that cannot be read, or removed, now or (``final``) at all."""
    others = "Entries that are not offloaded can be read and appended."
    return StoreUnavailable(
        f"can't use the offloaded stripe in {url}: {reason}",
        hint=others
        if final
        else f"Check the disk, or the object store and its credentials. {others}",
        retryable=not final,
    )


@cache  # an error is not cached
def provider() -> StripeFiles:
    """Return the installed reader of stripe files. Raises StoreUnavailable if there is none."""
    from importlib.metadata import entry_points  # slow to import

    from zlog.distribution import how_to_install

    for point in entry_points(group="zlog.stripe_files"):
        with suppress(ImportError):  # of its requirements
            found: StripeFiles = point.load()
            return found
    why = f"reading offloaded stripes needs the extra `offload` ({how_to_install('offload')})"
    raise StoreUnavailable(why, retryable=False)


def _words(error: BaseException) -> str:
    words = (error.strerror if isinstance(error, OSError) else None) or f"{error or type(error)}"
    return " ".join(words.split())  # some messages of PyArrow have several lines


def _read(stripe: Stripe, file: StripeFile, number: int, form: Form) -> Part:
    try:
        if form == "columns":
            columns = provider().columns(file, number)
            return part_of(stripe, file, number, columns=columns)
        wanted = form if isinstance(form, Wanted) else None
        content = provider().read(file, number, wanted)
        return object_part(stripe, file, number, content, whole=wanted is None)
    except FileNotFoundError as error:  # readers report it unless the stripe was trimmed
        code, words = errno.ENOENT, _words(error)
    except CorruptEntry as error:
        code, words = errno.EIO, _words(error)
        start, end = file.bounds(number)
        _logger.error("offloaded stripe of positions %d to %d: %s", start, end - 1, words)
    problem = words.replace(file.url, "the file")
    return part_of(stripe, file, number, error=-code, problem=problem)
