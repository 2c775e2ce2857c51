"""The settings of streams, and what the headers of requests say about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Annotated, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec

from zlog.limits import APPEND_ENTRIES_MAX
from zlog.web._paths import log_name

PREFIX = "/v1/stream/"

OPTION = "stream"
"""The log's option with the stream's settings."""

RAW_LIST = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=APPEND_ENTRIES_MAX)]
"""The elements of an array, not more than one append can have."""

NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_INTEGER_MAX = 2**53 - 1
_ID_BYTES_MAX, _TYPE_BYTES_MAX = 115, 256
_OFFSET = re.compile(r"([0-9]{16})_([0-9]{16})")
_TYPE = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+( *;[ -~]*)?", re.ASCII)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of a stream, and the source of a fork.

    Attributes:
        type: the content type.
        ttl: the seconds after which an unused stream expires.
        expires: when the stream expires, as in RFC 3339.
        source: the name of the source's log; empty if the stream is not a fork.
        source_id: the ``log_id`` of that log.
        offset: the offset of the source at which the fork begins.
        sub: how many bytes or messages of the next append the fork has also inherited.
        fork_id: a random id under which the source knows the fork.
    """

    type: str
    ttl: int | None = None
    expires: str | None = None
    source: str = ""
    source_id: int = 0
    offset: int = 0
    sub: int = 0
    fork_id: str = ""

    @property
    def is_json(self) -> bool:
        """Whether the entries are JSON messages."""
        return media_type(self.type) == "application/json"

    @property
    def expires_at(self) -> float | None:
        """When the stream expires, in seconds since 1970."""
        return parse_time(self.expires).timestamp() if self.expires else None


def media_type(content_type: str) -> str:
    """Return a content type without parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def parse_time(text: str) -> datetime:
    """Parse a time as in RFC 3339. Raises ValueError if it is invalid or has no time zone."""
    found = _TIME.fullmatch(text)
    try:
        if found:
            fraction = (found[2] or ".")[:7].ljust(7, "0")
            zone = "+00:00" if found[3] in "Zz" else found[3]
            when = datetime.fromisoformat(found[1] + fraction + zone)
            if when.timestamp() >= 0:
                return when
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{text!r:.40} is not a time since 1970, as in RFC 3339")


class Producer(NamedTuple):
    """The producer of an append, with its epoch and the append's sequence number."""

    id: str
    epoch: int
    seq: int

    @property
    def tag(self) -> str:
        """The tag of all its appends. A hash replaces a long id.

        The last append also has the tag ``ds:at=EPOCH.SEQ``.
        """
        if len(self.id.encode()) <= _ID_BYTES_MAX:
            return "ds:producer=" + self.id
        return "ds:producer=" + sha256(self.id.encode()).hexdigest().rjust(_ID_BYTES_MAX + 1, "#")


def source_of(headers: Mapping[str, str]) -> str:
    """Return the name of the log of which a request makes a fork; empty if it makes none."""
    path = headers.get("stream-forked-from")
    if path is None:
        return ""
    if not path.startswith(PREFIX):
        raise ValueError(f"Stream-Forked-From begins with {PREFIX}")
    return log_name(unquote_to_bytes(path[len(PREFIX) :]))


def wanted_by(headers: Mapping[str, str]) -> Settings:
    """Return the settings that a PUT asks for. An offset of -1 is the source's tail."""
    ttl, expires = headers.get("stream-ttl"), headers.get("stream-expires-at")
    if ttl is not None and expires is not None:
        raise ValueError("give Stream-TTL or Stream-Expires-At, not both")
    if expires is not None:
        parse_time(expires)
    kind, source = headers.get("content-type", ""), source_of(headers)
    if kind and not (_TYPE.fullmatch(kind) and len(kind) <= _TYPE_BYTES_MAX):
        raise ValueError(f"{kind!r:.40} is not a content type, or is too long")
    offset, sub = headers.get("stream-fork-offset"), headers.get("stream-fork-sub-offset")
    if not source and (offset is not None or sub is not None):
        raise ValueError("the offset of a fork needs Stream-Forked-From")
    return Settings(
        kind,
        None if ttl is None else number_of(ttl, "Stream-TTL"),
        expires,
        source,
        offset=offset_of(offset)[0] if offset is not None else -1 if source else 0,
        sub=0 if sub is None else number_of(sub, "Stream-Fork-Sub-Offset"),
    )


def inherit(wanted: Settings, source: Settings | None) -> Settings:
    """Return complete settings. A fork inherits what was not given from its source."""
    if source is None:
        return msgspec.structs.replace(wanted, type=wanted.type or "application/octet-stream")
    timed = wanted if wanted.ttl is not None or wanted.expires else source
    return msgspec.structs.replace(
        wanted, type=wanted.type or source.type, ttl=timed.ttl, expires=timed.expires
    )


def same(wanted: Settings, found: Settings) -> bool:
    """Whether an existing stream has the settings that a PUT asks for."""
    wanted = inherit(wanted, found if wanted.source else None)
    if wanted.offset < 0:
        wanted = msgspec.structs.replace(wanted, offset=found.offset)
    one, other = (
        (media_type(each.type), each.ttl, each.expires_at, each.source, each.offset, each.sub)
        for each in (wanted, found)
    )
    return one == other


def offset_of(text: str) -> tuple[int, int]:
    """Parse an offset from :func:`offset_text`, into the offset and the mark of its log."""
    found = _OFFSET.fullmatch(text)
    if found is None:
        raise ValueError("the offset is not one that this server has returned")
    return int(found[1]), int(found[2])


def number_of(text: str, header: str) -> int:
    """Parse the number in a header."""
    if not NUMBER.fullmatch(text) or int(text) > _INTEGER_MAX:
        raise ValueError(f"{header} is a whole number without sign or zeros before it")
    return int(text)


def closes(headers: Mapping[str, str]) -> bool:
    """Whether a request closes its stream."""
    return headers.get("stream-closed", "").lower() == "true"


def producer_of(headers: Mapping[str, str]) -> Producer | None:
    """Return the producer of an append, or None if it has none."""
    name, epoch, seq = (headers.get(f"producer-{part}") for part in ("id", "epoch", "seq"))
    if name is epoch is seq is None:
        return None
    if not name or epoch is None or seq is None:
        raise ValueError("give Producer-Id, Producer-Epoch and Producer-Seq, or none of them")
    return Producer(name, number_of(epoch, "Producer-Epoch"), number_of(seq, "Producer-Seq"))


def order_of(headers: Mapping[str, str]) -> str | None:
    """Return the Stream-Seq of an append."""
    order = headers.get("stream-seq")
    if order is not None and not 0 < len(order.encode()) <= _ID_BYTES_MAX:
        raise ValueError(f"Stream-Seq has 1 to {_ID_BYTES_MAX} bytes")
    return order


def offset_text(offset: int, log_id: int) -> str:
    """Return an offset as clients see it. Its second part marks the log that it belongs to."""
    return f"{offset:016d}_{log_id % 10**16:016d}"
