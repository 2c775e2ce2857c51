"""Makes every call on a handle fail in a forked child of the process that made the handle.

A fork copies only the calling thread, so a lock that another thread held stays locked in the child.
Therefore, before the child runs anything else, each inherited handle changes its class to one that
refuses calls. This covers methods that were bound before the fork, and costs the parent nothing. A
call that is running during the fork fails in the child at its next request, because its ``Io`` is a
handle.
"""

from __future__ import annotations

import inspect
import os
import types
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from zlog.errors import StoreUnavailable

if TYPE_CHECKING:
    from typing_extensions import Self

_live: WeakSet[ProcessBound]


class ProcessBound:
    """A handle that can be used only in the process that created it.

    In a forked child, the methods in ``_harmless`` do nothing, and all others raise
    StoreUnavailable. Attributes and properties keep their values.
    """

    _harmless: ClassVar[frozenset[str]] = frozenset({"close"})

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        self = super().__new__(cls)
        _live.add(self)
        return self


_live = WeakSet()


class _Inherited:
    """The first base of the class of an inherited handle."""

    def __getattribute__(self, name: str) -> Any:
        get = object.__getattribute__
        if name.startswith("__"):
            return get(self, name)
        inherited = type(self)
        made = inherited.__mro__[2]
        found = getattr(made, name, None)
        if name in made._harmless:  # type: ignore[attr-defined]
            return _nothing_awaited if inspect.iscoroutinefunction(found) else _nothing
        if isinstance(found, property) and not name.startswith("_"):
            self.__class__ = made
            try:
                return found.fget(self)  # type: ignore[misc]
            finally:
                self.__class__ = inherited
        values = get(self, "__dict__")
        if name.startswith("_") or callable(found) or name not in values:
            raise inherited_error(f"this {made.__name__}")
        return values[name]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of the parent process>"

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:  # otherwise the block's own error is more useful
            super().__exit__(kind, *error)  # type: ignore[misc]

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            await super().__aexit__(kind, *error)  # type: ignore[misc]


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    pass


async def _nothing_awaited(*_args: Any, **_kwargs: Any) -> None:
    pass


def inherited_error(what: str) -> StoreUnavailable:
    """Return the exception for a call on an inherited object. ``what`` describes the object."""
    return StoreUnavailable(
        f"{what} was opened by another process, before a fork",
        hint="Connect to the store, and open its logs, in the child process.",
        retryable=False,
    )


@cache
def _inherited(made: type) -> type:
    return types.new_class(made.__name__, (_Inherited, made))


def _after_fork() -> None:
    for handle in [*_live]:
        made: type = type(handle)
        handle.__class__ = _inherited(made)
    _live.clear()


os.register_at_fork(after_in_child=_after_fork)
