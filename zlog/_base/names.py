"""Names of objects, and checks of positions."""

from __future__ import annotations

import re
from zlib import crc32

from zlog.limits import POSITION_MAX

DIRECTORY_OBJECT = "zlog.directory"
"""Has the sequencer's announcement, and names from before the lists had shards."""

DIRECTORY_SHARDS = 16
"""Objects of each list of the directory."""


def check_position(position: int) -> None:
    """Raise TypeError or ValueError unless it is a valid position."""
    check_int(position)
    if not 0 <= position <= POSITION_MAX:
        raise ValueError(f"a position must be 0 to 2**63 - 1, not {position}")


def check_range(start: int, end: int | None) -> None:
    """Raise TypeError or ValueError unless they are a valid range; None means the tail."""
    check_position(start)
    if end is not None:
        check_int(end)


def check_int(position: int) -> None:
    """Raise TypeError unless it is an integer."""
    if not hasattr(position, "__index__"):  # which NumPy's integers have too
        raise TypeError(f"a position must be an int, not {position!r}")


def head_object(log: str) -> str:
    """Return the name of the object that holds the log's epoch counter and views."""
    return f"{objects_prefix(log)}head"


def objects_prefix(log: str) -> str:
    """Return the prefix of a log's object names. Log ``a.b`` also has that of log ``a``."""
    return f"zlog.{log}."


def log_of(object: str) -> str | None:
    """Return the log of a head or stripe object; None for any other object."""
    found = re.fullmatch(r"zlog\.(.+)\.(head|[0-9a-f]{16}\.\d+\.\d+)", object)
    return None if found is None else found[1]


def stripe_object(log: str, log_id: int, stripe_id: int, index: int) -> str:
    """Return the name of a stripe object.

    The name has the log's id, so that a late writer to a removed log does not affect a new log with
    the same name. It also has the stripe's id, which is the epoch of its creation, so that two
    clients that change the layout at the same time never create the same object.
    """
    return f"{objects_prefix(log)}{log_id:016x}.{stripe_id}.{index}"


def wake_object(log: str) -> str:
    """Return the name of the empty object for notifying readers. No log has such an object."""
    return f"zlog.wake/{log}"


def directory_shards(kind: str) -> list[str]:
    """Return the names of a list's objects in the directory, which differ from all other names."""
    return [f"{DIRECTORY_OBJECT}/{kind}.{number}" for number in range(DIRECTORY_SHARDS)]


def directory_shard(kind: str, log: str) -> str:
    """Return the name of the object of a list that has the entry of a log."""
    return f"{DIRECTORY_OBJECT}/{kind}.{crc32(log.encode()) % DIRECTORY_SHARDS}"
