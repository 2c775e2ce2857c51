"""A store through which nothing can be changed, around any other."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from zlog._base.codes import READING_METHODS
from zlog._base.refusals import from_errno
from zlog._native.completions import CompletionQueue
from zlog._native.stores import UnderWay
from zlog.store import RequestPayload, Store

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ReadOnlyStore"]


class ReadOnlyStore:
    """Refuses every method that writes, and has no sequencer: to look has no effect.

    Logs opened in it read as ever, with two differences. No sequencer is asked, and so none takes a
    log over: the tail is where the log's objects end, which lies below positions that were handed
    out and not yet written. And no hole is filled: it is reported as unwritten.

    Args:
        store: what it reads. It stays open when this is closed.
    """

    def __init__(self, store: Store) -> None:
        self._inner = store
        self.url, self.pool, self.namespace = store.url, store.pool, store.namespace
        self.identity = store.identity
        self.read_only = True

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Run a method that reads."""
        if method not in READING_METHODS:
            return -errno.EROFS, b""
        return self._inner.execute(object, method, payload, timeout)

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, RequestPayload]]
    ) -> UnderWay | None:
        """Start methods, if all of them read: calls that go together are of one kind."""
        if all(method in READING_METHODS for _, method, _ in calls):
            return self._inner.submit(queue, token, calls)
        for number in range(len(calls)):
            queue.put(token + number, -errno.EROFS, b"")
        return None

    def list_objects(
        self, queue: CompletionQueue, token: int, prefix: str, after: bytes = b""
    ) -> UnderWay | None:
        """Start a listing of objects."""
        return self._inner.list_objects(queue, token, prefix, after)

    def lock(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> UnderWay | None:
        """Start a look at a lock: who leads, and who stands by."""
        if method == "get_info":
            return self._inner.lock(queue, token, object, method, request)
        return _refuse(queue, token)

    def ask_copy(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> UnderWay | None:
        """Start a method at another copy. On Ceph this makes an object that it removes at once."""
        return self._inner.ask_copy(queue, token, object, method, request)

    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> UnderWay | None:
        """Have the monitors run a command, which is one that tells and changes nothing."""
        return self._inner.ask_monitor(queue, token, command)

    def notify(self, object: str) -> None:
        """Wake no clients."""

    def watch(
        self,
        queue: CompletionQueue,
        token: int,
        object: str,  # noqa: ARG002
        seen: int = 0,  # noqa: ARG002
    ) -> UnderWay | None:
        """Refuse: it would make the object. Followers look at the log from time to time."""
        return _refuse(queue, token, errno.EOPNOTSUPP)

    def remove_watched(
        self,
        queue: CompletionQueue,
        token: int,
        object: str,  # noqa: ARG002
    ) -> UnderWay | None:
        """Refuse."""
        return _refuse(queue, token)

    def sequencer(self) -> None:
        """Return None: a sequencer that is asked may change the log."""

    def compact(self) -> int:
        """Refuse."""
        raise from_errno(-errno.EROFS, f"compact {self.url}")

    def close(self) -> None:
        """Leave the store open that this reads."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _refuse(queue: CompletionQueue, token: int, error: int = errno.EROFS) -> UnderWay | None:
    queue.put(token, -error, b"")
    return None
