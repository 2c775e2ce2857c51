"""Handles on the objects of a space.

Reads have an argument ``staleness``, the number of seconds by which the result may be out of date.
By default it is 0, so reads are linearizable: they include all writes that were acknowledged
before. Reads through ``local`` do not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from zlog.extension import ProcessBound
from zlog.extension import drive_aio as drive
from zlog.objects._records import check_key, check_number, owned
from zlog.objects._replica import LINEARIZABLE, Replica
from zlog.objects._space import watching
from zlog.objects._states import Replicated, State, typed
from zlog.objects._views import (
    CounterView,
    MapView,
    ObjectView,
    QueueView,
    RegisterView,
    SetView,
    View,
)
from zlog.objects._watch import WATCH_EVENTS
from zlog.objects.aio.watch import Watch

K = TypeVar("K", MapView, SetView)
R = TypeVar("R", bound=Replicated)
T = TypeVar("T")
V = TypeVar("V", bound=View)


class Handle(ProcessBound, Generic[V]):
    """The base class of handles on objects.

    Attributes:
        name: the name of the object.
        local: reads the state that this process has applied so far, without waiting.
    """

    _version = 1

    def __init__(self, replica: Replica, local: V) -> None:
        """Wrap a replica; programs call a method of a space."""
        self.name = check_key(local.name)
        self.local = local
        self._replica = replica
        self._kind = local.kind

    async def _write(self, *commands: Any) -> int:
        """Append commands in one entry, and return the entry's position.

        If this client does not have the object yet, the call also waits until the entry is applied,
        and then checks the object's type.
        """
        kind, name, replica = self._kind, self.name, self._replica
        state = self._state()
        if state is None:
            replica.check_actor()
        position = await drive(replica.write([(kind, name, command) for command in commands]))
        if state is None:
            await drive(replica.play_to(position + 1))
            self._state()
        return position

    async def _call(self, command: Any) -> Any:
        self._state()
        op = (self._kind, self.name, command, self._version)
        return await drive(self._replica.call(op))

    def _state(self) -> State | None:
        return typed(self._replica.machine.objects, self.name, self._kind)

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch the object; see :meth:`zlog.objects.aio.Space.watch`."""
        return Watch(watching(self._replica, self.name, None, None, start, events))

    def __repr__(self) -> str:
        return f"<zlog.objects.aio.{type(self).__name__} {self.name!r}>"


