"""A store that counts what reads bring, and one of whose class is older."""

from __future__ import annotations

from collections.abc import Sequence

import zlog
from zlog import testing
from zlog._native.completions import CompletionQueue
from zlog.store import RequestPayload

_READS = ("read", "select")


class MeteredStore(testing.FaultyStore):
    """Passes operations on to ``store``, and counts.

    Args:
        store: the store.
        older: whether its class does not know the newest field of a read's request, which it then
            passes over.

    Attributes:
        read_bytes: of all replies to reads.
    """

    def __init__(self, store: zlog.Store, *, older: bool = False) -> None:
        super().__init__(store)
        self.read_bytes = 0
        self._older = older

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Run one method, and count what it answers."""
        if method not in _READS:
            return super().execute(object, method, payload, timeout)
        if self._older:
            payload = _without_last_field(bytes(payload))
        code, reply = super().execute(object, method, payload, timeout)
        self.read_bytes += len(reply)
        return code, reply

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, RequestPayload]]
    ) -> None:
        """Run reads at once, and start other methods."""
        for number, call in enumerate(calls, token):
            if call[1] in _READS:
                queue.put(number, *self.execute(*call))
            else:
                super().submit(queue, number, [call])


def _without_last_field(request: bytes) -> bytes:
    """Return a request as a version knows it that lacks its last field, a flag."""
    length = int.from_bytes(request[2:6], "little") - 1
    return bytes([request[0] - 1, request[1]]) + length.to_bytes(4, "little") + request[6:-1]
