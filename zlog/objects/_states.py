"""The states of objects, and how commands change them, without I/O, clocks or randomness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec

from zlog.objects._pieces import list_parts, map_parts
from zlog.objects._records import encode_canonical, given, owned
from zlog.objects._sorted import SortedKeys
from zlog.objects.errors import WrongType

NEVER = -1
"""The version of a missing object or key."""

Parts = Callable[[], Iterator[Any]]
"""Makes the parts of a state for a checkpoint. Later changes do not affect them."""


class Replicated(ABC):
    """The base class of user-defined types, whose state is changed by commands.

    Every replica creates the object without arguments and applies the same commands in the same
    order. So :meth:`apply` must depend only on the state and the command, and never on the time,
    random numbers, the environment, or the order of a set.

    Attributes:
        type_name: the name of the type in the log; by default the class's name.
        version: the version of commands and snapshots. Increase it if you add a command that older
            code can't apply: older replicas then stop at it, instead of applying it in another way.
            The class must accept the commands and snapshots of all older versions.
        position: the position of the entry that is being applied, the same for all commands of a
            transaction. It is -1 while a transaction tries the command before its commit.
    """

    type_name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    position: int = NEVER

    @abstractmethod
    def apply(self, command: Any) -> Any:
        """Apply a command to the state, and return a result for the client that sent the command.

        The method may keep or change ``command``. Lists and dictionaries in the result may be parts
        of the state, since the client gets copies. Any other mutable value must be copied.

        Raises:
            Rejected: the object refuses the command. The state must not have changed.
        """

    @abstractmethod
    def snapshot(self) -> Any:
        """Return the state as a JSON value, which must be the same for equal states."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Set the state to a value that :meth:`snapshot` of this or an older version returned."""


def type_name(cls: type[Replicated]) -> str:
    """Return the name of a type in the log."""
    return cls.type_name or cls.__name__


class Change(NamedTuple):
    """A change that an entry made to an object.

    Attributes:
        object: the name of the object.
        key: the changed key of a map or set; None for the object as a whole.
        value: the new value. For a lock, this is the holder; for a user-defined type, the command.
        deleted: whether the key, or the first item of a queue, was removed.
    """

    object: str
    key: str | None
    value: Any
    deleted: bool = False


class State:
    """The state of one object.

    Attributes:
        kind: the type's name in the log.
        class_version: see :class:`Replicated`.
        version: the position of the last change; ``NEVER`` if there was none.
    """

    __slots__ = ("version",)

    kind: ClassVar[str]
    class_version = 1

    def __init__(self) -> None:
        self.version = NEVER

    def apply(self, position: int, command: Any) -> Any:
        """Apply a command; returns its result. Raises Rejected, and then changes nothing."""
        raise NotImplementedError

    def version_of(self, _key: str | None) -> int:
        """Return the version of a key, or of the whole object."""
        return self.version

    def change(self, name: str, command: Any, result: Any) -> Change | None:
        """Return the change that a command made, for watches."""
        raise NotImplementedError

    def freeze(self) -> Parts:
        """Return a function that yields the parts of the state as it is now."""
        raise NotImplementedError

    def load(self, part: msgspec.Raw) -> None:
        """Load a part of a state."""
        raise NotImplementedError

    def clone(self) -> State:
        """Return a copy, which a transaction may change."""
        copy = type(self)()
        for part in self.freeze()():
            copy.load(msgspec.Raw(msgspec.msgpack.encode(part)))
        copy.version = self.version
        return copy


Cell = tuple[int, Any]
"""A key's version and value."""

_cells = msgspec.msgpack.Decoder(dict[str, Cell])


class MapState(State):
    """Keys with values. The command ``[key, value]`` puts a key, and ``[key]`` deletes it."""

    __slots__ = ("_order", "cells")

    kind = "map"

    def __init__(self) -> None:
        super().__init__()
        self.cells: dict[str, Cell] = {}
        self._order: SortedKeys | None = None  # created when a range is first read

    def apply(self, position: int, command: Any) -> Any:
        key = command[0]
        if type(key) is not str:
            raise TypeError(f"a key must be a string, not {type(key).__name__}")
        if len(command) == 2:
            if self._order is not None and key not in self.cells:
                self._order.add(key)
            self.cells[key] = (position, command[1])
            self.version = position
            return None
        if self.cells.pop(key, None) is None:
            return False
        if self._order is not None:
            self._order.remove(key)
        self.version = position
        return True

    def version_of(self, key: str | None) -> int:
        if key is None:
            return self.version
        cell = self.cells.get(key)
        return NEVER if cell is None else cell[0]

    def keys(self, start: str, end: str | None) -> Iterator[str]:
        """Iterate over the keys of a range, in order."""
        if self._order is None:
            self._order = SortedKeys(self.cells)
        return self._order.between(start, end)

    def count_unchanged(self, start: str, end: str | None, snapshot: int) -> int | None:
        """Return the number of keys in a range; None if one was put at ``snapshot`` or later."""
        count = 0
        cells = self.cells
        for key in self.keys(start, end):
            if cells[key][0] >= snapshot:
                return None
            count += 1
        return count

    def change(self, name: str, command: Any, result: Any) -> Change | None:
        if len(command) == 2:
            return Change(name, command[0], command[1])
        return Change(name, command[0], None, True) if result else None

    def freeze(self) -> Parts:
        cells = self.cells.copy()
        return lambda: map_parts(cells.items())

    def load(self, part: msgspec.Raw) -> None:
        self.cells.update(_cells.decode(part))
        self._order = None


