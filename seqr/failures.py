"""Logging the failures of background work, which must not end it."""

from __future__ import annotations

import logging

from zlog.errors import ZlogError

_logger = logging.getLogger(__name__)


class FailuresLogged:
    """Logs an exception of a ``with`` block, and continues after the block.

    An error of the store is logged as one line, and any other error with its traceback.

    Args:
        what: a description of the failure, as a format for ``values``.
        values: the arguments of the format.

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
