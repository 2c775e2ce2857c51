"""A store that dies or loses replies at a chosen operation, around a real one."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

import zlog
from zlog import testing
from zlog._io import AsyncioIo
from zlog.testing import AT_ONCE, Fate, SeededPlan, StoreCall, StoreFaults

_FATES = {
    None: AT_ONCE,
    "lose": Fate(reply=None),
    "twice": Fate(again=0.0),
    "fail": Fate(effect=None, error=errno.EOPNOTSUPP),
}


class Died(BaseException):
    """The process is gone: not an Exception, so that nothing in between survives it."""


class FaultyStore(testing.FaultyStore):
    """Passes operations on to ``store``, and asks ``fault`` before each one.

    ``fault(number, method)`` with the operation's number from 0 returns None (go on), ``"die"``
    (raise Died and do nothing, now and for ever), ``"lose"`` (do it, and lose the reply),
    ``"twice"`` (do it, and once more), or ``"fail"`` (do nothing, and answer that the method is not
    known).
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


_NOT_ALLOWED = Fate(effect=None, error=errno.EPERM)


class Refusing(testing.FaultyStore):
    """A store whose OSDs refuse one method to this client, from a call of it on."""

    def __init__(
        self,
        store: zlog.Store,
        method: str,
        first: int = 0,
        refusal: Fate = _NOT_ALLOWED,
    ) -> None:
        super().__init__(store, self._fate)
        self._method = method
        self._left = first
        self._refusal = refusal

    def _fate(self, call: StoreCall) -> Fate:
        if call.method != self._method:
            return AT_ONCE
        self._left -= 1
        return AT_ONCE if self._left >= 0 else self._refusal


class WithoutSequencer(FaultyStore):
    """A store that does not share a sequencer, as a Ceph cluster."""

    def __init__(
        self, store: zlog.Store, fault: Callable[[int, str], str | None] = lambda *_: None
    ) -> None:
        super().__init__(store, fault, share_sequencer=False)


class Recorder(FaultyStore):
    """Keeps the names of all stripe objects that were ever sealed."""

    def __init__(
        self, store: zlog.Store, fault: Callable[[int, str], str | None] = lambda *_: None
    ) -> None:
        super().__init__(store, fault)
        self.names: set[str] = set()

    def decide(self, object: str, method: str) -> Fate:
        """Take the name down; what becomes of it is decided as ever."""
        if method == "seal":
            self.names.add(object)
        return super().decide(object, method)


def slow_io(store: zlog.Store, seed: int, low: float, high: float) -> AsyncioIo:
    """An Io whose operations take ``low`` to ``high`` seconds of a virtual loop's time.

    They take effect somewhere between their start and their reply, so that those of different
    clients interleave as they do on a cluster.
    """
    plan = SeededPlan(seed, StoreFaults(latency=(low / 2, high / 2)))
    return AsyncioIo(testing.FaultyStore(store, plan, share_sequencer=False))


def each_death(
    prepare: Callable[[zlog.Store], object], work: Callable[[zlog.Store], object], step: int = 1
) -> Iterator[tuple[int, Recorder]]:
    """For each operation of ``work``, a store on which it died there, and the operation's number.

    Args:
        prepare: makes what the work needs in a new store.
        work: takes as many operations each time.
        step: try every ``step``-th one only.
    """
    with zlog.connect("mem://") as probe:
        prepare(probe)
        counting = FaultyStore(probe, lambda *_: None)
        work(counting)
    for number in range(0, counting.operations, step):
        with zlog.connect("mem://") as plain:
            store = Recorder(plain)
            prepare(store)
            with pytest.raises(Died):
                work(FaultyStore(store, dies_at(number)))
            yield number, store


def each_moment(
    prepare: Callable[[zlog.Store], object],
    work: Callable[[zlog.Store], object],
    other: Callable[[zlog.Store], object],
) -> Iterator[tuple[int, zlog.Store]]:
    """For each operation of ``work``, a store on which ``other`` was done just before it.

    Args:
        prepare: makes what the work needs in a new store.
        work: goes on after it, to its end.
        other: as if the process that works stood still meanwhile.
    """
    number, reached = 0, True
    while reached:
        with zlog.connect("mem://") as store:
            prepare(store)
            reached = False

            def fault(at: int, _: str, store: zlog.Store = store, number: int = number) -> None:
                nonlocal reached
                if at == number:
                    reached = True
                    other(store)

            work(FaultyStore(store, fault))
            if reached:
                yield number, store
        number += 1


def dies_at(number: int) -> Callable[[int, str], str | None]:
    """Fault that kills the process before operation ``number``."""
    return lambda at, _: "die" if at >= number else None


def at_method(
    method: str, action: Callable[[], object], number: int = 1, verdict: str | None = None
) -> Callable[[int, str], str | None]:
    """Fault that does something else just before the call of ``method`` of this number, from 1."""
    seen = 0

    def fault(_: int, called: str) -> str | None:
        nonlocal seen
        seen += called == method
        if called == method and seen == number:
            action()
            return verdict
        return None

    return fault


def loses_first(method: str) -> Callable[[int, str], str | None]:
    """Fault that loses the reply of the first call of ``method``."""
    return at_method(method, lambda: None, verdict="lose")


def dies_in(method: str, number: int) -> Callable[[int, str], str | None]:
    """Fault that kills the process before the call of ``method`` of this number."""

    def die() -> None:
        raise Died(f"in {method} {number}")

    return at_method(method, die, number)
