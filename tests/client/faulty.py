"""A store that dies or loses replies at a chosen operation, around a real one."""

from __future__ import annotations

import errno
from collections.abc import Callable

import zlog
from zlog import testing
from zlog.testing import AT_ONCE, Fate, StoreCall

_FATES = {
    None: AT_ONCE,
    "lose": Fate(reply=None),
    "fail": Fate(effect=None, error=errno.EOPNOTSUPP),
}


class Died(BaseException):
    """The process is gone: not an Exception, so that nothing in between survives it."""


class FaultyStore(testing.FaultyStore):
    """Passes operations on to ``store``, and asks ``fault`` before each one.

    ``fault(number, method)`` with the operation's number from 0 returns None (go on), ``"die"``
    (raise Died and do nothing, now and for ever), ``"lose"`` (do it, and lose the reply), or
    ``"fail"`` (do nothing, and answer that the method is not known).
    """

    def __init__(
        self,
        store: zlog.Store,
        fault: Callable[[int, str], str | None],
        *,
        share_sequencer: bool = True,
    ) -> None:
        super().__init__(store, self._fate, share_sequencer=share_sequencer)
        self.fault = fault
        self.dead = False

    def _fate(self, call: StoreCall) -> Fate:
        verdict = self.fault(call.number, call.method)
        if verdict == "die" or self.dead:
            self.dead = True
            raise Died(f"at operation {call.number}, {call.method}")
        return _FATES[verdict]


class WithoutSequencer(FaultyStore):
    """A store that does not share a sequencer, as a Ceph cluster."""

    def __init__(
        self, store: zlog.Store, fault: Callable[[int, str], str | None] = lambda *_: None
    ) -> None:
        super().__init__(store, fault, share_sequencer=False)


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
