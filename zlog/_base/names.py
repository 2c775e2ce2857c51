"""The names of objects, and checks of positions."""

from __future__ import annotations

import re
from zlib import crc32

from zlog.limits import POSITION_MAX

DIRECTORY_OBJECT = "zlog.directory"
"""The object with the sequencer's announcement, and with names from before lists had shards."""

TEMPLATES_OBJECT = f"{DIRECTORY_OBJECT}/templates"
"""The object with the store's templates. It has the form of a head, but belongs to no log."""

DIRECTORY_SHARDS = 16
"""The number of objects of each list in the directory."""


def check_position(position: int) -> None:
    """Raise TypeError or ValueError if this is not a valid position."""
    check_int(position)
    if not 0 <= position <= POSITION_MAX:
        raise ValueError(f"a position must be 0 to 2**63 - 1, not {position}")


def check_range(start: int, end: int | None) -> None:
    """Raise TypeError or ValueError if this is not a valid range. An ``end`` of None is valid."""
    check_position(start)
    if end is not None:
        check_int(end)


def check_int(position: int) -> None:
    """Raise TypeError if this is not an integer."""
    if not hasattr(position, "__index__"):  # which NumPy's integers have too
        raise TypeError(f"a position must be an int, not {position!r}")


def head_object(log: str) -> str:
    """Return the name of the object that holds the log's epoch counter and views."""
    return f"{objects_prefix(log)}head"


def objects_prefix(log: str) -> str:
    """Return the prefix of a log's object names, which log ``a`` shares with log ``a.b``."""
    return f"zlog.{log}."


def log_of(object: str) -> str | None:
    """Return the log to which a head or stripe object belongs, or None for any other object."""
    found = re.fullmatch(r"zlog\.(.+)\.(head|[0-9a-f]{16}\.\d+\.\d+)", object)
    return None if found is None else found[1]


def stripe_object(log: str, log_id: int, stripe_id: int, index: int) -> str:
    """Return the name of a stripe object.

    The name contains the log's id, so that a delayed write to a removed log cannot reach a new log
    with the same name. It also contains the stripe's id, which is the epoch of its creation, so
    that two clients that change the layout at the same time never create the same object.
    """
    return f"{objects_prefix(log)}{log_id:016x}.{stripe_id}.{index}"


def wake_object(log: str) -> str:
    """Return the name of the empty object that notifies readers. No log stores data in it."""
    return f"zlog.wake/{log}"


def directory_shards(kind: str) -> list[str]:
    """Return the names of a directory list's objects. No other object has such a name."""
    return [f"{DIRECTORY_OBJECT}/{kind}.{number}" for number in range(DIRECTORY_SHARDS)]


def directory_shard(kind: str, log: str) -> str:
    """Return the name of the directory object that has a log's entry in a list."""
    return f"{DIRECTORY_OBJECT}/{kind}.{crc32(log.encode()) % DIRECTORY_SHARDS}"
