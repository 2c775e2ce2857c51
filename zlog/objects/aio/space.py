"""A space of objects in a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from zlog.aio.log import Log
from zlog.aio.opening import Opening
from zlog.extension import AsyncioPort, ProcessBound
from zlog.extension import drive_aio as drive
from zlog.objects._checkpoint import write_checkpoint
from zlog.objects._replica import LINEARIZABLE, Replica
from zlog.objects._space import ATTEMPTS, at, begin, refused, transact, watching
from zlog.objects._states import Replicated
from zlog.objects._transaction import Transaction, TransactionState
from zlog.objects._views import Views
from zlog.objects._watch import WATCH_EVENTS
from zlog.objects.aio.handles import Counter, Map, Object, Queue, Register, Set
from zlog.objects.aio.locks import Election, Lock
from zlog.objects.aio.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Self

R = TypeVar("R", bound=Replicated)
T = Any  # what a function returns, or a coroutine function when it is awaited


class Space(ProcessBound):
    """Objects that all clients of a log share: replicated, durable, linearizable, transactional.

    Each client keeps the whole state in memory and plays the log's entries to it. A space has one
    tag of the log, so other spaces and other uses may share the log. It belongs to one event loop.

    Calls take as long as the time-outs of the log's handle let them.

    Attributes:
        local: reads that wait for nothing, of what this process has applied so far.

    Raises, from every method that reads or writes: Stopped if an entry can't be applied; PastLost
    if the log was trimmed beyond what this client has; and what the log raises.
    """

    def __init__(self, replica: Replica) -> None:
        """Wrap the logic; programs call :meth:`open`."""
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
        """Open a space, and bring it up to date: the newest checkpoint, and what follows it.

        Args:
            log: where; it stays open when the space is closed.
            name: 1 to 109 letters, digits, ``_``, ``.`` or ``-``.
            types: classes of all user-defined types that the space has objects of.
            create: make the space if there is none.

        Raises:
            SpaceNotFound: there is none, and ``create`` is not set.
            UnsuitableLog: the log's retention removes entries that a space needs.
            PastLost: the log was trimmed beyond what the space needs.
            Stopped: an entry can't be applied, such as one of a type that is not in ``types``.
        """
        return Opening(cls._open(log, name, types, create), cls.close)

    @classmethod
    async def _open(
        cls, log: Log, name: str, types: Iterable[type[Replicated]], create: bool
    ) -> Self:
        return cls(await drive(begin(AsyncioPort(log), name, types, create=create)))

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
        return Map(self._replica, self.local.map(name))

    def set(self, name: str) -> Set:
        """Return a set of text."""
        return Set(self._replica, self.local.set(name))

    def counter(self, name: str) -> Counter:
        """Return a counter."""
        return Counter(self._replica, self.local.counter(name))

    def register(self, name: str) -> Register:
        """Return a register: one value."""
        return Register(self._replica, self.local.register(name))

    def queue(self, name: str) -> Queue:
        """Return a queue, first in, first out."""
        return Queue(self._replica, self.local.queue(name))

    def lock(self, name: str) -> Lock:
        """Return a lock."""
        return Lock(self._replica, self.local.lock(name))

    def election(self, name: str) -> Election:
        """Return an election: a lock whose holder leads."""
        return Election(self.lock(name))

    def object(self, cls: type[R], name: str) -> Object[R]:
        """Return an object of one's own; the class is one of ``types``."""
        return Object(self._replica, self.local.object(cls, name))

    async def objects(self, *, staleness: float = LINEARIZABLE) -> dict[str, str]:
        """Return the types of all objects, by name."""
        await drive(self._replica.sync(staleness))
        return self.local.objects()

    async def sync(self) -> int:
        """Apply all that was acknowledged before this call; returns :attr:`position`."""
        await drive(self._replica.sync())
        return self.position

    async def transact(
        self,
        body: Callable[[Transaction], T],
        *,
        attempts: int = ATTEMPTS,
        id: str | None = None,
    ) -> T:
        """Run a function in a transaction, and return what it returns.

        The transaction takes effect as a whole at one moment, or not at all. Where another one
        changes what it has read, the function runs again, after a pause that grows. What it
        raises ends the transaction without effect. One that writes nothing appends nothing.

        Args:
            body: gets the transaction. It may run several times, so it does nothing else.
                It may be a coroutine function.
            attempts: how often it may run.
            id: a name for what it does, for callers that may die and try again: of all
                transactions with one id, one takes effect. The space remembers the 65,536 that
                were decided last.

        Raises:
            Conflict: none of the attempts was without one.
            AlreadyCommitted: a transaction of this id was committed before.
            OutcomeUnknown: the log did not answer in time; with an ``id``, try again.
            Rejected: an object refuses a command.
        """
        result: T = await drive(transact(self._replica, body, attempts, id))
        return result

    def transaction(self) -> TransactionContext:
        """Begin a transaction that is committed at the end of ``async with``, once."""
        return TransactionContext(self._replica)

    async def at(self, when: int | datetime) -> Views:
        """Return the space as it was, to be read; from a checkpoint before that.

        Args:
            when: right after the entry at a position, which is applied: what the space shows now is
                ``at(space.position - 1)``. Or before the first entry that is not older than a time,
                by the clocks of the writers (:meth:`zlog.aio.Log.find_time`).

        Raises:
            PastLost: the log was trimmed, and has no checkpoint from before.
            BeyondTail: the position was not handed out yet.
        """
        return await drive(at(self._replica, when))

    def watch(
        self,
        object: str | None = None,
        *,
        key: str | None = None,
        prefix: str | None = None,
        start: int | None = None,
        events: int = WATCH_EVENTS,
    ) -> Watch:
        """Watch what changes: an iterator of an event for each entry, none left out, in order.

        Args:
            object: only of this object.
            key: only this key of maps and sets.
            prefix: only keys that begin so.
            start: from this position on; None: what this client applies from now on. To go on
                after an event, its ``position + 1``.
            events: how many are kept for a watch that lags. One that lags more reads the log by
                itself, with a state of its own, until it has caught up.
        """
        return Watch(watching(self._replica, object, key, prefix, start, events))

    async def checkpoint(self, *, trim: bool = False) -> int:
        """Write a checkpoint into the log; new clients begin there.

        A client that dies while it writes one leaves pieces that count for nothing.

        Args:
            trim: trim the log as far as no cursor holds it, that of this space having moved.
                Entries of others that no cursor protects go, too.

        Returns:
            The position below which this space needs nothing any more.
        """
        return await drive(write_checkpoint(self._replica, trim=trim))

    async def close(self) -> None:
        """End it: watches end, and locks are renewed no more. The log stays open.

        Later calls of the space and its objects raise StoreUnavailable. What ``at`` has returned
        can still be read.
        """
        self._replica.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<zlog.objects.aio.Space {self.name!r}>"


class TransactionContext(ProcessBound):
    """A transaction that is committed at the end of its block, once.

    Raises, at the end: Conflict, if others have changed what it has read.
    """

    def __init__(self, replica: Replica) -> None:
        """Wrap a replica; programs call ``transaction``."""
        self._replica = replica
        self._txn: TransactionState | None = None

    async def __aenter__(self) -> Transaction:
        await drive(self._replica.sync())
        self._txn = TransactionState(self._replica, self._replica.new_id(), 1)
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
        outcome = await drive(txn.commit())
        if outcome.code != "committed" and not outcome.committed:
            raise refused(outcome)
