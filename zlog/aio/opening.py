"""A coroutine that also works with ``async with``, as in aiohttp or asyncpg."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class Opening(Coroutine[Any, Any, T]):
    """Opens an object when it is awaited. ``async with`` also closes the object at the end.

    Args:
        coroutine: a coroutine that opens the object and returns it.
        close: a function that closes the object.
    """

    __slots__ = ("_close", "_coroutine", "_opened")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], close: Callable[[T], Awaitable[None]]
    ) -> None:
        self._coroutine = coroutine
        self._close = close

    def send(self, value: Any) -> Any:
        """Resume the coroutine."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End the coroutine before it has opened anything."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> T:
        self._opened: T = await self._coroutine
        return self._opened

    async def __aexit__(self, *error: object) -> None:
        await self._close(self._opened)
