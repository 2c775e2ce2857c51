"""The plain API for all logs, at /v1/logs."""

from __future__ import annotations

import asyncio
import builtins
import json
import struct
from base64 import b64encode
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

import msgspec
from msgspec import UNSET, UnsetType
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

import zlog
import zlog.aio
from zlog.limits import POSITION_MAX
from zlog.names import check_log_name
from zlog.web._errors import Refusal, json_reply, location
from zlog.web._handles import Handle, Handles
from zlog.web._openapi import ARROW, ENTRIES_MAX, NAMES_MAX, NDJSON, RAW
from zlog.web._paths import path_of
from zlog.web._settings import OPTION, parse_time

_ENTRIES_DEFAULT = 1000
_REPLY_BYTES = 8 << 20
"""A reply ends with the entry that reaches this size."""

_HEADER, _COMPRESSION = 2, 3
"""The numbers of fields in Arrow's Message and RecordBatch."""

_GAPS_MAX = 100
"""How many gaps a header reports."""

Items = list[zlog.Entry | zlog.Gap]
Entries = tuple[list[bytes], list[list[str]]]


class _NewLog(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The settings of a new log; see :meth:`zlog.Log.create`."""

    width: int | UnsetType = UNSET
    stripe_unit: int | UnsetType = UNSET
    stripe_bytes: int | UnsetType = UNSET
    stripe_records: int | UnsetType = UNSET
    compression: str | UnsetType = UNSET
    options: dict[str, str] | UnsetType = UNSET
    hole_timeout: float | UnsetType | None = UNSET
    entry_bytes_max: int | UnsetType = UNSET
    ordering: str | UnsetType = UNSET


class _Trim(msgspec.Struct, forbid_unknown_fields=True):
    before: int
    past_cursors: bool = False


class _Line(msgspec.Struct):
    data: str | None = None
    data_b64: bytes | None = None  # which msgspec decodes
    tags: list[str] = []
    gap: str | None = None


class PlainLogs:
    """The operations of the plain API.

    Args:
        handles: the open logs.
        cacheable: ``public`` or ``private``.
    """

    def __init__(self, handles: Handles, cacheable: str) -> None:
        self._handles = handles
        self._cacheable = cacheable

    async def list(self, request: Request, name: str, body: bytes) -> Response:
        """Return names of logs that the token may read."""
        count = _integer(request.query_params, "count", NAMES_MAX, least=1, most=NAMES_MAX)
        after = request.query_params.get("after")
        after = "" if after is None else check_log_name(after)
        store, timeout = self._handles.store, self._handles.timeout
        grant, shown, more = request.path_params["grant"], builtins.list[str](), True
        while more and len(shown) < count:
            found = await zlog.aio.Log.list(store, after=after, count=NAMES_MAX, timeout=timeout)
            shown += [each for each in found if grant.allows("read", each)]
            after, more = found[-1] if found else after, len(found) == NAMES_MAX
        # The name of another log must not become known.
        following = shown[count - 1] if more or len(shown) > count else None
        return json_reply({"logs": shown[:count], "next": following})

    async def create(self, request: Request, name: str, body: bytes) -> Response:
        """Create a log."""
        wanted = msgspec.structs.asdict(_parse(body or b"{}", _NewLog))
        given = {each: value for each, value in wanted.items() if value is not UNSET}
        if OPTION in given.get("options", {}):
            raise ValueError(f"the option {OPTION!r} is reserved for streams")
        store, timeout = self._handles.store, self._handles.timeout
        async with zlog.aio.Log.create(store, name, **given, timeout=timeout) as log:
            return json_reply(await _info(log), 201, location(request))

    async def info(self, request: Request, name: str, body: bytes) -> Response:
        """Return a log's settings and positions."""
        async with self._handles.use(name) as handle:
            return json_reply(await _info(handle.log))

    async def remove(self, request: Request, name: str, body: bytes) -> Response:
        """Remove a log with all its entries."""
        async with self._handles.use(name) as handle:
            refuse_stream(handle)
            self._handles.drop(handle)
            await zlog.aio.Log.remove(self._handles.store, name, timeout=self._handles.timeout)
            return Response(None, 204)

    async def trim(self, request: Request, name: str, body: bytes) -> Response:
        """Trim all positions below one."""
        wanted = _parse(body, _Trim)
        async with self._handles.use(name) as handle:
            await handle.log.trim_to(wanted.before, past_cursors=wanted.past_cursors)
            return Response(None, 204)

    async def append(self, request: Request, name: str, body: bytes) -> Response:
        """Append entries."""
        query = request.query_params
        kind = request.headers.get("content-type", RAW).partition(";")[0].strip().lower()
        data, tags = await asyncio.to_thread(_DECODERS.get(kind, _from_raw), body)
        tags_each = [[*query.getlist("tag"), *each] for each in tags]
        expect, after = _integer(query, "expect"), _integer(query, "after")
        sets = query.getlist("unless")
        unless = [_parse(text.encode(), builtins.list[str], "unless") for text in sets]
        async with self._handles.use(name) as handle:
            refuse_stream(handle)
            positions = await handle.log.append_many(
                data, tags_each=tags_each, expect=expect, after=after, unless=unless
            )
            return json_reply({"positions": positions}, 201)

    async def read(self, request: Request, name: str, body: bytes) -> Response:
        """Return entries and gaps."""
        query = request.query_params
        start, end = _integer(query, "start"), _integer(query, "end")
        since, until = query.get("since"), query.get("until")
        limit = _integer(query, "limit", _ENTRIES_DEFAULT, least=1, most=ENTRIES_MAX)
        tags, match = query.getlist("tag") or None, query.get("match", "any")
        kind = _accepted(request.headers.get("accept", NDJSON))
        if None not in (start, since) or None not in (end, until) or match not in ("any", "all"):
            raise ValueError("give start or since, end or until, and match=any or match=all")
        async with self._handles.use(name) as handle:
            log = handle.log
            tail = await log.tail()
            first, last = start or 0, end
            if since is not None:
                first = await log.find_time(parse_time(since))
            if until is not None:
                last = await log.find_time(parse_time(until))
            last = tail if last is None else min(last, tail)
            found, size, position = Items(), 0, max(first, last)
            async for item in log.read_range(first, last, tags=tags, match=cast(Any, match)):
                found.append(item)
                if isinstance(item, zlog.Entry):
                    size += len(item.data) + sum(map(len, item.tags))
                if len(found) == limit or size >= _REPLY_BYTES:
                    position = item.end
                    break
            headers = {"Vary": "accept", "Zlog-Next": str(position), "Zlog-Tail": str(tail)}
            gaps = [item for item in found if isinstance(item, zlog.Gap)]
            if gaps and kind != NDJSON:
                shown = [(gap.position, gap.end, gap.kind.value) for gap in gaps[:_GAPS_MAX]]
                headers["Zlog-Gaps"] = json.dumps(shown)
            changing = {since, until} != {None} or any(
                gap.kind is zlog.GapKind.UNWRITTEN for gap in gaps
            )
            fixed = not changing and (position < tail or end == position)
            fresh = "max-age=31536000, immutable" if fixed else "no-cache"
            headers["Cache-Control"] = f"{self._cacheable}, {fresh}"
            state = f"{log.view.log_id}:{first}:{position}:{gaps}:{request.url.query}:{kind}"
            headers["ETag"] = etag = f'W/"{sha256(state.encode()).hexdigest()[:32]}"'
            if etag in request.headers.get("if-none-match", ""):
                return Response(None, 304, headers)
            return Response(_ENCODERS[kind](found), 200, headers, kind)

    async def read_one(self, request: Request, name: str, body: bytes) -> Response:
        """Return the data of one entry."""
        position = _number("the position", request.path_params["position"].decode())
        async with self._handles.use(name) as handle:
            entry = await handle.log.read(position)
            headers = {
                "Cache-Control": f"{self._cacheable}, max-age=31536000, immutable",
                "ETag": f'W/"{handle.log.view.log_id:x}:{position}"',
                "Zlog-Timestamp": _iso(entry.timestamp),
                "Zlog-Tags": json.dumps(sorted(entry.tags)),
            }
            return Response(entry.data, 200, headers, RAW)


async def _info(log: zlog.aio.Log) -> dict[str, Any]:
    tail, view = await log.tail(), log.view
    fields = {
        "name": log.name,
        "id": f"{view.log_id:016x}",
        "tail": tail,
        "earliest": await log.earliest(),
        "ordering": view.ordering,
        "width": view.stripes[-1].width,
        "options": dict(view.options),
    }
    return {**fields, "stream": path_of(log.name)} if OPTION in view.options else fields


def refuse_stream(handle: Handle) -> None:
    """Raise Refusal if the log holds a stream."""
    if handle.stream is not None:
        message = f"the log {handle.log.name!r} holds a stream"
        raise Refusal(409, "IsAStream", message, "Use /v1/stream/PATH.")


def _parse(text: bytes, kind: Any, what: str = "the body") -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} has invalid JSON: {error}") from None


