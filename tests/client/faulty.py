"""A store that dies or loses replies at a chosen operation, around a real one."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import zlog
from zlog._native import CompletionQueue, SharedSequencer
from zlog.store import RequestPayload

if TYPE_CHECKING:
    from typing_extensions import Self


class Died(BaseException):
    """The process is gone: not an Exception, so that nothing in between survives it."""


class FaultyStore:
    """Passes operations on to ``store``, and asks ``fault`` before each one.

    ``fault(number, method)`` with the operation's number from 0 returns None (go on), ``"die"``
    (raise Died and do nothing, now and for ever), or ``"lose"`` (do it, and lose the reply).
    """

    def __init__(self, store: zlog.Store, fault: Callable[[int, str], str | None]) -> None:
        self.inner = store
        self.fault = fault
        self.operations = 0
        self.dead = False
        self.url, self.pool, self.namespace = store.url, store.pool, store.namespace

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        verdict = self._judge(method)
        code, reply = self.inner.execute(object, method, payload, timeout)
        return (-errno.ETIMEDOUT, b"") if verdict == "lose" else (code, reply)

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, RequestPayload]]
    ) -> None:
        for number, call in enumerate(calls, token):
            if self._judge(call[1]) == "lose":
                self.inner.execute(*call)
            else:
                self.inner.submit(queue, number, [call])

    def sequencer(self) -> SharedSequencer | None:
        return self.inner.sequencer()

    def close(self) -> None:
        self.inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _judge(self, method: str) -> str | None:
        number, self.operations = self.operations, self.operations + 1
        verdict = self.fault(number, method)
        if verdict == "die" or self.dead:
            self.dead = True
            raise Died(f"at operation {number}, {method}")
        return verdict


class WithoutSequencer(FaultyStore):
    """A store that does not share a sequencer, as a Ceph cluster."""

    def __init__(
        self, store: zlog.Store, fault: Callable[[int, str], str | None] = lambda *_: None
    ) -> None:
        super().__init__(store, fault)

    def sequencer(self) -> None:
        return None


def dies_at(number: int) -> Callable[[int, str], str | None]:
    """Fault that kills the process before operation ``number``."""
    return lambda at, _: "die" if at >= number else None


def loses_first(method: str) -> Callable[[int, str], str | None]:
    """Fault that loses the reply of the first call of ``method``."""
    lost: list[int] = []

    def fault(at: int, called: str) -> str | None:
        if called == method and not lost:
            lost.append(at)
            return "lose"
        return None

    return fault
