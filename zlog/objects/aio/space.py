"""A space of objects in a log."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from datetime import datetime
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
T = Any  # the result of a function or of a coroutine function


class Space(ProcessBound):
    """A set of named objects that all clients of a log share.

    The objects are replicated, durable, linearizable and transactional. Each client keeps the whole
    state in memory and applies the log's entries to it. A space tags its entries, so other spaces
    and other programs can share the log. It belongs to one event loop. Calls use the time-out of
    the log's handle.

    Attributes:
        local: views that read the state that this process has applied so far, without waiting.

    Besides the log's errors, methods that read or write raise Stopped if an entry can't be applied,
    and PastLost if the log was trimmed above this client's position.
    """

    def __init__(self, replica: Replica) -> None:
        """Wrap a replica; programs call :meth:`open`."""
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
        """Open a space, and apply the newest checkpoint and all later entries.

        Args:
            log: the log, which stays open when the space is closed.
            name: 1 to 109 letters, digits, ``_``, ``.`` or ``-``.
            types: the classes of all user-defined types in the space.
            create: whether to create the space if it does not exist.

        Raises:
            SpaceNotFound: the space does not exist, and ``create`` is not set.
            UnsuitableLog: the log's retention removes entries that a space needs.
            PastLost: entries that the space needs were trimmed.
            Stopped: an entry can't be applied, for example because its type is not in ``types``.
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
        """The position below which all entries of the log are applied."""
        return self._replica.machine.position

    def map(self, name: str) -> Map:
        """Return a map of text to values."""
        return Map(self._replica, self.local.map(name))

    def set(self, name: str) -> Set:
        """Return a set of text."""
        return Set(self._replica, self.local.set(name))

    def counter(self, name: str) -> Counter:
        """Return a counter."""
        return Counter(self._replica, self.local.counter(name))

    def register(self, name: str) -> Register:
        """Return a register, which holds one value."""
        return Register(self._replica, self.local.register(name))

    def queue(self, name: str) -> Queue:
        """Return a queue, first in, first out."""
        return Queue(self._replica, self.local.queue(name))

    def lock(self, name: str) -> Lock:
        """Return a lock."""
        return Lock(self._replica, self.local.lock(name))

    def election(self, name: str) -> Election:
        """Return an election: a lock whose holder is the leader."""
        return Election(self.lock(name))

    def object(self, cls: type[R], name: str) -> Object[R]:
        """Return an object of a user-defined type, a class that ``types`` must contain."""
        return Object(self._replica, self.local.object(cls, name))

    async def objects(self, *, staleness: float = LINEARIZABLE) -> dict[str, str]:
        """Return the types of all objects, by name."""
        await drive(self._replica.sync(staleness))
        return self.local.objects()

    async def sync(self) -> int:
        """Apply all entries acknowledged before this call; returns :attr:`position`."""
        await drive(self._replica.sync())
        return self.position

    async def transact(
        self,
        body: Callable[[Transaction], T],
        *,
        attempts: int = ATTEMPTS,
        id: str | None = None,
    ) -> T:
        """Run a function in a transaction, and return the function's result.

        The transaction takes effect atomically, or not at all. If another client changes a value
        that it has read, the function runs again after a pause, which grows with each attempt. If
        the function raises an exception, the transaction has no effect.

        Args:
            body: a function that gets the transaction. It may run several times, so it must not
                have any other effects.
                It may be a coroutine function.
            attempts: how many times the function may run.
            id: an id for work that a caller may repeat after a crash. Of all transactions with the
                same id, only one takes effect. The space remembers the last 65,536 ids.

        Raises:
            Conflict: all attempts had conflicts.
            AlreadyCommitted: a transaction with this id was committed before.
            OutcomeUnknown: the log did not answer in time; with an ``id``, repeat the call.
            Rejected: an object refuses a command.
        """
        result: T = await drive(transact(self._replica, body, attempts, id))
        return result

    def transaction(self) -> TransactionContext:
        """Begin a transaction that is committed once, at the end of ``async with``."""
        return TransactionContext(self._replica)

    async def at(self, when: int | datetime) -> Views:
        """Return an earlier state of the space, for reading.

        Args:
            when: a position or a time. A position means the state after its entry, so
                ``at(space.position - 1)`` is the present state. A time means the state before the
                first entry appended at or after it, by the writers' clocks.

        Raises:
            PastLost: the log was trimmed, and all checkpoints are newer.
            BeyondTail: the position is not below the log's tail.
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
        """Return an iterator over changes. Each event contains the changes that one entry made.

        Args:
            object: report only changes of this object.
            key: report only this key of maps and sets.
            prefix: report only keys with this prefix.
            start: the first position; None means from now on. To continue after an event, pass its
                ``position + 1``.
            events: the maximum number of events that are buffered for a slow consumer. If there are
                more, the watch rereads the log until it has caught up.
        """
        return Watch(watching(self._replica, object, key, prefix, start, events))

    async def checkpoint(self, *, trim: bool = False) -> int:
        """Write a checkpoint into the log, so that new clients need not read all earlier entries.

        Args:
            trim: whether to move the space's cursor and trim the log up to its lowest cursor. This
                also removes entries of other programs that no cursor protects.

        Returns:
            The position below which this space no longer needs entries.
        """
        return await drive(write_checkpoint(self._replica, trim=trim))

    async def close(self) -> None:
        """Close the space and its watches, and stop renewing locks. The log stays open.

        Later calls on the space and its objects raise StoreUnavailable. States that ``at`` has
        returned can still be read.
        """
        self._replica.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: builtins.object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<zlog.objects.aio.Space {self.name!r}>"


class TransactionContext(ProcessBound):
    """A context manager for a transaction that is tried once and commits at the end of the block.

    If a value that the transaction has read has changed, the end of the block raises Conflict.
    """

    def __init__(self, replica: Replica) -> None:
        """Wrap a replica; programs call the method ``transaction`` of a space."""
        self._replica = replica
        self._txn: TransactionState | None = None

    async def __aenter__(self) -> Transaction:
        await drive(self._replica.sync())
        self._txn = TransactionState(self._replica, self._replica.new_id(), 1)
        return Transaction(self._txn)

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        txn = self._txn
        assert txn is not None
        if kind is not None or txn.read_only:
            return
        outcome = await drive(txn.commit())
        if outcome.code != "committed" and not outcome.committed:
            raise refused(outcome)
