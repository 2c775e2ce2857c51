"""A wrapper that makes any store read-only."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from zlog._base.codes import READING_METHODS
from zlog._base.refusals import from_code
from zlog._native.completions import CompletionQueue
from zlog._native.stores import UnderWay
from zlog.store import RequestPayload, Store

__all__ = ["ReadOnlyStore"]


class ReadOnlyStore:
    """A store that refuses every method that writes, and has no sequencer.

    A log that is opened in this store never contacts its sequencer, because that could make the
    sequencer take over the log. Its tail is therefore one past the last entry in the log's objects,
    even if higher positions were granted. Holes are not filled, but reported as unwritten.

    Args:
        store: the store to read. Closing the wrapper does not close it.
    """

    def __init__(self, store: Store) -> None:
        self._inner = store
        self.url, self.pool, self.namespace = store.url, store.pool, store.namespace
        self.identity = store.identity
        self.read_only = True
        self.list_objects = store.list_objects
        self.ask_replica = store.ask_replica  # on Ceph it creates an object and removes it at once
        self.ask_monitor = store.ask_monitor  # zlog sends only commands that change nothing

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Run a method if it only reads."""
        if method not in READING_METHODS:
            return -errno.EROFS, b""
        return self._inner.execute(object, method, payload, timeout)

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, RequestPayload]]
    ) -> UnderWay | None:
        """Start methods if all of them only read. Clients never mix methods that read and write."""
        if all(method in READING_METHODS for _, method, _ in calls):
            return self._inner.submit(queue, token, calls)
        for number in range(len(calls)):
            _refuse(queue, token + number)
        return None

    def lock(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> UnderWay | None:
        """Start reading a lock. The lock shows the leading sequencer and the standbys."""
        if method == "get_info":
            return self._inner.lock(queue, token, object, method, request)
        return _refuse(queue, token)

    def notify(self, object: str) -> None:
        """Do nothing, because a notification is a write."""

    def watch(
        self, queue: CompletionQueue, token: int, object: str, seen: int = 0
    ) -> UnderWay | None:
        """Refuse, because a watch would create the object. Followers poll instead."""
        return _refuse(queue, token, errno.EOPNOTSUPP)

    def remove_watched(self, queue: CompletionQueue, token: int, object: str) -> UnderWay | None:
        """Refuse, because this is a write."""
        return _refuse(queue, token)

    def sequencer(self) -> None:
        """Return None, because a sequencer that is asked may change the log."""

    def compact(self) -> int:
        """Refuse, because this is a write."""
        raise from_code(-errno.EROFS, f"cannot compact {self.url}")

    def close(self) -> None:
        """Do nothing. The wrapped store stays open."""

    def __enter__(self) -> ReadOnlyStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _refuse(queue: CompletionQueue, token: int, error: int = errno.EROFS) -> UnderWay | None:
    queue.put(token, -error, b"")
    return None
