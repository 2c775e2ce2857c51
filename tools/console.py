"""What the tools tell, and where."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def say(line: str) -> None:
    """Print a line that somebody may be waiting for."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def note(line: str) -> None:
    """Tell the user how it is going, or what went wrong."""
    sys.stderr.write(line + "\n")


def verdict(tool: str, faults: Iterable[str]) -> int:
    """Tell of the faults that a tool has found; returns its exit code."""
    found = [*faults]
    for fault in found:
        note(f"{tool}: {fault}")
    return 1 if found else 0