class SetState(MapState):
    """Members: keys whose value is true."""

    __slots__ = ()

    kind = "set"


COUNTER_MIN, COUNTER_MAX = -(2**63), 2**63 - 1


class CounterState(State):
    """A number. The command ``n`` adds n. It never passes the limits of 64 bits."""

    __slots__ = ("value",)

    kind = "counter"

    def __init__(self) -> None:
        super().__init__()
        self.value = 0

    def apply(self, position: int, command: Any) -> int:
        if type(command) is not int:
            raise TypeError("a counter accepts only integers")
        self.value = max(COUNTER_MIN, min(COUNTER_MAX, self.value + command))
        self.version = position
        return self.value

    def change(self, name: str, _command: Any, _result: Any) -> Change | None:
        return Change(name, None, self.value)

    def freeze(self) -> Parts:
        value = self.value
        return lambda: iter([value])

    def load(self, part: msgspec.Raw) -> None:
        self.value = msgspec.msgpack.decode(part, type=int)


class RegisterState(State):
    """One value. The command ``value`` sets it."""

    __slots__ = ("is_set", "value")

    kind = "register"

    def __init__(self) -> None:
        super().__init__()
        self.is_set = False
        self.value: Any = None

    def apply(self, position: int, command: Any) -> None:
        self.is_set = True
        self.value = command
        self.version = position

    def change(self, name: str, _command: Any, _result: Any) -> Change | None:
        return Change(name, None, self.value)

    def freeze(self) -> Parts:
        state = [self.value] if self.is_set else []
        return lambda: iter([state])

    def load(self, part: msgspec.Raw) -> None:
        state = msgspec.msgpack.decode(part, type=list)
        self.is_set = bool(state)
        self.value = state[0] if state else None


class QueueState(State):
    """A queue, first in, first out. The command ``[value]`` pushes a value, and ``[]`` pops one."""

    __slots__ = ("items",)

    kind = "queue"

    def __init__(self) -> None:
        super().__init__()
        self.items: deque[Any] = deque()

    def apply(self, position: int, command: Any) -> list[Any] | None:
        if type(command) is not list or len(command) > 1:
            raise TypeError("a queue's command must be [value] to push or [] to pop")
        if command:
            self.items.append(command[0])
            self.version = position
            return None
        if not self.items:
            return None
        self.version = position
        return [self.items.popleft()]

    def change(self, name: str, command: Any, result: Any) -> Change | None:
        if command:
            return Change(name, None, command[0])
        return None if result is None else Change(name, None, result[0], True)

    def freeze(self) -> Parts:
        items = list(self.items)
        return lambda: list_parts(items)

    def load(self, part: msgspec.Raw) -> None:
        self.items.extend(msgspec.msgpack.decode(part, type=list))


class UserState(State):
    """The state of an object of a user-defined type."""

    __slots__ = ("class_version", "kind", "subject")

    def __init__(self, cls: type[Replicated]) -> None:
        super().__init__()
        self.subject = cls()
        self.kind = type_name(cls)  # type: ignore[misc]
        self.class_version = cls.version

    def apply(self, position: int, command: Any) -> Any:
        self.subject.position = position
        result = self.subject.apply(given(command))  # a copy, which it may keep or change
        self.version = position
        return result

    def change(self, name: str, command: Any, _result: Any) -> Change | None:
        return Change(name, None, command)

    def freeze(self) -> Parts:
        encoded = self.encoded()
        return lambda: iter([encoded])

    def load(self, part: msgspec.Raw) -> None:
        self.subject.restore(msgspec.msgpack.decode(part))

    def clone(self) -> State:
        copy = UserState(type(self.subject))
        copy.load(self.encoded())
        copy.version = self.version
        return copy

    def encoded(self) -> msgspec.Raw:
        """Return the state in the form of a checkpoint, which is the same for equal states."""
        return msgspec.Raw(encode_canonical(owned(self.subject.snapshot())))


def typed(objects: Mapping[str, State], name: str, kind: str) -> State | None:
    """Return an object, or None if it does not exist. Raises WrongType if it has another type."""
    state = objects.get(name)
    if state is not None and state.kind != kind:
        raise WrongType(f"{name!r} is a {state.kind}, not a {kind}")
    return state
