"""Logging the failures of background work, which must not end it."""

from __future__ import annotations

import logging

from zlog.errors import ZlogError

_logger = logging.getLogger(__name__)


class FailuresLogged:
    """A context manager that logs an exception of its block instead of raising it.

    An error of the store is logged as one line, and any other exception with its traceback.

    Args:
        what: the message to log. It is a format string, like those of the module ``logging``.
        values: the arguments of the format string.

    Attributes:
        failed: whether the block raised an exception.
    """

    def __init__(self, what: str, *values: object) -> None:
        self._what = what
        self._values = values
        self.failed = False

    def __enter__(self) -> FailuresLogged:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        self.failed = isinstance(error, Exception)
        if isinstance(error, ZlogError):
            _logger.warning(self._what + ": %s", *self._values, error)
        elif self.failed:
            _logger.error(self._what, *self._values, exc_info=error)
        return self.failed
