"""Names of logs and of the objects that hold them. The only place that spells object names."""

from __future__ import annotations

import re

LOG_NAME_BYTES_MAX = 128
_LOG_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")

DIRECTORY_OBJECT = "zlog.directory"


def check_log_name(name: str) -> str:
    """Return ``name`` if it can name a log.

    Raises:
        TypeError: not a str.
        ValueError: not 1 to 128 of the characters A-Z a-z 0-9 _ . - or begins with . or -.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a log is a str, not {name!r}")
    if len(name) > LOG_NAME_BYTES_MAX or not _LOG_NAME.match(name):
        raise ValueError(
            f"{name!r} can't name a log: use 1 to {LOG_NAME_BYTES_MAX} letters, digits, '_', '.'"
            " or '-', beginning with a letter, a digit or '_'"
        )
    return name


def head_object(log: str) -> str:
    """Name of the object that holds the log's epoch counter and views."""
    return f"zlog.{log}.head"


def stripe_object(log: str, log_id: int, stripe_id: int, index: int) -> str:
    """Name of one stripe object.

    It carries the log's id, so that a late writer to a removed log can't touch a new log of the
    same name, and the stripe's id (the epoch that made it), so that two clients that change the
    layout at the same time never make the same object.
    """
    return f"zlog.{log}.{log_id:016x}.{stripe_id}.{index}"
