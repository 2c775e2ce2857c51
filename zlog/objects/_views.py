"""Views read objects without waiting: in a replica, in an earlier state, or in a transaction.

They return copies of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar, cast

from zlog.extension import ProcessBound, reentrant_call
from zlog.objects._locks import Holder, LockState
from zlog.objects._records import check_key, given
from zlog.objects._replica import Replica
from zlog.objects._sorted import after_prefix
from zlog.objects._states import (
    NEVER,
    Cell,
    CounterState,
    MapState,
    QueueState,
    RegisterState,
    Replicated,
    State,
    UserState,
    type_name,
    typed,
)

S = TypeVar("S", bound=State)
R = TypeVar("R", bound=Replicated)
T = TypeVar("T")


class Source(Protocol):
    """The state that views read."""

    def cell(self, name: str, kind: str, key: str) -> Cell | None:
        """Return the cell of a map or set at a key."""
        ...

    def cells(self, name: str, kind: str, start: str, end: str | None) -> list[tuple[str, Cell]]:
        """Return the cells of a map or set in a range, in key order."""
        ...

    def count(self, name: str, kind: str) -> int:
        """Return the number of keys of a map or set."""
        ...

    def look(self, name: str, kind: str, at: Callable[[Any], T]) -> T:
        """Return the result of ``at`` for an object's state, or None, which does not change."""
        ...


def cells_of(state: State | None, start: str, end: str | None) -> list[tuple[str, Cell]]:
    """Return a range of an object's cells, in key order."""
    if state is None:
        return []
    held = cast(MapState, state)
    return [(key, held.cells[key]) for key in held.keys(start, end)]


def bounds(prefix: str | None, start: str | None, end: str | None) -> tuple[str, str | None]:
    """Return the first key and the end of the range that the arguments describe.

    Raises:
        ValueError: both a prefix and a start or an end are given.
    """
    if prefix is None:
        return check_key("" if start is None else start), None if end is None else check_key(end)
    if start is not None or end is not None:
        raise ValueError("give either a prefix, or a start and an end, but not both")
    return check_key(prefix), after_prefix(prefix) if prefix else None


class View:
    """The base class of views, each of which reads one object.

    Attributes:
        name: the object's name.
        kind: the name of the object's type in the log.
    """

    kind = ""

    def __init__(self, source: Source, name: str) -> None:
        """Wrap a source; programs get views from a space or a transaction."""
        self._source = source
        self.name = name

    def _cell(self, key: str) -> Cell | None:
        return self._source.cell(self.name, self.kind, check_key(key))

    def __repr__(self) -> str:
        return f"<zlog.objects.{type(self).__name__} {self.name!r}>"


