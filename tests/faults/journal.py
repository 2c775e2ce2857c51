"""Histories of several processes: each keeps its own in a file, and the judge gets all of them.

The machine's monotonic clock, which its processes share, orders what they did. What changes the log
is in the file before it is asked for, so that SIGKILL leaves it there as pending.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.history import Action, History, Operation, Result, Wanted
from zlog.entry import GapKind

_SHOWN_BYTES = 40


class Journal(History):
    """The history of one process, in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._numbers = itertools.count()
        self._file = path.open("w")

    def event(self) -> int:
        """The time, in nanoseconds. Two events at the same one count as concurrent."""
        return time.monotonic_ns()

    def invoke(self, *words: Any, **more: Any) -> Operation:
        """Note that an operation begins, before it does."""
        operation = super().invoke(*words, **more)
        operation.number = next(self._numbers)
        self.operations.clear()  # the file has them
        if operation.action not in (Action.READ, Action.TAIL):
            self._write(_fields(operation))
            self._file.flush()
        return operation

    def returns(self, operations: Iterable[Operation], result: Result, error: str = "") -> None:
        """Note that operations end."""
        operations = list(operations)
        super().returns(operations, result, error)
        for operation in operations:
            self._write(_fields(operation))
        for skip in self.skips:
            self._write({"skip": skip})
        self.skips.clear()
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def _write(self, fields: dict[str, Any]) -> None:
        self._file.write(json.dumps(fields, separators=(",", ":")) + "\n")


def merge(paths: Iterable[Path]) -> History:
    """Return the history of all processes that kept these journals.

    One that was killed before it had opened the log has none.
    """
    history = History()
    for path in filter(Path.exists, paths):
        latest: dict[int, Operation] = {}
        for line in path.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break  # its writer was killed
            fields = json.loads(line)
            if "skip" in fields:
                history.skips.append(fields["skip"])
            else:
                latest[fields["number"]] = _operation(fields)
        history.operations += latest.values()
    history.operations.sort(key=lambda each: each.invoked)
    for number, operation in enumerate(history.operations):
        operation.number = number
    return history


def write_whole(path: Path, text: str) -> None:
    """Write a file that others look for: it is there with its content, or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text)
    unfinished.replace(path)


def _fields(operation: Operation) -> dict[str, Any]:
    """All that is known of an operation, by the names of its attributes."""
    fields = {
        "number": operation.number,
        "process": operation.process,
        "action": operation.action.value,
        "invoked": operation.invoked,
        "result": operation.result.value,
    }
    if operation.result is not Result.PENDING:
        fields["returned"] = operation.returned
    if operation.entry is not None:
        fields["entry"] = _digest(operation.entry)
    if operation.found is not None:
        fields["found"] = operation.found.value
    for name in ("position", "end", "epochs", "delivery", "writer", "wanted"):
        if (value := getattr(operation, name)) is not None:
            fields[name] = value
    if operation.tags:
        fields["tags"] = operation.tags
    if operation.error:
        fields["error"] = operation.error
    return fields


def _operation(fields: dict[str, Any]) -> Operation:
    readers = {
        "action": Action,
        "result": Result,
        "entry": str.encode,
        "found": GapKind,
        "epochs": tuple,
        "delivery": tuple,
        "tags": tuple,
        "wanted": lambda wanted: Wanted(tuple(wanted[0]), wanted[1]),
    }
    return Operation(
        **{
            name: readers[name](value) if name in readers else value
            for name, value in fields.items()
        }
    )


def _digest(entry: bytes) -> str:
    """What stands for an entry: short, and equal for equal ones only."""
    if len(entry) <= _SHOWN_BYTES:
        return entry.decode("latin-1")
    start = entry[:_SHOWN_BYTES].decode("latin-1")
    return f"{start}... {len(entry)} {hashlib.sha256(entry).hexdigest()[:24]}"
