"""Histories of several processes: each keeps its own in a file, and the checkers get all of them.

The machine's monotonic clock, which its processes share, orders what they did. What changes the log
is in the file before it is asked for, so that SIGKILL leaves it there as pending.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import pickle
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.history import Action, History, Operation, Result
from tests.history.operations import Events, Record

_SHOWN_BYTES = 40


class InFile(Events):
    """What one process recorded, in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("wb")

    def event(self) -> int:
        """Return the time, in nanoseconds. Two events at the same one count as concurrent."""
        return time.monotonic_ns()

    def write(self, record: Record | str) -> None:
        """Write a record, which may be another one's next state."""
        pickle.dump(record, self._file)
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()


class Journal(InFile, History):
    """The history of one process."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._numbers = itertools.count()

    def invoke(self, *words: Any, **more: Any) -> Operation:
        """Note that an operation begins, before it does."""
        operation = super().invoke(*words, **more)
        operation.number = next(self._numbers)
        self.operations.clear()  # the file has them
        if operation.action not in (Action.READ, Action.TAIL):
            self.write(_shortened(operation))
        return operation

    def returns(self, operations: Iterable[Operation], result: Result, error: str = "") -> None:
        """Note that operations end."""
        operations = list(operations)
        super().returns(operations, result, error)
        for record in (*map(_shortened, operations), *self.skips):
            self.write(record)
        self.skips.clear()


def merge(paths: Iterable[Path]) -> History:
    """Return the history of all processes that kept these journals.

    One that was killed before it had opened the log has none.
    """
    history, found = History(), [*records(paths)]
    history.skips = [each for each in found if isinstance(each, str)]
    history.operations = numbered(each for each in found if not isinstance(each, str))
    return history


def records(paths: Iterable[Path]) -> Iterator[Any]:
    """Return the last state of each record, by number; who is killed cuts the last one off."""
    for path in filter(Path.exists, paths):
        latest: dict[object, Any] = {}
        with path.open("rb") as file, contextlib.suppress(EOFError, pickle.UnpicklingError):
            while True:
                record = pickle.load(file)
                latest[getattr(record, "number", record)] = record
        yield from latest.values()


def numbered(found: Iterable[Any]) -> list[Any]:
    """Number operations or transactions in the order in which they began."""
    ordered = sorted(found, key=lambda each: each.invoked)
    for number, each in enumerate(ordered):
        each.number = number
    return ordered


def write_whole(path: Path, text: str) -> None:
    """Write a file that others look for: it is there with its content, or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text)
    unfinished.replace(path)


def _shortened(operation: Operation) -> Operation:
    """The operation with a digest in the place of a long entry: equal for equal ones only."""
    entry = operation.entry or b""
    if len(entry) <= _SHOWN_BYTES:
        return operation
    digest = hashlib.sha256(entry).hexdigest()[:24]
    shown = entry[:_SHOWN_BYTES] + f"... {len(entry)} {digest}".encode()
    return replace(operation, entry=shown)