class MapView(View):
    """A map, as it is read without waiting."""

    kind = "map"

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key."""
        cell = self._cell(key)
        return default if cell is None else given(cell[1])

    def version(self, key: str) -> int:
        """Return the position of the entry that set a key, or -1."""
        cell = self._cell(key)
        return NEVER if cell is None else cell[0]

    def items(
        self, *, prefix: str | None = None, start: str | None = None, end: str | None = None
    ) -> list[tuple[str, Any]]:
        """Return all keys with their values in key order, or those in a range.

        Args:
            prefix: return only keys with this prefix.
            start: return only keys from this key on.
            end: return only keys below this key.
        """
        found = self._source.cells(self.name, self.kind, *bounds(prefix, start, end))
        return [(key, given(cell[1])) for key, cell in found]

    def keys(
        self, *, prefix: str | None = None, start: str | None = None, end: str | None = None
    ) -> list[str]:
        """Return keys in order, as :meth:`items` does."""
        found = self._source.cells(self.name, self.kind, *bounds(prefix, start, end))
        return [key for key, _ in found]

    def __getitem__(self, key: str) -> Any:
        cell = self._cell(key)
        if cell is None:
            raise KeyError(key)
        return given(cell[1])

    def __contains__(self, key: str) -> bool:
        return self._cell(key) is not None

    def __len__(self) -> int:
        return self._source.count(self.name, self.kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


class SetView(View):
    """A set of text, as it is read without waiting."""

    kind = "set"

    def members(
        self, *, prefix: str | None = None, start: str | None = None, end: str | None = None
    ) -> list[str]:
        """Return the members in order: all, or a range, as for the keys of a map."""
        found = self._source.cells(self.name, self.kind, *bounds(prefix, start, end))
        return [key for key, _ in found]

    def __contains__(self, member: str) -> bool:
        return self._cell(member) is not None

    def __len__(self) -> int:
        return self._source.count(self.name, self.kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self.members())


class CounterView(View):
    """A counter, as it is read without waiting."""

    kind = "counter"

    def get(self) -> int:
        """Return the value, at first 0."""

        def value(state: CounterState | None) -> int:
            return 0 if state is None else state.value

        return self._source.look(self.name, self.kind, value)


class RegisterView(View):
    """A register, as it is read without waiting."""

    kind = "register"

    def get(self, default: Any = None) -> Any:
        """Return its value."""

        def value(state: RegisterState | None) -> Any:
            return default if state is None or not state.is_set else given(state.value)

        return self._source.look(self.name, self.kind, value)

    def version(self) -> int:
        """Return the position of the entry that set it, or -1."""

        def version(state: State | None) -> int:
            return NEVER if state is None else state.version

        return self._source.look(self.name, self.kind, version)


class QueueView(View):
    """A queue, as it is read without waiting."""

    kind = "queue"

    def peek(self, default: Any = None) -> Any:
        """Return the first value without removing it."""

        def first(state: QueueState | None) -> Any:
            return default if state is None or not state.items else given(state.items[0])

        return self._source.look(self.name, self.kind, first)

    def items(self) -> list[Any]:
        """Return all values in order."""

        def values(state: QueueState | None) -> list[Any]:
            return [] if state is None else [given(each) for each in state.items]

        return self._source.look(self.name, self.kind, values)

    def __len__(self) -> int:

        def length(state: QueueState | None) -> int:
            return 0 if state is None else len(state.items)

        return self._source.look(self.name, self.kind, length)


class LockView(View):
    """A lock, as it is read without waiting."""

    kind = "lock"

    def holder(self) -> Holder | None:
        """Return the holder."""

        def holder(state: LockState | None) -> Holder | None:
            return None if state is None else state.holder

        return self._source.look(self.name, self.kind, holder)

    def waiting(self) -> list[Holder]:
        """Return the waiting clients in order."""

        def waiting(state: LockState | None) -> list[Holder]:
            return [] if state is None else list(state.waiting.values())

        return self._source.look(self.name, self.kind, waiting)


class ObjectView(View, Generic[R]):
    """A user-defined object, read without waiting."""

    def __init__(self, source: Source, name: str, cls: type[R], kind: str) -> None:
        """Wrap a source; programs get views from a space or a transaction."""
        super().__init__(source, name)
        self.cls = cls
        self.kind = kind

    def read(self, look: Callable[[R], T]) -> T:
        """Call ``look`` with the object, and return what this function returns.

        The function must not change the object. If the result contains parts of the object that may
        change later, the function must copy them.
        """

        def at(state: UserState | None) -> T:
            return look(self.cls() if state is None else cast(R, state.subject))

        return self._source.look(self.name, self.kind, at)


class ReplicaSource(ProcessBound):
    """Reads a replica's present state."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._lock = replica.port.lock

    def cell(self, name: str, kind: str, key: str) -> Cell | None:
        """See :class:`Source`."""
        with self._lock:
            state = self._state(name, kind)
            return None if state is None else cast(MapState, state).cells.get(key)

    def cells(self, name: str, kind: str, start: str, end: str | None) -> list[tuple[str, Cell]]:
        """See :class:`Source`."""
        with self._lock:
            return cells_of(self._state(name, kind), start, end)

    def count(self, name: str, kind: str) -> int:
        """See :class:`Source`."""
        with self._lock:
            state = self._state(name, kind)
            return 0 if state is None else len(cast(MapState, state).cells)

    def look(self, name: str, kind: str, at: Callable[[Any], T]) -> T:
        """See :class:`Source`."""
        with self._lock:
            return at(self._state(name, kind))

    def _state(self, name: str, kind: str) -> State | None:
        replica = self._replica
        if replica.failed is not None:
            raise replica.failed
        if replica.torn:  # seen by a signal handler in a call of this thread, which has the lock
            raise reentrant_call()
        return typed(replica.machine.objects, name, kind)


class Views(ProcessBound):
    """Reads of a replica's state without waiting."""

    def __init__(self, replica: Replica) -> None:
        """Wrap a replica; programs get it from a space."""
        self._replica = replica
        self._source = ReplicaSource(replica)

    @property
    def position(self) -> int:
        """The position below which the state has all entries."""
        return self._replica.machine.position

    def objects(self) -> dict[str, str]:
        """Return the types of all objects, by name."""
        with self._replica.port.lock:
            found = self._replica.machine.objects.items()
            return {name: state.kind for name, state in found}

    def map(self, name: str) -> MapView:
        """Return a map."""
        return MapView(self._source, name)

    def set(self, name: str) -> SetView:
        """Return a set."""
        return SetView(self._source, name)

    def counter(self, name: str) -> CounterView:
        """Return a counter."""
        return CounterView(self._source, name)

    def register(self, name: str) -> RegisterView:
        """Return a register."""
        return RegisterView(self._source, name)

    def queue(self, name: str) -> QueueView:
        """Return a queue."""
        return QueueView(self._source, name)

    def lock(self, name: str) -> LockView:
        """Return a lock."""
        return LockView(self._source, name)

    def object(self, cls: type[R], name: str) -> ObjectView[R]:
        """Return a user-defined object."""
        return ObjectView(self._source, name, cls, type_name(cls))
