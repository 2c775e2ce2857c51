"""Watches of objects, which report every change in order from a position on."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from zlog.errors import ZlogError
from zlog.objects._records import given
from zlog.objects._replica import Event, Replica
from zlog.objects._states import Change
from zlog.objects.errors import PastLost

WATCH_EVENTS = 1000
"""The default number of events that are kept for a slow watch."""


class Filter(NamedTuple):
    """Selects the changes that a watch reports.

    Attributes:
        object: the name of the object; None means all objects.
        start: report only keys from this key on; None means all keys.
        end: report only keys below this key; None means no end.
    """

    object: str | None
    start: str | None
    end: str | None

    def fits(self, change: Change) -> bool:
        """Whether a change matches."""
        if self.object is not None and change.object != self.object:
            return False
        key = change.key
        if self.start is None:
            return True
        return key is not None and key >= self.start and (self.end is None or key < self.end)


Opener = Callable[[int], Awaitable[Replica]]
"""Creates a separate replica that has the state below a position."""


class Watching:
    """Iterates over a space's changes that match a filter. Each event contains one entry's changes.

    The iteration ends only when the watch is closed. If the consumer is slow, the watch buffers up
    to ``limit`` events. If there are more, it rereads the log from its position until it has caught
    up.

    Attributes:
        position: where another watch must start to continue after the last event.
    """

    def __init__(
        self, replica: Replica, wanted: Filter, position: int | None, limit: int, opener: Opener
    ) -> None:
        self._replica = replica
        self._wanted = wanted
        self._limit = limit
        self._opener = opener
        self._events: deque[Event] = deque()
        self._own: Replica | None = None
        self._live = False
        self._closed = False
        self._overtaken = 0
        self.position = 0
        with replica.port.lock:
            if position is None or position >= replica.machine.position:
                self.position = max(position or 0, replica.machine.position)
                self._join()
            else:
                self.position = position
        self._next = self.position
        replica.closing.append(self.close)

    def _join(self) -> None:
        """Receive the changes that the space's replica applies from now on."""
        self._live = True
        self._overtaken = self._replica.overtaken
        self._replica.listeners.append(self._hear)

    def _leave(self) -> None:
        with self._replica.port.lock:
            if self._live:
                self._replica.listeners.remove(self._hear)
            self._live = False

    def _hear(self, position: int, changes: Sequence[Change]) -> None:
        source = self._replica if self._own is None else self._own
        if source.overtaken != self._overtaken:
            self._leave()  # entries were trimmed before they were seen
            return
        if position < self._next:
            return
        fitting = tuple(filter(self._wanted.fits, changes))
        if not fitting:
            return
        if self._own is None and len(self._events) >= self._limit:
            self._leave()
            return
        self._next = position + 1
        self._events.append(Event(position, fitting))

    async def next(self) -> Event | None:
        """Return the next event, or None if the watch was closed.

        Raises:
            PastLost: entries that the watch has not read yet were trimmed. A new watch can begin at
                the error's ``resume``.
            Stopped: the replica can't continue.
        """
        try:
            return await self._next_event()
        except ZlogError:
            if self._closed:  # the log whose entries it waited for was also closed
                return None
            raise

    async def _next_event(self) -> Event | None:
        while not self._closed:
            if self._events:
                event = self._events.popleft()
                self.position = event.position + 1
                changes = (each._replace(value=given(each.value)) for each in event.changes)
                return Event(event.position, tuple(changes))
            if not self._live:
                await self._catch_up()
            elif self._overtaken != self._replica.overtaken:
                self._leave()
            else:
                with self._replica.port.lock:
                    if self._events or not self._live:
                        continue
                    seen = self._replica.machine.position
                    self.position = max(self.position, seen)
                await self._replica.wait(seen)
        return None

    async def _catch_up(self) -> None:
        """Apply one window to the watch's own replica; drop that when it reaches the space's."""
        own = self._own
        if own is None:
            own = await self._opener(self._next)
            own.listeners.append(self._hear)
            self._own, self._overtaken = own, 0
        with self._replica.port.lock:
            if own.machine.position >= self._replica.machine.position:
                self._own = None
                self._next = max(self._next, own.machine.position)
                self._join()
                return
            goal = self._replica.machine.position
        await own.play_window(goal)
        if own.overtaken:
            self._own = None
            raise PastLost(
                f"the log was trimmed beyond {self.position}, which the watch had reached",
                resume=own.resumed,
            )

    def close(self) -> None:
        """End the watch: :meth:`next` then returns None."""
        self._closed = True
        self._leave()
        self._own = None
        if self.close in self._replica.closing:
            self._replica.closing.remove(self.close)

    def call(self, callback: Callable[[Event], object]) -> None:
        """Call a function with each event, in a thread or task, until the watch is closed."""
        self._replica.port.spawn(self._call(callback))

    async def _call(self, callback: Callable[[Event], object]) -> None:
        while (event := await self.next()) is not None:
            callback(event)
