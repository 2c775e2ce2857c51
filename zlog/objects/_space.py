"""A space of objects in a log, for asyncio; :mod:`zlog.objects` drives the same for threads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from zlog.aio.log import Log
from zlog.aio.opening import Opening
from zlog.entry import Entry
from zlog.extension import AsyncioPort, LogPort, ProcessBound, no_entry
from zlog.names import check_space_name
from zlog.objects._checkpoint import begin_space, cursor_name, write_checkpoint
from zlog.objects._decided import Outcome
from zlog.objects._handles import (
    WATCH_EVENTS,
    Counter,
    Election,
    Lock,
    Map,
    Object,
    Queue,
    Register,
    Set,
)
from zlog.objects._machine import Machine, check_types
from zlog.objects._records import ID_BYTES_MAX, Tags, check_key
from zlog.objects._replica import HIDING, LINEARIZABLE, Replica, check_log
from zlog.objects._restore import oldest, restored
from zlog.objects._states import Replicated
from zlog.objects._transaction import Transaction, TransactionState, conflict
from zlog.objects._views import Views, bounds
from zlog.objects._watch import Filter, Watch
from zlog.objects.errors import AlreadyCommitted, Conflict, PastLost, SpaceNotFound, Stopped

if TYPE_CHECKING:
    from typing_extensions import Self

R = TypeVar("R", bound=Replicated)

ATTEMPTS = 20
"""How often a transaction is tried, unless told otherwise."""


class Space(ProcessBound):
    """Objects that all clients of a log share; see :class:`zlog.objects.Space`.

    Attributes:
        local: reads that wait for nothing, of what this process has applied so far.
    """

    def __init__(self, replica: Replica) -> None:
        """Wrap a replica; programs call ``open``."""
        self._replica = replica
        self.local = Views(replica)

    @classmethod
    def open(
        cls,
        log: Log,
        name: str,
        *,
        types: Iterable[type[Replicated]] = (),
        create: bool = True,
    ) -> Opening[Self]:
        """Open a space; see :meth:`zlog.objects.Space.open`.

        Await it, and close the space in the end; or enter it with ``async with``.
        """

        async def opened() -> Self:
            return cls(await begin(AsyncioPort(log), name, types, create=create))

        return Opening(opened(), cls.close)

    @property
    def name(self) -> str:
        """The space's name."""
        return self._replica.name

    @property
    def position(self) -> int:
        """All entries of the log below this position are applied here."""
        return self._replica.machine.position

    def map(self, name: str) -> Map:
        """Return a map of text to values, with ranges in the order of the keys."""
        return Map(self._replica, self.local.map(name), self._watch)

    def set(self, name: str) -> Set:
        """Return a set of text."""
        return Set(self._replica, self.local.set(name), self._watch)

    def counter(self, name: str) -> Counter:
        """Return a counter."""
        return Counter(self._replica, self.local.counter(name), self._watch)

    def register(self, name: str) -> Register:
        """Return a register: one value."""
        return Register(self._replica, self.local.register(name), self._watch)

    def queue(self, name: str) -> Queue:
        """Return a queue, first in, first out."""
        return Queue(self._replica, self.local.queue(name), self._watch)

    def lock(self, name: str) -> Lock:
        """Return a lock."""
        return Lock(self._replica, self.local.lock(name), self._watch)

    def election(self, name: str) -> Election:
        """Return an election: a lock whose holder leads."""
        return Election(self.lock(name))

    def object(self, cls: type[R], name: str) -> Object[R]:
        """Return an object of one's own; the class is one of ``types``."""
        return Object(self._replica, self.local.object(cls, name), self._watch)

    async def objects(self, *, staleness: float = LINEARIZABLE) -> dict[str, str]:
        """Return the types of all objects, by name."""
        await self._replica.sync(staleness)
        return self.local.objects()

    async def sync(self) -> int:
        """Apply all that was acknowledged before this call; returns :attr:`position`."""
        await self._replica.sync()
        return self.position

    async def transact(
        self, body: Callable[[Transaction], Any], *, attempts: int = ATTEMPTS, id: str | None = None
    ) -> Any:
        """Run a function in a transaction; see :meth:`zlog.objects.Space.transact`.

        The function may be a coroutine function.
        """
        if attempts < 1:
            raise ValueError(f"at least one attempt is needed, not {attempts}")
        replica = self._replica
        replica.check()
        attempt = 0
        fresh = id is not None
        if id is not None:
            attempt = await self._known(check_id(id))
        name = replica.new_id() if id is None else id
        failed: Conflict | None = None
        for tried in range(attempts):
            if tried:
                await replica.port.backoff(min(tried, 6))
                await replica.sync()
                fresh = True
            attempt += 1
            txn = TransactionState(replica, name, attempt)
            try:
                value = body(Transaction(txn))
                if value is not None and inspect.isawaitable(value):
                    value = await value
                if txn.read_only:
                    await self._confirm(txn, fresh=fresh)
                    return value
                txn.validate()
            except Conflict as error:
                failed = error
                continue
            except Exception:
                try:  # it may have seen what is over
                    await self._confirm(txn, fresh=fresh)
                except Conflict as error:
                    failed = error
                    continue
                raise
            outcome = await txn.commit()
            if outcome.code == "committed" or (outcome.committed and id is None):
                return value
            if outcome.code == "repeated":  # another one may have used the id
                attempt = await self._known(name)
            failed = self._refused(outcome)
        assert failed is not None
        raise failed

    async def _known(self, id: str) -> int:
        """Return which attempt at an id was decided last.

        Raises:
            AlreadyCommitted: it was committed.
        """
        await self._replica.sync()
        known = self._replica.machine.decided.find(id)
        if known is not None and known.code == "committed":
            raise AlreadyCommitted(
                f"transaction {id!r} was committed at {known.position} already",
                position=known.position,
            )
        return 0 if known is None else known.attempt

    async def _confirm(self, txn: TransactionState, *, fresh: bool) -> None:
        """Raise Conflict unless what was read is what the log says by now."""
        if not fresh:
            await self._replica.sync()
            txn.validate()

    def _refused(self, outcome: Outcome) -> Conflict:
        """Return why a transaction is to be tried again; raises what refuses it for good."""
        if outcome.error is not None:
            raise outcome.error
        if outcome.code == "late":
            return Conflict("it began before what the space remembers", items=())
        return conflict(outcome.items)

    def transaction(self) -> TransactionContext:
        """Begin a transaction that is committed at the end of ``async with``, once."""
        return TransactionContext(self)

    async def at(self, when: int | datetime) -> Views:
        """Return the space as it was; see :meth:`zlog.objects.Space.at`."""
        if not isinstance(self._replica.failed, Stopped):  # whose past can still be read
            self._replica.check()
        port = self._replica.port
        if isinstance(when, datetime):
            end = await port.find_time(when)
        else:
            end = when + 1
            await port.check_reached("look at", when)
        return Views(await self._past(end))

    async def _past(self, end: int) -> Replica:
        """Return a replica of its own that has applied all below a position, and no more."""
        replica = self._replica
        machine = await restored(replica.port, replica.name, replica.types, end)
        if machine is None:
            machine, first = await oldest(replica.port, replica.name, replica.types)
            if machine is None or (machine.position > end and not first):
                raise PastLost(
                    f"space {self.name!r} has no checkpoint from before {end} that can be read",
                    resume=None if machine is None else machine.position,
                )
        past = Replica(replica.port, replica.name, machine, replica.types)
        await past.play_to(end)
        if past.overtaken:  # by a trim meanwhile: it shows what came later
            return await self._past(end)
        return past

    def watch(
        self,
        object: str | None = None,
        *,
        key: str | None = None,
        prefix: str | None = None,
        start: int | None = None,
        events: int = WATCH_EVENTS,
    ) -> Watch:
        """Watch an object, or all; see :meth:`zlog.objects.Space.watch`."""
        return self._watch(object, key, prefix, start, events)

    def _watch(
        self,
        object: str | None,
        key: str | None,
        prefix: str | None,
        start: int | None,
        events: int,
    ) -> Watch:
        self._replica.check()
        if key is not None and prefix is not None:
            raise ValueError("a key is watched, or a prefix")
        if events < 1:
            raise ValueError(f"a watch keeps at least one event, not {events}")
        one = None if key is None else (check_key(key), f"{key}\0")
        first, end = one or bounds(prefix, None, None)
        wanted = Filter(object, None if key is None and prefix is None else first, end)
        return Watch(self._replica, wanted, start, events, self._past)

    async def checkpoint(self, *, trim: bool = False) -> int:
        """Write a checkpoint; see :meth:`zlog.objects.Space.checkpoint`."""
        return await write_checkpoint(self._replica, trim=trim)

    async def close(self) -> None:
        """End it, and all calls: see :meth:`zlog.objects.Space.close`."""
        self._replica.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} in log {self._replica.log!r}>"


