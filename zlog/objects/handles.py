"""Objects of a space for threads: what :mod:`zlog.objects._handles` is for asyncio."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from zlog._io import drive
from zlog.objects import _handles, _watch
from zlog.objects._handles import WATCH_EVENTS
from zlog.objects._replica import LINEARIZABLE, Event
from zlog.objects._states import Replicated

R = TypeVar("R", bound=Replicated)
T = TypeVar("T")


class Watch:
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

        def run() -> None:
            for event in self:
                callback(event)

        threading.Thread(target=run, name="zlog.objects.watch", daemon=True).start()

    def close(self) -> None:
        """End it, within some seconds where a thread waits for it."""
        self._inner.close()


class Map:
    """A map of text to values: what JSON can say.

    Reads are linearizable unless ``staleness`` lets them be that many seconds out of date.

    Attributes:
        local: reads that wait for nothing.
    """

    def __init__(self, inner: _handles.Map) -> None:
        """Wrap the logic; programs call ``map`` of a space."""
        self._inner = inner
        self.name = inner.name
        self.local = inner.local

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

    def count(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return how many keys there are."""
        return drive(self._inner.count(staleness=staleness))

    def put(self, key: str, value: Any) -> int:
        """Set the value of a key; returns the position of the entry."""
        return drive(self._inner.put(key, value))

    def put_many(self, items: Mapping[str, Any]) -> int:
        """Set values of keys, all at once; returns the position of the entry."""
        return drive(self._inner.put_many(items))

    def delete(self, key: str) -> int:
        """Remove a key, if it is there; returns the position of the entry."""
        return drive(self._inner.delete(key))

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


class Set:
    """A set of text.

    Attributes:
        local: reads that wait for nothing.
    """

    def __init__(self, inner: _handles.Set) -> None:
        """Wrap the logic; programs call ``set`` of a space."""
        self._inner = inner
        self.name = inner.name
        self.local = inner.local

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

    def count(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return how many members there are."""
        return drive(self._inner.count(staleness=staleness))

    def add(self, *members: str) -> int:
        """Add members; returns the position of the entry."""
        return drive(self._inner.add(*members))

    def discard(self, *members: str) -> int:
        """Remove members, those that are there; returns the position of the entry."""
        return drive(self._inner.discard(*members))

    def watch(
        self,
        *,
        key: str | None = None,
        prefix: str | None = None,
        start: int | None = None,
        events: int = WATCH_EVENTS,
    ) -> Watch:
        """Watch a member, those with a prefix, or all; see :meth:`Space.watch`."""
        return Watch(self._inner.watch(key=key, prefix=prefix, start=start, events=events))


class Counter:
    """A number; it stops at what 64 bits with a sign can hold.

    Attributes:
        local: reads that wait for nothing.
    """

    def __init__(self, inner: _handles.Counter) -> None:
        """Wrap the logic; programs call ``counter`` of a space."""
        self._inner = inner
        self.name = inner.name
        self.local = inner.local

    def get(self, *, staleness: float = LINEARIZABLE) -> int:
        """Return its value; 0 before it was first changed."""
        return drive(self._inner.get(staleness=staleness))

    def add(self, number: int = 1) -> int:
        """Add to it; returns the position of the entry."""
        return drive(self._inner.add(number))

    def add_and_get(self, number: int = 1) -> int:
        """Add to it; returns its value right after that."""
        return drive(self._inner.add_and_get(number))

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch it; see :meth:`Space.watch`."""
        return Watch(self._inner.watch(start=start, events=events))


class Register:
    """One value: what JSON can say.

    Attributes:
        local: reads that wait for nothing.
    """

    def __init__(self, inner: _handles.Register) -> None:
        """Wrap the logic; programs call ``register`` of a space."""
        self._inner = inner
        self.name = inner.name
        self.local = inner.local

    def get(self, default: Any = None, *, staleness: float = LINEARIZABLE) -> Any:
        """Return its value; ``default`` before it was first set."""
        return drive(self._inner.get(default, staleness=staleness))

    def set(self, value: Any) -> int:
        """Set its value; returns the position of the entry."""
        return drive(self._inner.set(value))

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch it; see :meth:`Space.watch`."""
        return Watch(self._inner.watch(start=start, events=events))


class Queue:
    """Values, first in, first out.

    Attributes:
        local: reads that wait for nothing.
    """

    def __init__(self, inner: _handles.Queue) -> None:
        """Wrap the logic; programs call ``queue`` of a space."""
        self._inner = inner
        self.name = inner.name
        self.local = inner.local

    def push(self, *values: Any) -> int:
        """Put values at its end; returns the position of the entry."""
        return drive(self._inner.push(*values))

    def pop(self, default: Any = None, *, wait: float = 0.0) -> Any:
        """Take the value that is next, which no one else gets.

        Args:
            default: what is returned if there is none.
            wait: seconds to wait for one.
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

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch it; see :meth:`Space.watch`."""
        return Watch(self._inner.watch(start=start, events=events))


class Object(Generic[R]):
    """An object of one's own, of a class that extends :class:`Replicated`.

    Attributes:
        local: reads that wait for nothing.
    """

    def __init__(self, inner: _handles.Object[R]) -> None:
        """Wrap the logic; programs call ``object`` of a space."""
        self._inner = inner
        self.name = inner.name
        self.local = inner.local

    def call(self, command: Any) -> Any:
        """Send a command; returns what ``apply`` returns for it.

        Raises:
            Rejected: the object refuses it.
        """
        return drive(self._inner.call(command))

    def read(self, look: Callable[[R], T], *, staleness: float = LINEARIZABLE) -> T:
        """Return what ``look`` returns of the object, which it leaves as it is.

        What it returns must not be a part of the object that changes later: a copy.
        """
        return drive(self._inner.read(look, staleness=staleness))

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch its commands; see :meth:`Space.watch`."""
        return Watch(self._inner.watch(start=start, events=events))
