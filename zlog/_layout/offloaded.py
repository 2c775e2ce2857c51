"""Reads offloaded stripes, which are in files instead of objects (docs/design/offload.md).

A file has segments, which are read one by one. The content of a segment is put into objects in
memory, which have the striping of the stripe's objects. These run the same methods of the class, so
all kinds of readers find the same positions as before.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from functools import cache, partial
from typing import Final, Protocol

from zlog._base.deadline import Deadline
from zlog._base.io import TIMED_OUT, Io
from zlog._catalog.head import Head
from zlog._layout.segments import (
    WHOLE,
    Content,
    Form,
    Part,
    SegmentColumns,
    column_part,
    name_of,
    object_part,
)
from zlog._native.mutex import Mutex
from zlog.errors import CorruptEntry, StoreTimeout, StoreUnavailable
from zlog.store import CompletionQueue
from zlog.view import Stripe, StripeFile

WRITTEN: Final = 1
PLACED: Final = 2
REMOVED: Final = 3
"""The states of a stripe's file."""

GROUP: Final = "zlog.stripe_files"
"""The group of entry points that provide `StripeFiles`."""

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

_NO_ANSWER = "no answer in time"

_DAMAGED = (errno.EIO, errno.ENOENT)

_logger = logging.getLogger(__name__)


class StripeFiles(Protocol):
    """Reads and removes the files of offloaded stripes. Its methods block and are thread-safe."""

    def read(self, file: StripeFile, number: int, form: Form) -> Iterable[Content]:
        """Return the pieces of a segment, in order. Only entries that ``form`` omits are left out.

        Raises:
            FileNotFoundError: the file does not exist.
            CorruptEntry: the file is damaged, or is not the recorded one.
            OSError: the file cannot be read now.
        """

    def columns(self, file: StripeFile, number: int) -> SegmentColumns:
        """Return the columns of a segment of a log without MACs. Raises as :meth:`read` does."""

    def remove(self, file: StripeFile) -> None:
        """Remove a file. Does nothing if it does not exist. Raises OSError if it fails."""


class _Cache:
    """The segments that this process has read, and those that threads are reading."""

    def __init__(self) -> None:
        self.clear()
        os.register_at_fork(after_in_child=self.clear)

    def clear(self) -> None:
        """Drop everything. A forked child cannot use its parent's stores."""
        self._lock = Mutex()
        self._slots = threading.Semaphore(_READS_MAX)
        self._parts: OrderedDict[str, tuple[Part, int, float]] = OrderedDict()
        self._bytes = 0
        self._readers: defaultdict[str, list[tuple[CompletionQueue, int]]] = defaultdict(list)

    def get(self, key: str) -> Part | None:
        """Return a segment if it is in the cache."""
        with self._lock:
            part, _, until = self._parts.get(key, (None, 0, 0.0))
            if part is None or (until and time.monotonic() > until):
                return None
            self._parts.move_to_end(key)
            return part

    def put(self, key: str, part: Part, size: int) -> None:
        """Add a segment, and drop those that were not used for the longest time."""
        until = 0.0 if not part.problem else time.monotonic() + _RETRY_SECONDS
        with self._lock:
            _, before, _ = self._parts.pop(key, (None, 0, 0.0))
            self._parts[key] = (part, size, until)
            self._bytes += size - before
            while self._bytes > _CACHE_BYTES and len(self._parts) > 1:
                _, (_, dropped, _) = self._parts.popitem(last=False)
                self._bytes -= dropped

    def drop(self, key: str) -> None:
        """Drop a segment, so that its file is read again."""
        with self._lock:
            _, size, _ = self._parts.pop(key, (None, 0, 0.0))
            self._bytes -= size

    def load(
        self,
        key: str,
        form: Form,
        stripe: Stripe,
        file: StripeFile,
        number: int,
        queue: CompletionQueue,
        token: int,
    ) -> None:
        """Read a segment in a thread, and then put a reply into the queue.

        The code is 0 if the segment is in the cache, -EAGAIN if it may be read later, or -EINVAL.
        The reply is the reason.
        """
        run = partial(self._load, key, form, stripe, file, number)
        try:
            with self._lock:
                readers = self._readers[key]
                readers.append((queue, token))
                if len(readers) > 1:
                    return
            threading.Thread(target=run, name="zlog.offloaded", daemon=True).start()
        except RuntimeError as error:
            self._answer(key, -errno.EAGAIN, str(error))
        except BaseException:  # a signal handler raised it; other readers may be waiting
            self._answer(key, -errno.EAGAIN, "its read was interrupted")
            raise

    def _load(self, key: str, form: Form, stripe: Stripe, file: StripeFile, number: int) -> None:
        code, reason = 0, ""
        segment = file.segments[number]
        start, end = file.bounds(number)
        size = segment.bytes + _POSITION_BYTES * (end - start)
        try:
            try:
                with self._slots:
                    part = _read(stripe, file, number, form)
            except (FileNotFoundError, CorruptEntry) as error:
                missing = isinstance(error, FileNotFoundError)
                words, refusal = _words(error), -_DAMAGED[missing]
                if not missing:  # readers report a missing file unless its stripe was trimmed
                    what = "offloaded stripe of positions %d to %d: %s"
                    _logger.error(what, start, end - 1, words)
                problem = words.replace(file.url, "the file")
                part, size = column_part(stripe, file, number, None, refusal, problem), 0
            self.put(key, part, size)
        except Exception as error:  # noqa: BLE001 - the reader of the segment raises it
            final = not isinstance(error, OSError) or error.errno == errno.EINVAL
            code, reason = -(errno.EINVAL if final else errno.EAGAIN), _words(error)
        self._answer(key, code, reason)

    def _answer(self, key: str, code: int, reason: str) -> None:
        with self._lock:
            readers = self._readers.pop(key, [])
        for queue, token in readers:
            queue.put(token, code, reason.encode())


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
            _cache.drop(_key(file, file.segment_of(position), WHOLE))

    def part(self, stripe: Stripe, position: int, form: Form) -> Stripe | None:
        """Return the segment that has a position, or the stripe itself if it is in objects.

        Returns None if the records or the segment must be read first.
        """
        if self.known is None:
            return None
        file = self.known.get(stripe.id)
        if file is None:
            return stripe
        return _cache.get(_key(file, file.segment_of(position), form))

    async def load(self, stripe: Stripe, position: int, deadline: Deadline, form: Form) -> Stripe:
        """Return what :meth:`part` returns, after reading the segment. The records are known.

        Raises:
            StoreUnavailable: the file could not be read in time.
        """
        reason = _NO_ANSWER
        while (part := self.part(stripe, position, form)) is None:
            file = self.file_of(stripe)
            assert file is not None
            number = file.segment_of(position)
            start = partial(_cache.load, _key(file, number, form), form, stripe, file, number)
            reply = await self._io.run(start, deadline)
            reason = bytes(reply.payload).decode() or reason
            if reply.code == -errno.EINVAL:
                raise unreadable(file.url, reason, final=True)
            if reply is TIMED_OUT or (reply.code and deadline.expired):
                error = unreadable(file.url, reason)
                raise StoreTimeout(str(error), hint=error.hint)
            if reply.code:
                await self._io.sleep(_PAUSE_SECONDS)
        return part


