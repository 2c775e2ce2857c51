"""Names of objects, spelled here only, and the check of positions."""

from __future__ import annotations

import re
from zlib import crc32

from zlog.limits import POSITION_MAX

DIRECTORY_OBJECT = "zlog.directory"
"""Has the sequencer's announcement, and names that were entered before there were shards."""

DIRECTORY_SHARDS = 16
"""Objects of each list of the directory."""


def check_position(position: int) -> None:
    """Raise TypeError or ValueError unless it is a number that can be a position."""
    check_int(position)
    if not 0 <= position <= POSITION_MAX:
        raise ValueError(f"a position is 0 to 2**63 - 1, not {position}")


def check_range(start: int, end: int | None) -> None:
    """Raise TypeError or ValueError unless a range can begin and end there (None: at the tail)."""
    check_position(start)
    if end is not None:
        check_int(end)


def check_int(position: int) -> None:
    """Raise TypeError unless it is a number that could be a position."""
    if not hasattr(position, "__index__"):  # which NumPy's integers have too
        raise TypeError(f"a position is an int, not {position!r}")


def head_object(log: str) -> str:
    """Name of the object that holds the log's epoch counter and views."""
    return f"{objects_prefix(log)}head"


def objects_prefix(log: str) -> str:
    """How the names of a log's objects begin. Logs whose names go on after a dot share it."""
    return f"zlog.{log}."


def log_of(object: str) -> str | None:
    """Return the log that a head or stripe object belongs to; None for any other object."""
    found = re.fullmatch(r"zlog\.(.+)\.(head|[0-9a-f]{16}\.\d+\.\d+)", object)
    return None if found is None else found[1]


def stripe_object(log: str, log_id: int, stripe_id: int, index: int) -> str:
    """Name of one stripe object.

    It carries the log's id, so that a late writer to a removed log can't touch a new log of the
    same name, and the stripe's id (the epoch that made it), so that two clients that change the
    layout at the same time never make the same object.
    """
    return f"{objects_prefix(log)}{log_id:016x}.{stripe_id}.{index}"


def wake_object(log: str) -> str:
    """Name of the empty object at which readers are woken; no log's objects are named so."""
    return f"zlog.wake/{log}"


def directory_shards(kind: str) -> list[str]:
    """Names of the objects of one list of the directory; no log's objects are named so."""
    return [f"{DIRECTORY_OBJECT}/{kind}.{number}" for number in range(DIRECTORY_SHARDS)]


def directory_shard(kind: str, log: str) -> str:
    """Name of the object of such a list that a log is entered in."""
    return f"{DIRECTORY_OBJECT}/{kind}.{crc32(log.encode()) % DIRECTORY_SHARDS}"
