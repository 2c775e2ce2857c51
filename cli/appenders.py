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


BY_OBJECT = "ordered by its object"
"""Appears instead of a sequencer."""


def position_source(view: View) -> str:
    """Return the source of a log's positions, or why there is none, as a column of a table."""
    if view.writer is not None:
        return f"writer {view.writer.name or view.writer.id}"
    if view.read_only:
        return "read-only"
    return BY_OBJECT if view.ordered else view.sequencer or "-"


def since(writer: ExclusiveWriter) -> str:
    """Return when a writer took the log, by its own clock."""
    return f"{_taken(writer):%Y-%m-%d %H:%M:%S} UTC"


def appender_fields(view: View) -> dict[str, object]:
    """Return the clients that may append to a log, for JSON."""
    writer = view.writer
    named = writer and {"name": writer.name, "id": writer.id, "since": iso(_taken(writer))}
    return {"ordering": view.ordering, "read_only": view.read_only, "writer": named}


def _taken(writer: ExclusiveWriter) -> datetime:
    return datetime.fromtimestamp(writer.since, timezone.utc)
