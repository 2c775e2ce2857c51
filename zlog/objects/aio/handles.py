"""Objects of a space.

Reads take ``staleness``: the seconds by which what they answer may be out of date. At 0, which is
the default, they are linearizable: they have all that was acknowledged before they began. What
``local`` reads waits for nothing.
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
    """What handles on objects have in common.

    Attributes:
        name: the object's.
        local: reads that wait for nothing.
    """

    _version = 1

    def __init__(self, replica: Replica, local: V) -> None:
        """Wrap the logic; programs call a method of a space."""
        self.name = check_key(local.name)
        self.local = local
        self._replica = replica
        self._kind = local.kind

    async def _write(self, *commands: Any) -> int:
        """Append commands in one entry; returns its position.

        The first ones to an object that is not known here wait for what becomes of them.
        """
        kind, name, replica = self._kind, self.name, self._replica
        state = self._state()
        if state is None:
            replica.check_player()
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
        """Watch it; see :meth:`zlog.objects.aio.Space.watch`."""
        return Watch(watching(self._replica, self.name, None, None, start, events))

    def __repr__(self) -> str:
        return f"<zlog.objects.aio.{type(self).__name__} {self.name!r}>"


class Keys(Handle[K]):
    """What maps and sets have in common."""

    async def count(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return how many keys, or members, there are."""
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
        """Watch a key, the keys with a prefix, or all; see :meth:`zlog.objects.aio.Space.watch`."""
        return Watch(watching(self._replica, self.name, key, prefix, start, events))


class Map(Keys[MapView]):
    """A map of text to values: what JSON can say.

    Reads are linearizable unless ``staleness`` lets them be that many seconds out of date.
    """

    async def get(self, key: str, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return the value of a key."""
        await drive(self._replica.sync(staleness))
        return self.local.get(key, default)

    async def has(self, key: str, *, staleness: float = LINEARIZABLE) -> bool:
        """Return whether a key is there."""
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
        """Return keys and values in order: all, those with a prefix, or from a start to an end."""
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
        """Return keys in order, as :meth:`items` does."""
        await drive(self._replica.sync(staleness))
        return self.local.keys(prefix=prefix, start=start, end=end)

    async def put(self, key: str, value: Any) -> int:
        """Set the value of a key; returns the position of the entry."""
        return await self._write((check_key(key), owned(value)))

    async def put_many(self, items: Mapping[str, Any]) -> int:
        """Set values of keys, all at once; returns the position of the entry."""
        return await self._write(*((check_key(key), owned(each)) for key, each in items.items()))

    async def delete(self, key: str) -> int:
        """Remove a key, if it is there; returns the position of the entry."""
        return await self._write((check_key(key),))


class Set(Keys[SetView]):
    """A set of text."""

    async def has(self, member: str, *, staleness: float = LINEARIZABLE) -> bool:
        """Return whether a member is there."""
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
        """Return members in order: all, those with a prefix, or from a start to an end."""
        await drive(self._replica.sync(staleness))
        return self.local.members(prefix=prefix, start=start, end=end)

    async def add(self, *members: str) -> int:
        """Add members; returns the position of the entry."""
        return await self._write(*((check_key(each), True) for each in members))

    async def discard(self, *members: str) -> int:
        """Remove members, those that are there; returns the position of the entry."""
        return await self._write(*((check_key(each),) for each in members))


class Counter(Handle[CounterView]):
    """A number; it stops at what 64 bits with a sign can hold."""

    async def get(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return its value; 0 before it was first changed."""
        await drive(self._replica.sync(staleness))
        return self.local.get()

    async def add(self, number: int = 1) -> int:
        """Add to it; returns the position of the entry.

        A sum beyond -2^63 or 2^63 - 1 becomes that limit, without an error.
        """
        return await self._write(check_number(number))

    async def add_and_get(self, number: int = 1) -> int:
        """Add to it; returns its value right after that.

        Raises:
            ResultLost: it was added, and a trim came before this client knew the value.
        """
        value: int = await self._call(check_number(number))
        return value


class Register(Handle[RegisterView]):
    """One value: what JSON can say."""

    async def get(self, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return its value; ``default`` before it was first set."""
        await drive(self._replica.sync(staleness))
        return self.local.get(default)

    async def set(self, value: Any) -> int:
        """Set its value; returns the position of the entry."""
        return await self._write(owned(value))


class Queue(Handle[QueueView]):
    """Values, first in, first out."""

    async def push(self, *values: Any) -> int:
        """Put values at its end; returns the position of the entry."""
        return await self._write(*([owned(each)] for each in values))

    async def pop(self, default: Any = None, *, wait: float = 0.0) -> Any:
        """Take the value that is next, which no one else gets.

        Args:
            default: what is returned if there is none.
            wait: seconds to wait for one.

        Raises:
            ResultLost: a value was taken, and a trim came before this client knew which.
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
        """Return the value that is next, without taking it."""
        await drive(self._replica.sync(staleness))
        return self.local.peek(default)

    async def items(self, *, staleness: float = LINEARIZABLE) -> list[Any]:
        """Return all values, the next one first."""
        await drive(self._replica.sync(staleness))
        return self.local.items()

    async def count(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return how many values there are."""
        await drive(self._replica.sync(staleness))
        return len(self.local)


class Object(Handle[ObjectView[R]]):
    """An object of one's own, of a class that extends :class:`Replicated`."""

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
        """Send a command; returns what ``apply`` returns for it.

        Raises:
            Rejected: the object refuses it.
            ResultLost: it took effect, and a trim came before this client knew the result.
        """
        return await self._call(owned(command))

    async def read(self, look: Callable[[R], T], *, staleness: float = LINEARIZABLE) -> T:
        """Return what ``look`` returns of the object, which it leaves as it is.

        What it returns must not be a part of the object that changes later: a copy.
        """
        await drive(self._replica.sync(staleness))
        return self.local.read(look)
