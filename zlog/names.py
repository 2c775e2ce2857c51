"""Checks of names and tags."""

from __future__ import annotations

import re

from zlog._native.new_entries import tags_checked
from zlog.limits import NAME_BYTES_MAX

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")

_PATTERN_MAX = 256

_SPACE_NAME_BYTES_MAX = 109
"""The maximum length of a space's name. The tag of the space's checkpoints is 19 bytes longer, and
a tag has at most 128 bytes."""


def check_log_name(name: str) -> str:
    """Return ``name`` if it is a valid log name.

    Raises:
        TypeError: ``name`` is not a str.
        ValueError: ``name`` is not 1 to 128 characters of A-Z a-z 0-9 _ . - or begins with . or -.
    """
    return _check_name(name, "log")


def check_cursor_name(name: str) -> str:
    """Return ``name`` if it is a valid cursor name; see :func:`check_log_name`."""
    return _check_name(name, "cursor")


def check_producer_name(name: str) -> str:
    """Return ``name`` if it is a valid producer name; see :func:`check_log_name`."""
    return _check_name(name, "producer")


def check_space_name(name: str) -> str:
    """Return ``name`` if it is a valid name for a space of objects.

    Raises:
        TypeError, ValueError: as for :func:`check_log_name`, but with at most 109 characters.
    """
    return _check_name(name, "space", _SPACE_NAME_BYTES_MAX)


def check_pattern(pattern: str) -> str:
    """Return a shell pattern for names.

    Raises:
        ValueError: it is longer than 256 characters. The time to match one grows with its square.
    """
    if len(pattern) > _PATTERN_MAX:
        raise ValueError(f"a pattern for names has at most {_PATTERN_MAX} characters")
    return pattern


check_tags = tags_checked


def _check_name(name: str, what: str, most: int = NAME_BYTES_MAX) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a {what} must be a string, not {name!r}")
    if len(name) > most or not _NAME.match(name):
        raise ValueError(
            f"{name!r} is not a valid name for a {what}: use 1 to {most} letters, digits, '_',"
            " '.' or '-', starting with a letter, a digit or '_'"
        )
    return name
