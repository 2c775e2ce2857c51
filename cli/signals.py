"""SIGTERM as an exception, so that what was begun is put in order and told before the end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Terminated(BaseException):
    """SIGTERM came. Like KeyboardInterrupt it is no Exception, which a handler might swallow."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise Terminated at SIGTERM for the length of a ``with`` block."""
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
