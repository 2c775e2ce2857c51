"""The local logs of a spool.

The log ``spool`` contains the waiting entries in records, and ``state`` the number of dropped
entries and the last error.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, NamedTuple

from zlog.entry import Entry, GapKind
from zlog.errors import (
    CorruptEntry,
    LimitReached,
    LogNotFound,
    StoreMissing,
    StoreUnavailable,
    ZlogError,
)
from zlog.limits import ENTRY_BYTES_MAX
from zlog.store import connect
from zlog.sync.log import Log

BATCH_ENTRIES = 4096
BATCH_BYTES = 1 << 20
"""The limits of a batch, unless its only record exceeds them. They must never be lowered, because a
batch that is sent again must have all entries that it had before."""

COUNTER_BITS = 20
_LOST = (GapKind.LOST, GapKind.UNREADABLE, GapKind.FORGED)

_logger = logging.getLogger("zlog.spool")

SpoolEntry = tuple[bytes, tuple[str, ...]]
"""The data and the tags of an entry."""


class SpoolStat(NamedTuple):
    """The state of a spool.

    Attributes:
        directory: the spool's directory.
        store, log: the URL of the target's store, and the target's name.
        state: ``"empty"``, ``"spooling"`` if entries wait, or ``"blocked"`` if nothing can be
            delivered before the error is fixed.
        entries, bytes: the number of waiting entries, and their size in the local log.
        oldest: when the oldest waiting entry was appended, UTC; None if there is none.
        dropped: how many entries the spool has ever removed because it was full. Some of them may
            have been delivered.
        error, hint: why entries could not be delivered, and what to do; empty after a success.
    """

    directory: str
    store: str
    log: str
    state: str
    entries: int
    bytes: int
    oldest: datetime | None
    dropped: int
    error: str
    hint: str

    @property
    def age(self) -> float:
        """The age of the oldest waiting entry in seconds; 0 if there is none."""
        return max(0.0, time.time() - self.oldest.timestamp()) if self.oldest else 0.0


class Batch(NamedTuple):
    """Entries that are sent together, and the position after their records."""

    entries: list[SpoolEntry]
    sequence: int
    end: int


class LocalLogs:
    """The local logs. Several processes may use them at once."""

    def __init__(self, directory: Path, target: dict[str, str] | None) -> None:
        self.directory = directory
        self._full = False  # whether this was logged
        try:
            self._open(directory, target)
        except (LogNotFound, StoreMissing) as error:
            hint = "Give the directory of a spool."
            raise ZlogError(f"there is no spool in {directory}", hint=hint) from error

    def _open(self, directory: Path, target: dict[str, str] | None) -> None:
        create = target is not None
        self.store = connect(directory, create=create)
        if (names := Log.list(self.store)) and "spool" not in names:
            raise ZlogError(f"{directory} is a store of logs", hint="Use another directory.")
        options = None if target is None else {"id": uuid.uuid4().hex, **target}
        opened = (
            Log.open(
                self.store,
                name,
                create=create,
                width=1 if create else None,
                options=options,
                entry_bytes_max=ENTRY_BYTES_MAX,
            )
            for name in ("spool", "state")
        )
        self.records, self.states = opened

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude others that choose a batch, drop records or change the state."""
        with open_lock(self.directory / "spool.lock") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def add(self, entries: Sequence[SpoolEntry], sequence: int | None) -> None:
        """Store a record durably."""
        tags = [str(len(entries))] if sequence is None else [str(len(entries)), "direct"]
        lengths, own = [len(data) for data, _ in entries], [tags for _, tags in entries]
        head = json.dumps([sequence, lengths, own if any(own) else None]).encode()
        self.records.append(b"\n".join([head, b"".join(data for data, _ in entries)]), tags=tags)

    def batch(self) -> Batch | None:
        """Return the batch to deliver next, or None if no record waits."""
        with self.locked():
            return self._batch(self.state())

    def _batch(self, state: dict[str, Any]) -> Batch | None:
        start = self.records.earliest()
        if start < state["dropped_to"]:  # the process that dropped them has died
            self.records.trim_to(start := state["dropped_to"])
        entries: list[SpoolEntry] = []
        number, size, end = 0, 0, start
        for item in self.records.read_range(start):
            if not isinstance(item, Entry):
                if item.kind in _LOST:
                    raise CorruptEntry(
                        f"the spool {self.directory} has lost position {item.position}",
                        hint="To continue without the lost entries, use: zlog --store"
                        f" {self.directory.as_uri()} trim spool --to {item.end}",
                    )
            elif item.data:  # not a marker
                more, sequence = _decoded(item.data)
                size += sum(map(size_of, more))
                full = size > BATCH_BYTES or len(entries) + len(more) > BATCH_ENTRIES
                if entries and (full or sequence is not None):
                    break
                if not entries:
                    number = item.position << COUNTER_BITS if sequence is None else sequence
                entries += more
                if sequence is not None:
                    end = item.end
                    break
            end = item.end
        if entries:
            return Batch(entries, number, end)
        if end > start:
            self.records.trim_to(end)
        return None

    def has_direct(self, start: int) -> bool:
        """Whether a record from ``start`` on contains its sequence number."""
        last = self.records.last("direct")
        return last is not None and last.position >= start

    def make_space(self, bytes_max: int, *, drop: bool) -> None:
        """Drop the oldest records, or raise LimitReached, if the spool is too large."""
        while (size := self.records.stat().bytes) > bytes_max:
            if not drop:
                raise LimitReached(
                    f"the spool {self.directory} is full: {size:,} bytes wait",
                    hint="Make the log available, or raise the limit (`bytes_max=`,"
                    " `--spool-bytes`), or let the spool drop its oldest entries"
                    " (`when_full='drop'`, `--spool-full drop-oldest`).",
                )
            with self.locked():
                state = self.state()
                # The whole batch: if a part of it was sent, the rest must keep its number.
                if (batch := self._batch(state)) is None:
                    return
                count = len(batch.entries)
                self._set(state, dropped=state["dropped"] + count, dropped_to=batch.end)
                self.records.trim_to(batch.end)
            if not self._full:
                self._full = True
                _logger.warning("the spool %s is full and drops its oldest entries", self.directory)

    def state(self) -> dict[str, Any]:
        """Return the number of dropped entries, the position after them, and the last error."""
        last = self.states.last()
        none = {"dropped": 0, "dropped_to": 0, "error": "", "hint": "", "retryable": True}
        return none if last is None else json.loads(last.data)

    def report(self, error: ZlogError | None) -> None:
        """Record the last error, or a success. A full disk may prevent this."""
        new = {"error": "", "hint": "", "retryable": True}
        if error is not None:
            new = {"error": str(error), "hint": error.hint, "retryable": passes(error)}
        with contextlib.suppress(ZlogError), self.locked():
            state = self.state()
            if state != {**state, **new}:
                self._set(state, **new)

    def _set(self, state: dict[str, Any], **new: object) -> None:
        self.states.trim_to(self.states.append(json.dumps({**state, **new}).encode()))

    def stat(self) -> SpoolStat:
        """Return the state of the spool."""
        state, options = self.state(), self.records.view.options
        start = max(self.records.earliest(), state["dropped_to"])
        entries, oldest = 0, None
        for columns in self.records.read_columns(start, with_data=False, with_tags=True):
            for micros, tags in zip(columns.timestamps, columns.tags or (), strict=True):
                entries += sum(int(tag) for tag in tags if tag != "direct")
                if tags and oldest is None:  # not a marker
                    oldest = datetime.fromtimestamp(micros / 1e6, timezone.utc)
        waiting = "spooling" if entries else "empty"
        return SpoolStat(
            directory=str(self.directory),
            store=options["store"],
            log=options["log"],
            state=waiting if state["retryable"] else "blocked",
            entries=entries,
            bytes=self.records.stat().bytes,
            oldest=oldest,
            dropped=state["dropped"],
            error=state["error"],
            hint=state["hint"],
        )


