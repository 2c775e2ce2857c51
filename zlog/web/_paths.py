"""The paths of streams, as names of logs.

A byte other than a letter, a digit, ``_`` or ``-`` becomes ``.`` and two hex digits. If a name
could not begin with the result, ``_.-`` precedes it. No two paths have the same name.
"""

from __future__ import annotations

import re

from zlog.limits import NAME_BYTES_MAX

_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")
_ESCAPE = re.compile(rb"\.([0-9a-f]{2})")
_LEADING = "_.-"


def log_name(path: bytes) -> str:
    """Return the name of the log for a stream's path. Raises ValueError if it is invalid."""
    path.decode()
    name = _UNSAFE.sub(lambda found: b".%02x" % found[0][0], path).decode()
    name = _LEADING + name if name[:1] in ("", "-", ".") else name
    if not path or len(name) > NAME_BYTES_MAX:
        raise ValueError(
            f"a stream's path has 1 to {NAME_BYTES_MAX} bytes, and each byte other than a letter,"
            " a digit, '_' or '-' counts as three"
        )
    return name


def path_of(name: str) -> str:
    """Return the path of the stream in a log with this name."""
    escaped = name.removeprefix(_LEADING).encode()
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), escaped).decode()
