"""Spark's daemon of Python workers, kept silent about workers that Spark has dismissed.

Spark closes the connection of a worker that had nothing to do for a minute, or whose query was
stopped. The worker can't answer any more, and the daemon's loop, which it runs in a forked process,
prints the traceback of its error on the terminal before it ends. No setting prevents that, so a
worker that has imported this package ignores such an error.
"""

from __future__ import annotations

import sys
import traceback
from types import ModuleType


class Tracebacks:
    """What Spark's daemon uses of the module ``traceback``."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        """Print the error that is being handled, unless it is a closed connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc()


def hush(main: ModuleType) -> None:
    """Keep closed connections out of the output of a process, if it is a worker of Spark's daemon.

    Args:
        main: the process's module ``__main__``.
    """
    program = getattr(main, "__spec__", None)
    if program is not None and program.name == "pyspark.daemon":
        vars(main)["traceback"] = Tracebacks