async def remove_file(io: Io, file: StripeFile, deadline: Deadline) -> None:
    """Remove the file of a stripe. Raises StoreUnavailable if this fails."""

    def start(queue: CompletionQueue, token: int) -> None:
        def run() -> None:
            code, reason = 0, ""
            try:
                provider().remove(file)
            except Exception as error:  # noqa: BLE001 - the caller raises it
                code, reason = -errno.EIO, _words(error)
            queue.put(token, code, reason.encode())

        threading.Thread(target=run, name="zlog.offloaded", daemon=True).start()

    reply = await io.run(start, deadline)
    if reply.code:
        raise unreadable(file.url, bytes(reply.payload).decode() or _NO_ANSWER)


def unreadable(url: str, reason: str, *, final: bool = False) -> StoreUnavailable:
    """Return the error for a file that cannot be read, or removed, now or (``final``) at all."""
    others = "Entries that are not offloaded can be read and appended."
    return StoreUnavailable(
        f"can't use the offloaded stripe in {url}: {reason}",
        hint=others if final else f"Check the object store and its credentials. {others}",
        retryable=not final,
    )


def check_provider() -> None:
    """Raise StoreUnavailable if stripe files cannot be used on this machine."""
    try:
        provider()
    except OSError as error:
        raise unreadable("a file", str(error.strerror), final=True) from None


@cache  # an error is not cached
def provider() -> StripeFiles:
    """Return the installed reader of stripe files.

    Raises:
        OSError: (EINVAL) it is not installed, or its requirements are not.
    """
    from importlib.metadata import entry_points  # slow to import

    from zlog.distribution import how_to_install

    for point in entry_points(group=GROUP):
        try:
            found: StripeFiles = point.load()
        except ImportError:
            break
        return found
    raise OSError(errno.EINVAL, f"this needs the extra `offload` ({how_to_install('offload')})")


def _words(error: Exception) -> str:
    words = (error.strerror if isinstance(error, OSError) else None) or f"{error or type(error)}"
    return " ".join(words.split())  # some messages of PyArrow have several lines


def _key(file: StripeFile, number: int, form: Form) -> str:
    return name_of(file, number) if form == WHOLE else f"{name_of(file, number)} {form}"


def _read(stripe: Stripe, file: StripeFile, number: int, form: Form) -> Part:
    if form.columns:
        return column_part(stripe, file, number, provider().columns(file, number))
    return object_part(stripe, file, number, form, provider().read(file, number, form))
