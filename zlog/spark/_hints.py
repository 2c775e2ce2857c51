"""Adds hints to the messages of errors, since Spark shows only the message of an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from zlog.errors import KeyNeeded, ZlogError

C = TypeVar("C", bound=type)

_OPTIONS: dict[type[ZlogError], str] = {
    KeyNeeded: "Set the option macKeyFile to the path of the file that has the key."
}
"""Hints that name an option, for errors whose own hint names an argument of another call."""


@contextmanager
def hints_shown(log: str) -> Iterator[None]:
    """Add the hint of a zlog error in the ``with`` block to the error's message, on a new line.

    Args:
        log: the name of the log, which replaces LOG in hints.
    """
    try:
        yield
    except ZlogError as error:
        hint = _OPTIONS.get(type(error)) or re.sub(r"\bLOG\b", lambda _: log, error.hint)
        error.args = (f"{error}\nHint: {hint}",)
        raise


def shows_hints(kind: C) -> C:
    """Show hints in all public methods of a class with the ``_options`` of a log."""
    for name, method in [*vars(kind).items()]:
        if callable(method) and not name.startswith("_"):
            setattr(kind, name, _shows_hints(method))
    return kind


def _shows_hints(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def called(self: Any, *args: Any) -> Any:
        with hints_shown(self._options.log or "LOG"):
            return method(self, *args)

    return called
