"""Suppresses errors of Python workers whose connection Spark has closed.

If a worker was idle for a minute or its query was stopped, Spark closes the worker's connection.
The worker then fails to send its answer, and prints a traceback on the terminal. Spark has no
setting against this, so a worker that has imported this package ignores such errors.
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


def hush(main: ModuleType) -> bool:
    """Suppress errors of closed connections, if this process is a worker of Spark's daemon.

    Args:
        main: the module ``__main__`` of this process.

    Returns:
        Whether it is a worker.
    """
    program = getattr(main, "__spec__", None)
    worker = program is not None and program.name == "pyspark.daemon"
    if worker:
        vars(main)["traceback"] = Tracebacks
    return worker
