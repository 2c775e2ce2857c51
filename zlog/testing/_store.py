"""A store around another store, which is slow, fails, and does things twice or too late."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import functools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from zlog.store import CompletionQueue, RequestPayload, SharedSequencer, Start, Store, UnderWay

if TYPE_CHECKING:
    from typing_extensions import Self


class StoreCall(NamedTuple):
    """One operation on its way to a store; ``number`` counts them from 0."""

    number: int
    object: str
    method: str


class Fate(NamedTuple):
    """What happens to an operation. By default it takes effect and is answered at once.

    Attributes:
        effect: the number of seconds until the operation takes effect; None means never.
        reply: the number of seconds until the answer, which cannot precede the effect; None means
            that there is no answer.
        error: an errno to answer with, whether or not the operation takes effect.
        answer: a code and a reply to answer with, whether or not the operation takes effect.
        again: the number of seconds until the operation takes effect a second time, as if a client
            library had repeated it. The answer is then the reply of the second execution.
    """

    effect: float | None = 0.0
    reply: float | None = 0.0
    error: int = 0
    again: float | None = None
    answer: tuple[int, bytes] | None = None

    @property
    def instead(self) -> tuple[int, bytes] | None:
        """Replaces the reply of the operation."""
        return (-self.error, b"") if self.error else self.answer


AT_ONCE = Fate()

Plan = Callable[[StoreCall], Fate]
"""Determines an operation's fate. It may raise, as if the process died before sending it."""


