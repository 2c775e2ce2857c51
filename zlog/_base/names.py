"""Names and positions: what can be one.

The only place that spells the names of objects.
"""

from __future__ import annotations

import re

NAME_BYTES_MAX = 128
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")

DIRECTORY_OBJECT = "zlog.directory"


def check_log_name(name: str) -> str:
    """Return ``name`` if it can name a log.

    Raises:
        TypeError: not a str.
        ValueError: not 1 to 128 of the characters A-Z a-z 0-9 _ . - or begins with . or -.
    """
    return _check_name(name, "log")


def check_cursor_name(name: str) -> str:
    """Return ``name`` if it can name a cursor; the rule is that of logs' names.

    Raises:
        TypeError, ValueError: as :func:`check_log_name`.
    """
    return _check_name(name, "cursor")


def check_source_name(name: str) -> str:
    """Return ``name`` if it can name a source of deliveries; the rule is that of logs' names.

    Raises:
        TypeError, ValueError: as :func:`check_log_name`.
    """
    return _check_name(name, "source")


def _check_name(name: str, what: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} is a str, not {name!r}")
    if len(name) > NAME_BYTES_MAX or not _NAME.match(name):
        raise ValueError(
            f"{name!r} can't name a {what}: use 1 to {NAME_BYTES_MAX} letters, digits, '_', '.'"
            " or '-', beginning with a letter, a digit or '_'"
        )
    return name


def check_position(position: int) -> None:
    """Raise TypeError or ValueError unless it is a number that can be a position."""
    check_int(position)
    if not 0 <= position < 2**63:
        raise ValueError(f"a position is 0 to 2**63 - 1, not {position}")


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


def stripe_object(log: str, log_id: int, stripe_id: int, index: int) -> str:
    """Name of one stripe object.

    It carries the log's id, so that a late writer to a removed log can't touch a new log of the
    same name, and the stripe's id (the epoch that made it), so that two clients that change the
    layout at the same time never make the same object.
    """
    return f"{objects_prefix(log)}{log_id:016x}.{stripe_id}.{index}"
