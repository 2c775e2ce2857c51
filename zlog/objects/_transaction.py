"""Transactions: their reads and writes, and their commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from zlog.extension import ProcessBound
from zlog.objects._decided import Outcome
from zlog.objects._machine import new_state
from zlog.objects._records import Range, Read, check_key, check_number, given, owned
from zlog.objects._replica import Replica
from zlog.objects._states import NEVER, Cell, MapState, Replicated, State, type_name, typed
from zlog.objects._views import (
    CounterView,
    MapView,
    ObjectView,
    QueueView,
    RegisterView,
    SetView,
    cells_of,
)
from zlog.objects.errors import Conflict, LockLost

R = TypeVar("R", bound=Replicated)
T = TypeVar("T")

_DELETED = object()


class TransactionState(ProcessBound):
    """Collects what a transaction has read and written, and commits it."""

    def __init__(self, replica: Replica, id: str, attempt: int) -> None:
        self.id = id
        self._replica = replica
        self._attempt = attempt
        self._machine = replica.machine
        self._snapshot = replica.machine.position
        self._reads: dict[tuple[str, str | None], int] = {}
        self._ranges: dict[tuple[str, str, str | None], int] = {}
        self._ops: list[tuple[Any, ...]] = []
        self._written: dict[str, dict[str, Any]] = {}
        self._copies: dict[str, State] = {}

    def require(self, lock: str, token: int) -> None:
        """See :meth:`Transaction.require`."""
        with self._replica.port.lock:
            state = typed(self._current(), lock, "lock")
            found = NEVER if state is None else state.version_of("holder")
            self._reads[lock, "holder"] = found
        if found != token:
            raise LockLost(f"lock {lock!r} is not held under token {token}")

    def cell(self, name: str, kind: str, key: str) -> Cell | None:
        """See ``Source``."""
        check_key(key)
        written = self._written.get(name)
        if written is not None and key in written:
            value = written[key]
            return None if value is _DELETED else (NEVER, value)
        with self._replica.port.lock:
            objects = self._current()
            state = typed(objects, name, kind)
            cell = state.cells.get(key) if isinstance(state, MapState) else None
            self._reads[name, key] = NEVER if cell is None else cell[0]
        return cell

    def cells(self, name: str, kind: str, start: str, end: str | None) -> list[tuple[str, Cell]]:
        """See ``Source``."""
        with self._replica.port.lock:
            found = cells_of(typed(self._current(), name, kind), start, end)
            self._ranges[name, start, end] = len(found)
        written = self._written.get(name)
        if not written:
            return found
        merged = dict(found)
        for key, value in written.items():
            if value is _DELETED:
                merged.pop(key, None)
            elif key >= start and (end is None or key < end):
                merged[key] = (NEVER, value)
        return sorted(merged.items(), key=lambda item: item[0])

    def count(self, name: str, kind: str) -> int:
        """See ``Source``."""
        return len(self.cells(name, kind, "", None))

    def look(self, name: str, kind: str, at: Callable[[Any], T]) -> T:
        """See ``Source``."""
        with self._replica.port.lock:
            if any(op[1] == name for op in self._ops):
                return at(self._copy(name, kind))
            return at(self._state(name, kind))

    def _state(self, name: str, kind: str) -> State | None:
        state = typed(self._current(), name, kind)
        self._reads[name, None] = NEVER if state is None else state.version
        return state

    def _current(self) -> dict[str, State]:
        """Return the objects, after checking that earlier reads still hold."""
        self._replica.check()
        self.validate()
        return self._machine.objects

    def validate(self) -> None:
        """Check that nothing that was read has changed, and continue with the newest state.

        Raises:
            Conflict: a value that was read has changed.
        """
        with self._replica.port.lock:
            machine = self._replica.machine
            if machine is self._machine and machine.position == self._snapshot:
                return
            items = machine.invalid(self._read_set(), self._range_set(), self._snapshot)
            if items:
                raise conflict(items)
            self._machine, self._snapshot = machine, machine.position

    def _read_set(self) -> list[Read]:
        return [(name, key, version) for (name, key), version in self._reads.items()]

    def _range_set(self) -> list[Range]:
        return [(*which, count) for which, count in self._ranges.items()]

    def write_cell(self, name: str, kind: str, key: str, *value: Any) -> None:
        """Put a key, or delete it."""
        check_key(key)
        kept = [owned(each) for each in value]
        self._check_type(name, kind)
        self._written.setdefault(name, {})[key] = kept[0] if kept else _DELETED
        self._ops.append((kind, name, (key, *kept)))

    def write(self, name: str, kind: str, command: Any, version: int = 1) -> None:
        """Send a command without a result."""
        self._check_type(name, kind)
        self._ops.append((kind, name, command, version))
        copy = self._copies.get(name)
        if copy is not None:
            copy.apply(NEVER, command)

    def call(self, name: str, kind: str, command: Any, version: int = 1) -> Any:
        """Send a command; returns its result, which will be the same at the commit."""
        copy = self._copy(name, kind)
        result = copy.apply(NEVER, command)
        self._ops.append((kind, name, command, version))
        return given(result)

    def _copy(self, name: str, kind: str) -> State:
        """Return the transaction's copy of an object, with the transaction's writes."""
        with self._replica.port.lock:
            state = self._state(name, kind)
            copy = self._copies.get(name)
            if copy is None:
                if state is None:
                    copy = new_state(self._replica.types, kind, name, self._snapshot)
                else:
                    copy = state.clone()
                for op in self._ops:
                    if op[1] == name:
                        copy.apply(NEVER, op[2])
                self._copies[name] = copy
        return copy

    def _check_type(self, name: str, kind: str) -> None:
        self._replica.check()
        typed(self._replica.machine.objects, name, kind)

    @property
    def read_only(self) -> bool:
        """Whether it has written nothing."""
        return not self._ops

    async def commit(self) -> Outcome:
        """Append the transaction, and return its outcome."""
        return await self._replica.commit(
            self._ops, self.id, self._attempt, self._snapshot, self._read_set(), self._range_set()
        )


def conflict(items: Any) -> Conflict:
    """Return the error that names the changed items."""
    names = ", ".join(
        f"{name!r}" if what is None else f"{name!r} at {what!r}" for name, what in items[:5]
    )
    return Conflict(f"values that the transaction has read have changed: {names}", items=items)


class TransactionMap(MapView):
    """A map in a transaction."""

    _source: TransactionState

    def put(self, key: str, value: Any) -> None:
        """Set the value of a key."""
        self._source.write_cell(self.name, self.kind, key, value)

    def delete(self, key: str) -> None:
        """Remove a key, if it exists."""
        self._source.write_cell(self.name, self.kind, key)


class TransactionSet(SetView):
    """A set in a transaction."""

    _source: TransactionState

    def add(self, member: str) -> None:
        """Add a member."""
        self._source.write_cell(self.name, self.kind, member, True)

    def discard(self, member: str) -> None:
        """Remove a member, if it exists."""
        self._source.write_cell(self.name, self.kind, member)


class TransactionCounter(CounterView):
    """A counter in a transaction."""

    _source: TransactionState

    def add(self, number: int = 1) -> None:
        """Add to the value."""
        self._source.write(self.name, self.kind, check_number(number))


class TransactionRegister(RegisterView):
    """A register in a transaction."""

    _source: TransactionState

    def set(self, value: Any) -> None:
        """Set the value."""
        self._source.write(self.name, self.kind, owned(value))


class TransactionQueue(QueueView):
    """A queue in a transaction."""

    _source: TransactionState

    def push(self, value: Any) -> None:
        """Append a value."""
        self._source.write(self.name, self.kind, [owned(value)])

    def pop(self, default: Any = None) -> Any:
        """Remove the first value and return it."""
        taken = self._source.call(self.name, self.kind, [])
        return default if taken is None else taken[0]


class TransactionObject(ObjectView[R]):
    """An object of a user-defined type in a transaction."""

    _source: TransactionState

    def call(self, command: Any) -> Any:
        """Send a command, and return its result.

        Raises:
            Rejected: the object refuses the command.
        """
        return self._source.call(self.name, self.kind, owned(command), self.cls.version)


class Transaction(ProcessBound):
    """A transaction: its reads and writes take effect together, or not at all.

    All reads see the state of one moment, together with the transaction's own writes. If another
    client changes a value that was read, the transaction raises Conflict at its next read or at its
    commit.

    Attributes:
        id: the transaction's id.
    """

    def __init__(self, state: TransactionState) -> None:
        """Wrap a state; programs call ``transact`` or ``transaction`` of a space."""
        self.id = state.id
        self._state = state

    def map(self, name: str) -> TransactionMap:
        """Return a map, to read and to write."""
        return TransactionMap(self._state, name)

    def set(self, name: str) -> TransactionSet:
        """Return a set, to read and to write."""
        return TransactionSet(self._state, name)

    def counter(self, name: str) -> TransactionCounter:
        """Return a counter, to read and to write. Only adding to it causes no conflict."""
        return TransactionCounter(self._state, name)

    def register(self, name: str) -> TransactionRegister:
        """Return a register, to read and to write."""
        return TransactionRegister(self._state, name)

    def queue(self, name: str) -> TransactionQueue:
        """Return a queue, to read and to write. Only pushing to it causes no conflict."""
        return TransactionQueue(self._state, name)

    def object(self, cls: type[R], name: str) -> TransactionObject[R]:
        """Return an object of a user-defined type, to read and to send commands to."""
        return TransactionObject(self._state, name, cls, type_name(cls))

    def require(self, lock: str, token: int) -> None:
        """Let the transaction commit only if the lock is still held under this token.

        Raises:
            LockLost: the lock is no longer held under the token.
        """
        self._state.require(lock, token)