class TransactionContext(ProcessBound):
    """A transaction that is committed at the end of its block, once.

    Raises, at the end: Conflict, if others have changed what it has read.
    """

    def __init__(self, space: Space) -> None:
        """Wrap a space; programs call ``transaction``."""
        self._space = space
        self._txn: TransactionState | None = None

    async def __aenter__(self) -> Transaction:
        await self._space.sync()
        replica = self._space._replica
        self._txn = TransactionState(replica, replica.new_id(), 1)
        return Transaction(self._txn)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        txn = self._txn
        assert txn is not None
        if error is not None or txn.read_only:
            return
        outcome = await txn.commit()
        if outcome.code != "committed" and not outcome.committed:
            raise self._space._refused(outcome)


async def begin(
    port: LogPort, name: str, types: Iterable[type[Replicated]], *, create: bool
) -> Replica:
    """Return a replica that is up to date; see :meth:`zlog.objects.Space.open`."""
    check_space_name(name)
    classes = check_types(types)
    check_log(port.options, port.log)
    machine = await _first_state(port, name, classes, create=create)
    replica = Replica(port, name, machine, classes)
    await replica.sync()
    return replica


async def _first_state(
    port: LogPort, name: str, types: Mapping[str, type[Replicated]], *, create: bool
) -> Machine:
    """Return the state of the newest checkpoint; of a new space an empty one."""
    tail = await port.tail()
    machine = await restored(port, name, types)
    if machine is not None:
        return machine
    log = port.log
    no_checkpoint = PastLost(f"space {name!r} of log {log!r} has no checkpoint that can be read")
    cursor = await port.cursor(cursor_name(name))
    entries = port.newest(Tags.of(name).space)
    while (items := await entries.next()) is not None:
        for item in items:
            if isinstance(item, Entry):
                raise no_checkpoint
            if cursor is not None and item.kind in HIDING:  # all entries of the space may be lost
                raise no_entry(item, log)
    if cursor is not None and cursor < port.trim_point:
        raise no_checkpoint
    if not create:
        raise SpaceNotFound(f"log {log!r} has no space {name!r}")
    await begin_space(port, name, tail)
    return Machine(types, tail)


def check_id(id: str) -> str:
    """Return a transaction's id.

    Raises:
        ValueError: it is empty or too long.
    """
    if not isinstance(id, str) or not 0 < len(id.encode()) <= ID_BYTES_MAX:
        raise ValueError(f"an id is text of 1 to {ID_BYTES_MAX} bytes in UTF-8, not {id!r}")
    return id
