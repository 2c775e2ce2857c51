"""Suppresses errors of Python workers whose connection Spark has closed.

Spark closes the connection of a worker that was idle for a minute or whose query was stopped. The
worker, which Spark's daemon has forked, then fails to answer, and prints a traceback on the
terminal. No setting of Spark prevents this, so a worker that has imported this package ignores such
errors.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType


class Tracebacks:
    """The part of the module ``traceback`` that Spark's daemon uses."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        """Print the error that is being handled, unless it is a closed connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc()


def hush(main: ModuleType) -> None:
    """Do not print errors of closed connections, if the process is a worker of Spark's daemon.

    Args:
        main: the process's module ``__main__``.
    """
    program = getattr(main, "__spec__", None)
    if program is not None and program.name == "pyspark.daemon":
        vars(main)["traceback"] = Tracebacks