def _from_raw(body: bytes) -> Entries:
    return [body], [[]]


def _from_ndjson(body: bytes) -> Entries:
    """Parse the lines of ``zlog read --json``. Gaps and empty lines are ignored."""
    data, tags = list[bytes](), list[list[str]]()
    for number, text in enumerate(body.split(b"\n"), 1):
        line = _parse(text, _Line, f"line {number}") if text.strip() else _Line(gap="")
        if line.gap is None:
            if (line.data is None) == (line.data_b64 is None):
                raise ValueError(f"line {number} needs either data or data_b64")
            data.append(line.data_b64 or (line.data or "").encode())
            tags.append(line.tags)
    return data, tags


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        hint = "Install pyarrow on the server."
        raise Refusal(501, "NoArrow", "this server has no Arrow", hint) from None
    return pyarrow


def _expands(message: Any) -> bool:
    """Whether a message of an Arrow stream can take much more memory than its bytes.

    PyArrow does not return whether buffers are compressed, so this looks into the FlatBuffer.
    """
    if message.type != "record batch":
        return bool(message.type == "dictionary")
    data = message.metadata.to_pybytes()

    def field(at: int, number: int) -> int:
        """Return where a field of the table that ``at`` points to is; 0 if it is missing."""
        table = at + struct.unpack_from("<I", data, at)[0]
        fields = table - struct.unpack_from("<i", data, table)[0]
        size = struct.unpack_from("<H", data, fields)[0]
        at = 4 + 2 * number
        given = struct.unpack_from("<H", data, fields + at)[0] if at < size else 0
        return table + given if given else 0

    return field(field(0, _HEADER), _COMPRESSION) > 0