class Keys(Handle[K]):
    """Base class of maps and sets."""

    async def count(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return the number of keys or members."""
        await drive(self._replica.sync(staleness))
        return len(self.local)

    def watch(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        start: int | None = None,
        events: int = WATCH_EVENTS,
    ) -> Watch:
        """Watch one key, keys with a prefix, or all; see :meth:`zlog.objects.aio.Space.watch`."""
        return Watch(watching(self._replica, self.name, key, prefix, start, events))


class Map(Keys[MapView]):
    """A map of text to JSON values."""

    async def get(self, key: str, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return the value of a key."""
        await drive(self._replica.sync(staleness))
        return self.local.get(key, default)

    async def has(self, key: str, *, staleness: float = LINEARIZABLE) -> bool:
        """Return whether the map has a key."""
        await drive(self._replica.sync(staleness))
        return key in self.local

    async def items(
        self,
        *,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        staleness: float = LINEARIZABLE,
    ) -> list[tuple[str, Any]]:
        """Return keys and values in order: all, those with a prefix, or those of a range."""
        await drive(self._replica.sync(staleness))
        return self.local.items(prefix=prefix, start=start, end=end)

    async def keys(
        self,
        *,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        staleness: float = LINEARIZABLE,
    ) -> list[str]:
        """Return keys in order; the arguments are those of :meth:`items`."""
        await drive(self._replica.sync(staleness))
        return self.local.keys(prefix=prefix, start=start, end=end)

    async def put(self, key: str, value: Any) -> int:
        """Set the value of a key; returns the position of the entry."""
        return await self._write((check_key(key), owned(value)))

    async def put_many(self, items: Mapping[str, Any]) -> int:
        """Set values of keys atomically; returns the position of the entry."""
        return await self._write(*((check_key(key), owned(each)) for key, each in items.items()))

    async def delete(self, key: str) -> int:
        """Remove a key, if it exists; returns the position of the entry."""
        return await self._write((check_key(key),))


class Set(Keys[SetView]):
    """A set of text."""

    async def has(self, member: str, *, staleness: float = LINEARIZABLE) -> bool:
        """Return whether the set has a member."""
        await drive(self._replica.sync(staleness))
        return member in self.local

    async def members(
        self,
        *,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        staleness: float = LINEARIZABLE,
    ) -> list[str]:
        """Return members in order: all, those with a prefix, or those of a range."""
        await drive(self._replica.sync(staleness))
        return self.local.members(prefix=prefix, start=start, end=end)

    async def add(self, *members: str) -> int:
        """Add members; returns the position of the entry."""
        return await self._write(*((check_key(each), True) for each in members))

    async def discard(self, *members: str) -> int:
        """Remove members, if they exist; returns the position of the entry."""
        return await self._write(*((check_key(each),) for each in members))


class Counter(Handle[CounterView]):
    """A signed 64-bit number, which never passes its limits."""

    async def get(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return the value, which is 0 at first."""
        await drive(self._replica.sync(staleness))
        return self.local.get()

    async def add(self, number: int = 1) -> int:
        """Add to the value. Returns the position of the log entry that contains the addition.

        A sum below -2^63 or above 2^63 - 1 becomes that limit, without an error.
        """
        return await self._write(check_number(number))

    async def add_and_get(self, number: int = 1) -> int:
        """Add to the value, and return the value right after the addition.

        Raises:
            ResultLost: the number was added, but a trim removed the result.
        """
        value: int = await self._call(check_number(number))
        return value


class Register(Handle[RegisterView]):
    """One JSON value."""

    async def get(self, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return the value, or ``default`` if it was never set."""
        await drive(self._replica.sync(staleness))
        return self.local.get(default)

    async def set(self, value: Any) -> int:
        """Set the value; returns the position of the entry."""
        return await self._write(owned(value))


class Queue(Handle[QueueView]):
    """A queue of values, first in, first out."""

    async def push(self, *values: Any) -> int:
        """Append values; returns the position of the entry."""
        return await self._write(*([owned(each)] for each in values))

    async def pop(self, default: Any = None, *, wait: float = 0.0) -> Any:
        """Remove the first value and return it. No other client gets it.

        Args:
            default: the result if the queue is empty.
            wait: how many seconds to wait for a value.

        Raises:
            ResultLost: a value was removed, but a trim removed the result.
        """
        replica = self._replica
        port = replica.port
        until = port.monotonic() + wait
        await drive(replica.sync())
        while True:
            seen = replica.machine.position
            if len(self.local):
                taken = await self._call([])
                if taken is not None:
                    return taken[0]
            left = until - port.monotonic()
            if left <= 0:
                return default
            await drive(replica.wait(seen, left))

    async def peek(self, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return the first value without removing it."""
        await drive(self._replica.sync(staleness))
        return self.local.peek(default)

    async def items(self, *, staleness: float = LINEARIZABLE) -> list[Any]:
        """Return all values in order."""
        await drive(self._replica.sync(staleness))
        return self.local.items()

    async def count(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return the number of values."""
        await drive(self._replica.sync(staleness))
        return len(self.local)


class Object(Handle[ObjectView[R]]):
    """An object of a user-defined type, a class that extends :class:`Replicated`."""

    def __init__(self, replica: Replica, local: ObjectView[R]) -> None:
        """Wrap a replica and its view of an object; programs call ``object`` of a space."""
        super().__init__(replica, local)
        cls = local.cls
        if replica.types.get(self._kind) is not cls:
            raise ValueError(
                f"{cls.__name__} is not among the `types` that the space was opened with"
            )
        self._version = cls.version

    async def call(self, command: Any) -> Any:
        """Send a command, and return the result of ``apply``.

        Raises:
            Rejected: the object refuses the command.
            ResultLost: the command took effect, but a trim removed the result.
        """
        return await self._call(owned(command))

    async def read(self, look: Callable[[R], T], *, staleness: float = LINEARIZABLE) -> T:
        """Call ``look`` with the object, and return what this function returns.

        The function must not change the object. If the result contains parts of the object that may
        change later, the function must copy them.
        """
        await drive(self._replica.sync(staleness))
        return self.local.read(look)
