"""Handles on logs that a process keeps, since a Spark worker runs many tasks in sequence."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import zlog
from zlog.errors import Invalidated, LogNotFound, ZlogError

T = TypeVar("T")

PATIENCE_SECONDS = 120.0
"""How long a store may be unreachable before the query ends. An error ends the query permanently,
so this is longer than the timeout of a call."""

_PAUSE_SECONDS_MAX = 5.0

_logger = logging.getLogger(__name__)
_lock = threading.Lock()
_stores: dict[tuple[int, str], zlog.Store] = {}
_logs: dict[tuple[int, str, str, str | None], zlog.Log] = {}


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _connected(url: str) -> zlog.Store:
    """Return this process's connection to a store; the caller holds the lock."""
    # Each process has its own, because handles of LMDB and librados do not work after a fork.
    process = os.getpid()
    store = _stores.get((process, url))
    if store is None:
        store = _stores[process, url] = zlog.connect(url, create=False)
    return store


def names_like(url: str, pattern: str) -> list[str]:
    """Return the names of a store's logs that match a pattern. Retry if it is unreachable."""
    patience = Patience(f"the logs {pattern!r}", lambda: None)
    while True:
        try:
            with _lock:
                store = _connected(url)
            return [name for name in zlog.Log.list(store) if fnmatchcase(name, pattern)]
        except ZlogError as error:
            patience.after(error)


@dataclass(frozen=True, slots=True)
class LogRef:
    """A reference to a log, for any process that can reach its store.

    Attributes:
        store: the store's URL.
        name: the log's name.
        log_id: the log's id; None means whichever log has the name now.
        mac_key_file: the path of the file with the log's MAC key. Workers get only the path.
        create: whether to create the log if it does not exist.
    """

    store: str
    name: str
    log_id: int | None = None
    mac_key_file: str | None = None
    create: bool = False

    def open(self) -> zlog.Log:
        """Return this process's handle on the log. Open the log if it is not open yet.

        Raises:
            LogNotFound: the log does not exist, or another log has its name.
        """
        with _lock:
            log = _logs.get(self._key)
            store = _connected(self.store)
        if log is None or self.log_id not in (None, log.view.log_id):
            path = None if self.mac_key_file is None else Path(self.mac_key_file)
            opened = zlog.Log.open(store, self.name, create=self.create, mac_key=path)
            with _lock:
                log = _logs[self._key] = opened
        if self.log_id not in (None, log.view.log_id):
            raise LogNotFound(
                f"log {self.name!r} was removed from {self.store}, and another log now has its"
                " name",
                hint="Start the query with a new checkpoint to read the new log.",
            )
        return log

    def patience(self) -> Patience:
        """Return what limits the retries of a call on the log."""
        return Patience(f"log {self.name!r}", self.forget)

    def forget(self) -> None:
        """Drop the handle, so that the next call opens the log again."""
        with _lock:
            _logs.pop(self._key, None)

    @property
    def _key(self) -> tuple[int, str, str, str | None]:
        return os.getpid(), self.store, self.name, self.mac_key_file

    def call(self, action: Callable[[zlog.Log], T]) -> T:
        """Run an action on the log and return its result. Retry if the store is unreachable.

        The action must be safe to repeat.
        """
        patience = self.patience()
        while True:
            try:
                return action(self.open())
            except ZlogError as error:
                patience.after(error)


class Patience:
    """Limits the time of a call's attempts.

    Args:
        what: what is called, for messages.
        forget: called after each failure.
    """

    def __init__(self, what: str, forget: Callable[[], None]) -> None:
        self._what = what
        self._forget = forget
        self.renew()

    def renew(self) -> None:
        """Start again after a success."""
        self._end = time.monotonic() + PATIENCE_SECONDS
        self._tries = 0

    def after(self, error: ZlogError) -> None:
        """Wait after a failure, or raise the error if a retry is useless."""
        self._forget()
        self._tries += 1
        # A worker's handle may be older than the log that now has the name.
        reopened = isinstance(error, LogNotFound) and self._tries == 1
        if not (error.retryable or reopened) or time.monotonic() >= self._end:
            raise error
        if not reopened:
            _logger.warning("%s: %s; trying again", self._what, error)
            time.sleep(min(_PAUSE_SECONDS_MAX, 0.05 * 2**self._tries))


def trimmed_error(log: LogRef, position: int, earliest: int) -> Invalidated:
    """Return the error of a query that would miss entries, because they were trimmed too early."""
    return Invalidated(
        f"log {log.name!r} is trimmed below {earliest}, but the query has only read up to"
        f" {position}, so it has missed the entries in between",
        hint="Set the option failOnDataLoss to false to continue without them; a cursor (option"
        " cursor) keeps a log from being trimmed too early.",
    )