def _from_arrow(body: bytes) -> Entries:
    """Read the columns data and, if it exists, tags."""
    pa = _arrow()
    try:
        if any(map(_expands, pa.ipc.MessageReader.open_stream(body))):
            raise ValueError("send Arrow without compressed buffers and dictionaries")
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
        texts = [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()]
        lists = [make(text) for make in (pa.list_, pa.large_list) for text in texts[2:]]
        for name, kinds in (("data", texts), ("tags", [*lists, pa.null()])):
            if name in table.column_names and table.schema.field(name).type not in kinds:
                raise ValueError("send data as binary or string, and tags as lists of strings")
        data = table.column("data").cast(pa.large_binary()).to_pylist()
        tags: list[list[str]] = [[] for _ in data]
        if "tags" in table.column_names:
            found = table.column("tags").cast(pa.list_(pa.string())).to_pylist()
            tags = [each or [] for each in found]
    except (pa.ArrowException, KeyError, OSError, struct.error) as error:
        raise ValueError(f"the body is not an Arrow stream with a column data: {error}") from None
    if None in data:
        raise ValueError("the column data has nulls")
    return data, tags


def _to_raw(items: Items) -> bytes:
    return b"".join(item.data for item in items if isinstance(item, zlog.Entry))


def _to_ndjson(items: Items) -> bytes:
    return b"".join(msgspec.json.encode(_fields(item)) + b"\n" for item in items)


def _fields(item: zlog.Entry | zlog.Gap) -> dict[str, Any]:
    """Return an entry or a gap with the fields that ``zlog read --json`` prints."""
    fields: dict[str, Any] = {"position": item.position}
    if isinstance(item, zlog.Gap):
        fields |= {"gap": item.kind.value, "end": item.end}
        if isinstance(item.detail, zlog.Fill):
            fields |= {"by": item.detail.by, "at": _iso(item.detail.at)}
        elif item.detail is not None:
            fields["objects"] = item.detail.objects
        return {**fields, "why": item.detail.why.value} if item.detail else fields
    fields["timestamp"] = _iso(item.timestamp)
    if item.tags:
        fields["tags"] = sorted(item.tags)
    try:
        return {**fields, "data": item.data.decode()}
    except UnicodeDecodeError:
        return {**fields, "data_b64": b64encode(item.data).decode()}


def _to_arrow(items: Items) -> bytes:
    pa = _arrow()
    entries = [item for item in items if isinstance(item, zlog.Entry)]
    time = pa.timestamp("us", tz="UTC")
    table = pa.table(
        {
            "position": pa.array([each.position for each in entries], pa.int64()),
            "timestamp": pa.array([each.timestamp for each in entries], time),
            "data": pa.array([each.data for each in entries], pa.binary()),
            "tags": pa.array([sorted(each.tags) for each in entries], pa.list_(pa.string())),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


_DECODERS = {NDJSON: _from_ndjson, ARROW: _from_arrow}
_ENCODERS = {NDJSON: _to_ndjson, ARROW: _to_arrow, RAW: _to_raw}


def _accepted(accept: str) -> str:
    """Return the first known media type that the client accepts."""
    for part in accept.lower().split(","):
        kind = part.partition(";")[0].strip()
        if kind in _ENCODERS or kind in ("*/*", "application/*", ""):
            return kind if kind in _ENCODERS else NDJSON
    raise Refusal(406, "NotAcceptable", f"entries are available as {', '.join(_ENCODERS)}")


def _integer(
    query: QueryParams, name: str, default: Any = None, least: int = 0, most: int = POSITION_MAX
) -> Any:
    if name not in query:
        return default
    number = _number(name, query[name])
    if not least <= number <= most:
        raise ValueError(f"{name} is a number from {least} to {most}")
    return number


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(POSITION_MAX)):
        raise ValueError(f"{name} is a whole number, not {text!r:.40}")
    return int(text)


def _iso(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
