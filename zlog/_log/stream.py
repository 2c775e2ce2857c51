"""Names and tags of streams, of either kind."""

from __future__ import annotations

import re

from zlog._client import Tags
from zlog.names import check_tags

_ESCAPED = re.compile(r"[^A-Za-z0-9_]")


def cursor_name(stream: str, name: str) -> str:
    """Return what a stream's cursor is called in the log: ``stream.TAG.NAME``.

    Of the tag, letters, digits and ``_`` stay; each other byte of its UTF-8 becomes ``-`` and two
    hex digits. So no two streams share a cursor.
    """
    escaped = _ESCAPED.sub(lambda found: "".join(f"-{b:02x}" for b in found[0].encode()), stream)
    return f"stream.{escaped}.{name}"


def with_tag(stream: str, tags: Tags) -> Tags:
    """Return the tags of an entry of a stream that has others beside.

    Raises:
        TypeError: the others are one str, and no collection.
        InvalidTag: one of them is invalid.
    """
    return (stream, *check_tags(tags))
