"""Objects of a space for threads: what :mod:`zlog.objects._handles` is for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from zlog.extension import ProcessBound, drive, start_thread
from zlog.objects import _handles, _watch
from zlog.objects._handles import WATCH_EVENTS
from zlog.objects._replica import LINEARIZABLE, Event
from zlog.objects._states import Replicated
from zlog.objects._views import (
    CounterView,
    MapView,
    ObjectView,
    QueueView,
    RegisterView,
    SetView,
    View,
)

H = TypeVar("H", bound="_handles.Handle[Any]")
K = TypeVar("K", _handles.Map, _handles.Set)
R = TypeVar("R", bound=Replicated)
T = TypeVar("T")
V = TypeVar("V", bound=View)


class Watch(ProcessBound):
    """The changes that were asked for; iterating waits for more for ever.

    Attributes:
        position: where another watch would go on after the last event that was returned.
    """

    def __init__(self, inner: _watch.Watch) -> None:
        """Wrap the logic; programs call ``watch``."""
        self._inner = inner

    @property
    def position(self) -> int:
        """Where another watch would go on after the last event that was returned."""
        return self._inner.position

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = drive(self._inner.next())
        if event is None:
            raise StopIteration
        return event

    def call(self, callback: Callable[[Event], object]) -> None:
        """Have a thread call a function with each event, until the watch or the space is closed."""
        inner = self._inner

        def run() -> None:
            while (event := drive(inner.next())) is not None:
                callback(event)

        start_thread(run, "zlog.objects.watch")

    def close(self) -> None:
        """End it, within some seconds where a thread waits for it."""
        self._inner.close()


class Handle(ProcessBound, Generic[H, V]):
    """What handles on objects have in common.

    Attributes:
        name: the object's.
        local: reads that wait for nothing.
    """

    def __init__(self, inner: H) -> None:
        """Wrap the logic; programs call a method of a space."""
        self._inner: H = inner
        self.name = inner.name
        self.local: V = inner.local

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch it; see :meth:`Space.watch`."""
        return Watch(self._inner.watch(start=start, events=events))

    def __repr__(self) -> str:
        return f"<zlog.objects.{type(self).__name__} {self.name!r}>"


class Keys(Handle[K, V]):
    """What maps and sets have in common."""

    def count(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return how many keys, or members, there are."""
        return drive(self._inner.count(staleness=staleness))

    def watch(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        start: int | None = None,
        events: int = WATCH_EVENTS,
    ) -> Watch:
        """Watch a key, the keys with a prefix, or all; see :meth:`Space.watch`."""
        return Watch(self._inner.watch(key=key, prefix=prefix, start=start, events=events))


class Map(Keys[_handles.Map, MapView]):
    """A map of text to values: what JSON can say.

    Reads are linearizable unless ``staleness`` lets them be that many seconds out of date.
    """

    def get(self, key: str, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return the value of a key."""
        return drive(self._inner.get(key, default, staleness=staleness))

    def has(self, key: str, *, staleness: float = LINEARIZABLE) -> bool:
        """Return whether a key is there."""
        return drive(self._inner.has(key, staleness=staleness))

    def items(
        self,
        *,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        staleness: float = LINEARIZABLE,
    ) -> list[tuple[str, Any]]:
        """Return keys and values in order: all, those with a prefix, or from a start to an end."""
        return drive(self._inner.items(prefix=prefix, start=start, end=end, staleness=staleness))

    def keys(
        self,
        *,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        staleness: float = LINEARIZABLE,
    ) -> list[str]:
        """Return keys in order, as :meth:`items` does."""
        return drive(self._inner.keys(prefix=prefix, start=start, end=end, staleness=staleness))

    def put(self, key: str, value: Any) -> int:
        """Set the value of a key; returns the position of the entry."""
        return drive(self._inner.put(key, value))

    def put_many(self, items: Mapping[str, Any]) -> int:
        """Set values of keys, all at once; returns the position of the entry."""
        return drive(self._inner.put_many(items))

    def delete(self, key: str) -> int:
        """Remove a key, if it is there; returns the position of the entry."""
        return drive(self._inner.delete(key))


class Set(Keys[_handles.Set, SetView]):
    """A set of text."""

    def has(self, member: str, *, staleness: float = LINEARIZABLE) -> bool:
        """Return whether a member is there."""
        return drive(self._inner.has(member, staleness=staleness))

    def members(
        self,
        *,
        prefix: str | None = None,
        start: str | None = None,
        end: str | None = None,
        staleness: float = LINEARIZABLE,
    ) -> list[str]:
        """Return members in order: all, those with a prefix, or from a start to an end."""
        return drive(self._inner.members(prefix=prefix, start=start, end=end, staleness=staleness))

    def add(self, *members: str) -> int:
        """Add members; returns the position of the entry."""
        return drive(self._inner.add(*members))

    def discard(self, *members: str) -> int:
        """Remove members, those that are there; returns the position of the entry."""
        return drive(self._inner.discard(*members))


class Counter(Handle[_handles.Counter, CounterView]):
    """A number; it stops at what 64 bits with a sign can hold."""

    def get(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return its value; 0 before it was first changed."""
        return drive(self._inner.get(staleness=staleness))

    def add(self, number: int = 1) -> int:
        """Add to it; returns the position of the entry.

        A sum beyond -2^63 or 2^63 - 1 becomes that limit, without an error.
        """
        return drive(self._inner.add(number))

    def add_and_get(self, number: int = 1) -> int:
        """Add to it; returns its value right after that.

        Raises:
            ResultLost: it was added, and a trim came before this client knew the value.
        """
        return drive(self._inner.add_and_get(number))


class Register(Handle[_handles.Register, RegisterView]):
    """One value: what JSON can say."""

    def get(self, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return its value; ``default`` before it was first set."""
        return drive(self._inner.get(default, staleness=staleness))

    def set(self, value: Any) -> int:
        """Set its value; returns the position of the entry."""
        return drive(self._inner.set(value))


class Queue(Handle[_handles.Queue, QueueView]):
    """Values, first in, first out."""

    def push(self, *values: Any) -> int:
        """Put values at its end; returns the position of the entry."""
        return drive(self._inner.push(*values))

    def pop(self, default: Any = None, *, wait: float = 0.0) -> Any:
        """Take the value that is next, which no one else gets.

        Args:
            default: what is returned if there is none.
            wait: seconds to wait for one.

        Raises:
            ResultLost: a value was taken, and a trim came before this client knew which.
        """
        return drive(self._inner.pop(default, wait=wait))

    def peek(self, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return the value that is next, without taking it."""
        return drive(self._inner.peek(default, staleness=staleness))

    def items(self, *, staleness: float = LINEARIZABLE) -> list[Any]:
        """Return all values, the next one first."""
        return drive(self._inner.items(staleness=staleness))

    def count(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return how many values there are."""
        return drive(self._inner.count(staleness=staleness))


class Object(Handle[_handles.Object[R], ObjectView[R]]):
    """An object of one's own, of a class that extends :class:`Replicated`."""

    def call(self, command: Any) -> Any:
        """Send a command; returns what ``apply`` returns for it.

        Raises:
            Rejected: the object refuses it.
            ResultLost: it took effect, and a trim came before this client knew the result.
        """
        return drive(self._inner.call(command))

    def read(self, look: Callable[[R], T], *, staleness: float = LINEARIZABLE) -> T:
        """Return what ``look`` returns of the object, which it leaves as it is.

        What it returns must not be a part of the object that changes later: a copy.
        """
        return drive(self._inner.read(look, staleness=staleness))
