"""Watches of objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zlog.extension import ProcessBound
from zlog.extension import drive_aio as drive
from zlog.objects._replica import Event
from zlog.objects._watch import Watching

if TYPE_CHECKING:
    from typing_extensions import Self


class Watch(ProcessBound):
    """An iterator over the requested changes. It waits for more changes without end."""

    def __init__(self, inner: Watching) -> None:
        """Wrap a watch; programs call the method ``watch`` of a space or an object."""
        self._inner = inner

    @property
    def position(self) -> int:
        """The position at which another watch would continue after the last event."""
        return self._inner.position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await drive(self._inner.next())
        if event is None:
            raise StopAsyncIteration
        return event

    def call(self, callback: Callable[[Event], object]) -> None:
        """Have a task call a function with each event, until the watch or the space is closed."""
        self._inner.call(callback)

    def close(self) -> None:
        """End the watch. A task that waits for it ends within some seconds."""
        self._inner.close()