def passes(error: ZlogError) -> bool:
    """Whether an error may pass by itself. The disk of an embedded store may be mounted later."""
    return error.retryable or isinstance(error, StoreMissing)


def open_lock(path: Path) -> IO[str]:
    try:
        return path.open("a")
    except OSError as error:
        hint = "A spool needs a local disk with free space, to which this user may write."
        raise StoreUnavailable(f"{path}: {error.strerror}", hint=hint) from error


def _decoded(record: bytes) -> tuple[list[SpoolEntry], int | None]:
    """Return a record's entries, and the sequence number of a direct append."""
    head, _, data = record.partition(b"\n")
    sequence, lengths, tags = json.loads(head)
    entries, at = [], 0
    for length, own in zip(lengths, tags or [()] * len(lengths), strict=True):
        entries.append((data[at : at + length], tuple(own)))
        at += length
    return entries, sequence


def size_of(entry: SpoolEntry) -> int:
    """Return the size of an entry. A character of a tag takes up to six bytes in a record."""
    return len(entry[0]) + 6 * sum(map(len, entry[1]))


def spool_stat(directory: str | os.PathLike[str]) -> SpoolStat:
    """Return the state of a spool, whether or not a process uses it.

    Raises:
        ZlogError: the directory does not exist or is not a spool.
    """
    local = LocalLogs(Path(directory).absolute(), None)
    with local.store:
        return local.stat()
