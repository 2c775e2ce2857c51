"""A store that counts what reads bring."""

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

    Attributes:
        read_bytes: of all replies to reads.
    """

    def __init__(self, store: zlog.Store) -> None:
        super().__init__(store)
        self.read_bytes = 0

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Run one method, and count what it answers."""
        if method not in _READS:
            return super().execute(object, method, payload, timeout)
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
