"""The spool: appends to the target, or else to the local logs, and forwards from there.

The process that holds a lock, the *forwarder*, sends the records to the target with
:meth:`zlog.Log.append_once`. It never uses the sequence number of another append, even if it cannot
ask the target:

- The sequence number of a batch of records is the position of the first one, shifted. The batch is
  trimmed after the target has it. If the forwarder dies before, the next attempt therefore has the
  same sequence number, and the same entries or, after them, more.
- While no record waits, entries are appended directly. The sequence number is the position of an
  empty record, a *marker*, and a counter. If the append fails, its record contains this number.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from zlog.errors import EntryTooLarge, StoreTimeout, ZlogError
from zlog.limits import ENTRY_BYTES_MAX, ENTRY_BYTES_MAX_DEFAULT, TIMEOUT_SECONDS
from zlog.names import check_log_name, check_tags
from zlog.spool._local import (
    BATCH_BYTES,
    BATCH_ENTRIES,
    COUNTER_BITS,
    Batch,
    LocalLogs,
    SpoolEntry,
    SpoolStat,
    open_lock,
    passes,
    size_of,
)
from zlog.spool._queue import Queue
from zlog.store import Store, connect
from zlog.sync.log import Log

if TYPE_CHECKING:
    from typing_extensions import Self

SPOOL_BYTES_DEFAULT = 1 << 30
SPOOL_BYTES_MIN = 4 << 20

_COMPLETE_EVERY = 64
_POLL_SECONDS = 0.25
_RETRY_SECONDS_MAX = 5.0
_CLOSE_SECONDS = 0.5

open_spools: weakref.WeakSet[Spool] = weakref.WeakSet()


class Spool:
    """Appends entries to a log, the *target*, or to a local store while the target is unavailable.

    Entries in the local store are later delivered to the target, each once and in order, by this
    process or another. Several processes may use a directory; one of them delivers, and the others
    only store. All methods are thread-safe.

    Attributes:
        delivered: the number of entries that this object has delivered from the local store.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        store: str | None = None,
        log: str | None = None,
        *,
        always: bool = False,
        slow: float = 2.0,
        bytes_max: int = SPOOL_BYTES_DEFAULT,
        when_full: Literal["raise", "drop"] = "raise",
        entry_bytes_max: int = ENTRY_BYTES_MAX_DEFAULT,
        timeout: float | None = TIMEOUT_SECONDS,
        mac_key: os.PathLike[str] | bytes | Callable[[], bytes] | None = None,
        open_store: Callable[[str], Store] = lambda url: connect(url, create=False),
    ) -> None:
        """Open a spool, without waiting for the target.

        Args:
            directory: a directory on a local disk, which is created if a target is given.
            store, log: the URL of the target's store, and the target's name. None means the target
                for which the directory was created.
            always: whether to store every entry locally first.
            slow: the seconds after which a call of a direct append fails, and the entries are
                stored locally.
            bytes_max: the maximum size of the waiting entries, at least 4 MiB and twice
                ``entry_bytes_max``. Each process may exceed it by one batch.
            when_full: whether to ``"raise"`` LimitReached above this size, or to ``"drop"`` the
                oldest entries, up to 4,096 or 1 MiB at a time.
            entry_bytes_max: the maximum size of an entry in bytes, up to 15 MiB.
            timeout: the seconds after which an attempt to deliver a batch fails.
            mac_key: the target's key; see :meth:`zlog.Log.open`. Local entries have no MACs.
            open_store: opens the target's store, given its URL.

        Raises:
            ValueError: a setting is invalid.
            ZlogError: the directory is used for another target.
            StoreUnavailable: the local store does not exist or cannot be used.
        """
        target = None
        if store is not None and log is not None:
            url = store if urlsplit(store).scheme else Path(store).absolute().as_uri()
            target = {"store": url, "log": check_log_name(log)}
        elif store is not None or log is not None:
            raise ValueError("give both a store and a log, or neither")
        if not 0 < entry_bytes_max <= ENTRY_BYTES_MAX - (1 << 20):
            raise ValueError(f"entry_bytes_max must be 1 to 15 MiB, not {entry_bytes_max:,}")
        if bytes_max < (least := max(SPOOL_BYTES_MIN, 2 * entry_bytes_max)):
            raise ValueError(f"a spool must have at least {least:,} bytes, not {bytes_max:,}")
        if when_full not in ("raise", "drop"):
            raise ValueError(f"when_full must be 'raise' or 'drop', not {when_full!r}")
        self._always, self._slow, self._timeout = always, slow, timeout
        self._bytes_max, self._drop, self._entry_bytes_max = bytes_max, when_full, entry_bytes_max
        self._mac_key, self._open_store = mac_key, open_store
        self._local = LocalLogs(Path(directory).absolute(), target)
        self._lock: IO[str] | None = None  # of the forwarder
        try:
            self._url, self._log, self._producer = self._take_target(target)
            self._try_lock()
        except BaseException:
            self._close_local()
            raise
        self._target: Log | None = None
        self._mode = threading.Lock()  # guards _direct, and excludes the forwarder while it is set
        self._direct = False
        self._marker: int | None = None
        self._counter = 0
        self._sent = -1  # the highest sequence number to complete
        self._error: ZlogError | None = None
        self.delivered = 0
        self._queue = Queue()
        self._ended = False  # the pump has ended, and the forwarder must end
        self._tried = threading.Event()  # the forwarder has opened the target, or has failed to
        self._wake = threading.Event()
        self._pump = threading.Thread(target=self._run_pump, name="zlog-spool", daemon=True)
        self._forwarder = threading.Thread(target=self._forward, name="zlog-forward", daemon=True)
        self._pump.start()
        self._forwarder.start()
        open_spools.add(self)

    def _take_target(self, target: dict[str, str] | None) -> tuple[str, str, str]:
        """Return the store, the log and the producer. Raise ZlogError if the target differs."""
        local = self._local
        known = local.records.view.options
        if "id" not in known:
            raise ZlogError(f"{local.directory} is not a spool", hint="Use another directory.")
        if target is not None and not target.items() <= known.items():
            raise ZlogError(
                f"the spool {local.directory} belongs to log {known['log']!r} in {known['store']}",
                hint="Use another directory. `zlog forward` delivers the entries that wait in this"
                " one.",
            )
        return known["store"], known["log"], f"spool-{known['id']}"

    def append(self, data: bytes, *, tags: Collection[str] = ()) -> None:
        """Append an entry, and return when it is durable in the target or in the local store.

        After one of the last three errors, the entry may be in the target, at most once.

        Raises:
            EntryTooLarge, InvalidTag: nothing was stored.
            LimitReached: the spool is full.
            StoreUnavailable: the local store failed, for example because its disk is full.
            ZlogError: the target refuses entries, for example because it was removed.
        """
        self.submit(data, tags=tags).result()

    def submit(self, data: bytes, *, tags: Collection[str] = ()) -> Future[None]:
        """Append an entry without waiting. The future ends when :meth:`append` would return.

        With asyncio, await ``asyncio.wrap_future(spool.submit(data))``. If 16 MiB of entries are in
        flight, the call waits.
        """
        return self._queue.put([self._checked(data, tags)])

    def append_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Collection[str] = (),
        tags_each: Iterable[Collection[str]] | None = None,
    ) -> None:
        """Append entries in order, as :meth:`append` does. After an error, a prefix is durable."""
        data = list(entries)
        each = [tags] * len(data) if tags_each is None else tags_each
        checked = [self._checked(*pair) for pair in zip(data, each, strict=True)]
        start = size = 0
        for end, entry in enumerate(checked):
            size += size_of(entry)
            if start < end and (end - start == BATCH_ENTRIES or size > BATCH_BYTES):
                self._queue.put(checked[start:end]).result()
                start, size = end, size_of(entry)
        if checked:
            self._queue.put(checked[start:]).result()

    def _checked(self, data: bytes, tags: Collection[str]) -> SpoolEntry:
        own = bytes(memoryview(data))
        if len(own) > self._entry_bytes_max:
            most = self._entry_bytes_max
            raise EntryTooLarge(f"an entry has {len(own)} bytes, but the spool accepts {most}")
        return own, check_tags(tags)

    def _run_pump(self) -> None:
        """Make the entries of all callers durable, until the spool is closed."""
        while units := self._queue.take():
            error: BaseException | None = None
            try:
                self._keep([entry for unit in units for entry in unit.entries])
            except BaseException as caught:  # noqa: BLE001  # the callers get it
                error = caught
            self._queue.done(units, error)

    def _keep(self, entries: list[SpoolEntry]) -> None:
        """Make entries durable in the target, or else in the local store."""
        if not self._always and self._lock is not None:
            self._tried.wait(self._slow)
            self._tried.set()  # wait only once
        with self._mode:
            sequence = self._next_sequence() if self._direct else None
            if sequence is not None:
                try:
                    if self._counter % _COMPLETE_EVERY == 0:
                        self._complete()
                    return self._send(Batch(entries, sequence, 0), self._slow)
                except ZlogError as error:
                    self._direct = False
                    self._failed(error)
                    if not passes(error):
                        raise
            elif self._error is not None and not passes(self._error):
                raise copy.copy(self._error)
            self._local.make_space(
                self._bytes_max - sum(map(size_of, entries)), drop=self._drop == "drop"
            )
            self._local.add(entries, sequence)
        if self._error is None:
            self._wake.set()
        return None

    def _next_sequence(self) -> int | None:
        """Return the sequence number of a direct append, or None if records wait.

        All records below the marker have been delivered, so all others get higher numbers.
        """
        self._counter += 1
        if self._marker is None or self._counter >> COUNTER_BITS:
            marker = self._local.records.append(b"")
            if self._local.batch() is not None:  # of another process
                self._direct = False
                return None
            self._marker, self._counter = marker, 1
        return self._marker << COUNTER_BITS | self._counter

    def _send(self, batch: Batch, timeout: float | None) -> None:
        """Append the entries of a batch that are not in the target yet."""
        assert self._target is not None
        self._target.append_once(
            [data for data, _ in batch.entries],
            tags_each=[tags for _, tags in batch.entries],
            producer=self._producer,
            sequence=batch.sequence,
            in_order=True,
            timeout=timeout,
        )
        self._sent = max(self._sent, batch.sequence)

    def _complete(self) -> None:
        """Let the target forget the batches that were sent. None of them may be sent again."""
        if self._target is not None and self._sent >= 0:
            before = self._sent + 1
            self._target.complete_sequences(self._producer, before=before, timeout=self._slow)
            self._sent = -1

    def _failed(self, error: ZlogError) -> None:
        self._error = error
        self._local.report(error)

    def _forward(self) -> None:
        """Deliver records if this process is the forwarder, until the spool is closed."""
        failures = 0
        while not self._ended:
            self._wake.clear()
            pause = _POLL_SECONDS
            try:
                if self._try_lock() and not (self._direct and self._local.batch() is None):
                    self._deliver()
                failures = 0
            except Exception as error:  # noqa: BLE001  # no error may end the thread
                if not isinstance(error, ZlogError):
                    hint = None if isinstance(error, (OSError, ValueError)) else "Report this bug."
                    error = ZlogError(f"the spool failed: {error}", hint=hint)
                if not self._ended:
                    self._failed(error)
                pause = min(0.1 * 2**failures, _RETRY_SECONDS_MAX)
                failures = min(failures + 1, 10)
            self._tried.set()
            self._wake.wait(pause)
        with contextlib.suppress(ZlogError):
            if self._direct:
                self._complete()
        self._close_target()

    def _deliver(self) -> None:
        """Deliver all records, and then let the pump append directly."""
        with self._mode:
            self._direct = False
        if self._error is not None and not isinstance(self._error, StoreTimeout):
            self._close_target()  # a store that was replaced must be opened again
        if self._target is None:
            self._open_target()
        sent, few = 0, False
        while not self._ended:
            # The pump waits for the last batches. Otherwise new records could always follow them.
            with self._mode if few else contextlib.nullcontext():
                batch = self._local.batch()
                if batch is None and few:
                    self._complete()
                    self._direct = not self._always
                if batch is not None:
                    self._send(batch, self._slow if few else self._timeout)
                    self._marker = None  # the batch has a higher number
                    self.delivered += len(batch.entries)
                    self._local.records.trim_to(batch.end)
                    sent += 1
            self._error = None
            self._local.report(None)
            if batch is None and few:
                return
            few = batch is None or (not self._always and len(batch.entries) < BATCH_ENTRIES // 4)
            if batch and sent % _COMPLETE_EVERY == 0 and not self._local.has_direct(batch.end):
                self._complete()

    def _open_target(self) -> None:
        store = self._open_store(self._url)
        try:
            self._target = Log.open(
                store,
                self._log,
                timeout=self._timeout,
                entry_bytes_max=ENTRY_BYTES_MAX,
                mac_key=self._mac_key,
            )
        except BaseException:
            store.close()
            raise

    def _close_target(self) -> None:
        target, self._target = self._target, None
        if target is not None:
            with contextlib.suppress(ZlogError):
                target.close()
            target.store.close()

    def _try_lock(self) -> bool:
        """Become the forwarder unless another process is. The lock ends with the process."""
        if self._lock is None:
            file = open_lock(self._local.directory / "forwarder.lock")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                return False
            self._lock = file
        return True

    def flush(self, *, timeout: float | None = TIMEOUT_SECONDS) -> None:
        """Wait until the target contains all entries.

        Raises:
            StoreTimeout: entries still wait. None is lost.
            ZlogError: the target refuses the entries.
        """
        end = None if timeout is None else time.monotonic() + timeout
        self._tried.wait(timeout)
        while not self._queue.empty or self._local.batch() is not None:
            error = self._error
            if error is not None and not passes(error):
                raise copy.copy(error)
            if end is not None and time.monotonic() >= end:
                raise StoreTimeout(
                    "not all entries were delivered in time" + (f": {error}" if error else ""),
                    hint="They stay in the spool, which tries again. `zlog doctor` shows which part"
                    " of the target does not work.",
                )
            time.sleep(0.05)

    def stat(self) -> SpoolStat:
        """Return the state of the spool."""
        return self._local.stat()

    def close(self) -> None:
        """Make all submitted entries durable and close the spool, without waiting for the target.

        It is safe to call this twice.
        """
        self._queue.close()
        self._pump.join()
        self._ended = True
        self._wake.set()
        self._forwarder.join(_CLOSE_SECONDS)
        if self._forwarder.is_alive() and (target := self._target) is not None:
            target.store.close()  # ends its calls
            self._forwarder.join(_CLOSE_SECONDS)
        self._close_local()
        open_spools.discard(self)

    def _close_local(self) -> None:
        self._local.store.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
