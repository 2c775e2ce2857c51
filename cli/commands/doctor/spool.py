"""Examines spools."""

from __future__ import annotations

import shlex

from zlog import ZlogError, spool_stat
from zlog.cli.commands.doctor.diagnosis import Diagnosis, failed, failure, ok, warning
from zlog.cli.render import entries_of


def examine(directory: str) -> Diagnosis:
    """Examine the spool in a directory."""
    part = f"spool {directory}"
    try:
        stat = spool_stat(directory)
    except ZlogError as error:
        return failed(part, error)
    text = f"{entries_of(stat.entries)} ({stat.bytes:,} bytes) for log {stat.log!r}"
    if stat.entries:
        text += f", the oldest {stat.age:,.0f} s old"
    if stat.dropped:
        text += f"; {entries_of(stat.dropped)} dropped since it was created"
    if stat.error:
        text += f"; the last attempt failed: {stat.error}"
    if stat.state == "blocked":
        return failure(part, text, stat.hint)
    if stat.entries or stat.error:
        return warning(part, text, f"zlog forward {shlex.quote(directory)}   # sends the entries")
    return ok(part, text)