class FaultyStore:
    """A store that passes operations on to another store, and injects the faults of a plan.

    On a virtual loop, delays take no real time, and an operation continues even if its process is
    killed. Without an event loop, the caller's thread sleeps, and an operation that is never
    answered returns ETIMEDOUT at once.

    Attributes:
        inner: the store that executes the operations.
        plan: a function that returns an operation's fate. It may be replaced at any time.
        operations: the number of operations so far.
    """

    def __init__(
        self, store: Store, plan: Plan = lambda _: AT_ONCE, *, share_sequencer: bool = True
    ) -> None:
        """Wrap a store. If ``share_sequencer`` is False, it has no shared sequencer, as on Ceph."""
        self.inner = store
        self.plan = plan
        self.operations = 0
        self.url, self.pool, self.namespace = store.url, store.pool, store.namespace
        self.read_only = store.read_only
        self.identity = store.identity
        self._share_sequencer = share_sequencer

    def execute(
        self, object: str, method: str, payload: RequestPayload, timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Run one method and wait for it."""
        fate = self.decide(object, method)
        code, reply = -errno.ETIMEDOUT, b""
        for moment in (fate.effect, fate.again):
            if moment is not None:
                _sleep(moment)
                code, reply = self.inner.execute(object, method, payload, timeout)
        if fate.instead is not None:
            return fate.instead
        return (-errno.ETIMEDOUT, b"") if fate.reply is None else (code, reply)

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, RequestPayload]]
    ) -> None:
        """Start methods. The queue receives the replies that the plan lets through."""
        for number, call in enumerate(calls, token):
            fate = self.decide(call[0], call[1])
            if fate == AT_ONCE:
                self.inner.submit(queue, number, [call])
            else:
                _Operation(queue, number, functools.partial(self.carry_out, *call)).begin(fate)

    def list_objects(
        self, queue: CompletionQueue, token: int, prefix: str, after: bytes = b""
    ) -> None:
        """Start a listing. For the plan, it is a method ``list_objects`` of the prefix."""
        start = functools.partial(self.inner.list_objects, prefix=prefix, after=after)
        self.pass_on(queue, token, self.decide(prefix, "list_objects"), start)

    def lock(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> None:
        """Start a method of Ceph's class ``lock``. For the plan, it is ``lock`` of the object."""
        start = functools.partial(self.inner.lock, object=object, method=method, request=request)
        self.pass_on(queue, token, self.decide(object, "lock"), start)

    def ask_replica(
        self, queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> None:
        """Ask a replica of an object. For the plan, it is the method itself."""
        start = functools.partial(
            self.inner.ask_replica, object=object, method=method, request=request
        )
        self.pass_on(queue, token, self.decide(object, method), start)

    def ask_monitor(self, queue: CompletionQueue, token: int, command: str) -> None:
        """Ask the monitors. For the plan, it is a method ``ask_monitor`` of no object."""
        start = functools.partial(self.inner.ask_monitor, command=command)
        self.pass_on(queue, token, self.decide("", "ask_monitor"), start)

    def notify(self, object: str) -> None:
        """Notify an object. For the plan, it is a method ``notify`` without an answer."""
        fate = self.decide(object, "notify")
        for moment in (fate.effect, fate.again):
            if moment is not None:
                _later(moment, functools.partial(self.inner.notify, object))

    def watch(
        self, queue: CompletionQueue, token: int, object: str, seen: int = 0
    ) -> UnderWay | None:
        """Wait for a notification. For the plan, it is ``watch``: it fails, is lost, or waits."""
        fate = self.decide(object, "watch")
        instead = fate.instead
        if fate.reply is None:
            return None
        if instead is not None:
            _later(fate.reply, lambda: queue.put(token, *instead))
            return None
        return self.inner.watch(queue, token, object, seen)

    def remove_watched(self, queue: CompletionQueue, token: int, object: str) -> None:
        """Remove the object of a watch. For the plan, it is a method ``remove_watched``."""
        start = functools.partial(self.inner.remove_watched, object=object)
        self.pass_on(queue, token, self.decide(object, "remove_watched"), start)

    def pass_on(self, queue: CompletionQueue, token: int, fate: Fate, start: Start) -> None:
        """Start an operation with the given fate. ``start`` passes it on."""
        if fate == AT_ONCE:
            start(queue, token)
        else:
            _Operation(queue, token, lambda: _outcome(start)).begin(fate)

    def decide(self, object: str, method: str) -> Fate:
        """Return the fate of the next operation."""
        number, self.operations = self.operations, self.operations + 1
        return self.plan(StoreCall(number, object, method))

    def carry_out(self, object: str, method: str, payload: RequestPayload) -> tuple[int, bytes]:
        """Run the operation now. Simulations override this to observe or break a store."""
        return self.inner.execute(object, method, payload)

    def sequencer(self) -> SharedSequencer | None:
        """Return the inner store's sequencer, unless it must not be shared."""
        return self.inner.sequencer() if self._share_sequencer else None

    def compact(self) -> int:
        """Compact the inner store."""
        return self.inner.compact()

    def close(self) -> None:
        """Close the inner store."""
        self.inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Operation:
    """A submitted operation, with its fate."""

    def __init__(
        self, queue: CompletionQueue, token: int, carry_out: Callable[[], tuple[int, bytes]]
    ) -> None:
        self._queue = queue
        self._token = token
        self._carry_out = carry_out

    def begin(self, fate: Fate) -> None:
        """Set the timers for its fate."""
        instead = fate.instead
        if instead is not None and fate.reply is not None:
            _later(fate.reply, lambda: self._queue.put(self._token, *instead))
        answers = fate.reply is not None and instead is None
        if fate.effect is not None:
            wait = (fate.reply or 0.0) - fate.effect
            final = fate.again is None
            _later(fate.effect, lambda: self._take_effect(wait if answers and final else None))
        if fate.again is not None:
            wait = (fate.reply or 0.0) - fate.again
            _later(fate.again, lambda: self._take_effect(wait if answers else None))

    def _take_effect(self, wait: float | None) -> None:
        """Run the operation, and answer ``wait`` seconds later; None means never."""
        code, reply = self._carry_out()
        if wait is not None:
            _later(wait, lambda: self._queue.put(self._token, code, reply))


def _outcome(start: Start) -> tuple[int, bytes]:
    """Start an operation and wait for it."""
    queue = CompletionQueue()
    start(queue, 0)
    queue.wait()
    ((_, code, reply),) = queue.drain()
    return code, bytes(reply)


def _later(seconds: float, callback: Callable[[], object]) -> None:
    """Schedule a call in ``seconds`` that belongs to no process."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        _sleep(seconds)
        callback()
        return
    if seconds <= 0:
        callback()
    else:
        loop.call_later(seconds, callback, context=contextvars.Context())


def _sleep(seconds: float) -> None:
    if seconds > 0:
        time.sleep(seconds)


@dataclass(slots=True)
class StoreFaults:
    """The faults of a store. They may be changed while the store is used.

    Attributes:
        latency: the minimum and maximum number of seconds that the request and the reply each take.
        slow: the probability that a request or a reply is slow.
        slow_seconds: the maximum number of seconds that a slow request or reply takes.
        never: the probability that an operation has no effect and is never answered.
        silent: the probability that an operation takes effect but is never answered.
        late: the probability of ETIMEDOUT for an operation that takes effect later.
        late_seconds: the maximum number of seconds until a late operation takes effect.
        again: the probability that an operation takes effect twice, up to ``again_seconds`` apart.
        again_seconds: the maximum number of seconds between the two effects.
        refused: the probability that an operation gets EAGAIN and has no effect.
    """

    latency: tuple[float, float] = (0.0002, 0.002)
    slow: float = 0.0
    slow_seconds: float = 0.5
    never: float = 0.0
    silent: float = 0.0
    late: float = 0.0
    late_seconds: float = 5.0
    again: float = 0.0
    again_seconds: float = 0.5
    refused: float = 0.0


class SeededPlan:
    """A plan that chooses faults at random. The same seed always leads to the same choices.

    Attributes:
        faults: see :class:`StoreFaults`.
    """

    def __init__(self, seed: int | str, faults: StoreFaults | None = None) -> None:
        self.faults = faults or StoreFaults()
        self._random = random.Random(f"{seed}.store")

    def __call__(self, call: StoreCall) -> Fate:
        """Return the fate of an operation."""
        faults, draw = self.faults, self._random
        effect, reply = self._half(), self._half()
        kind = draw.random()
        if kind < faults.never:
            return Fate(None, None)
        kind -= faults.never
        if kind < faults.silent:
            return Fate(effect, None)
        kind -= faults.silent
        if kind < faults.late:
            return Fate(effect + draw.uniform(0, faults.late_seconds), reply, errno.ETIMEDOUT)
        kind -= faults.late
        if kind < faults.refused:
            return Fate(None, reply, errno.EAGAIN)
        kind -= faults.refused
        if kind < faults.again:
            again = effect + draw.uniform(0, faults.again_seconds)
            return Fate(effect, again + reply, again=again)
        return Fate(effect, effect + reply)

    def _half(self) -> float:
        faults, draw = self.faults, self._random
        if faults.slow and draw.random() < faults.slow:
            return draw.uniform(0, faults.slow_seconds)
        return draw.uniform(*faults.latency)
