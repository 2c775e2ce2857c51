"""The clients that may append to a log: in words, as a column, and as JSON."""

from __future__ import annotations

from datetime import datetime, timezone

from zlog import ExclusiveWriter, View
from zlog.cli.template import iso


def who_appends(view: View) -> str:
    """Return the clients that may append to a log, in words."""
    if view.mirror:
        return "none: a mirror takes no appends"
    if view.read_only:
        return "none: the log is read-only"
    if view.writer is None:
        return "none: any client appends"
    return view.writer.name or view.writer.id


def position_source(view: View) -> str:
    """Return the source of a log's positions, or why there is none, as a column of a table."""
    if view.writer is not None:
        return f"writer {view.writer.name or view.writer.id}"
    return view.sequencer or ("read-only" if view.read_only else "-")


def since(writer: ExclusiveWriter) -> str:
    """Return when a writer took the log, by its own clock."""
    return f"{_taken(writer):%Y-%m-%d %H:%M:%S} UTC"


def appender_fields(view: View) -> dict[str, object]:
    """Return the clients that may append to a log, for JSON."""
    writer = view.writer
    named = writer and {"name": writer.name, "id": writer.id, "since": iso(_taken(writer))}
    return {"read_only": view.read_only, "writer": named}


def _taken(writer: ExclusiveWriter) -> datetime:
    return datetime.fromtimestamp(writer.since, timezone.utc)
