"""The event bus: S3 events, CloudEvents and OpenTelemetry's log records become entries."""

from __future__ import annotations

import asyncio
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

import zlog
import zlog.aio
from zlog.limits import APPEND_BYTES_MAX, APPEND_ENTRIES_MAX, UNLESS_SETS_MAX
from zlog.web._errors import Refusal, json_reply
from zlog.web._handles import Handles
from zlog.web._logs import refuse_stream
from zlog.web._openapi import CLOUD_EVENT, CLOUD_EVENTS, JSON, PROTOBUF
from zlog.web._settings import RAW_LIST

REMEMBERED = 200_000
"""How many positions below the tail are searched for a copy of an event.

The search takes a request for each stripe, so it must not become slower as the log grows.
"""

_TAG_BYTES_MAX = 128
_HINT = (
    'Send S3 events as Ceph does ({"Records": [...]}), or CloudEvents 1.0'
    f" as {CLOUD_EVENT} or with the ce- headers."
)
_ATTRIBUTE = re.compile("[a-z0-9]+")
_SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")


_T = TypeVar("_T")


class Event(NamedTuple):
    """An entry to append. ``id`` is the tag that only this event has, or empty."""

    data: bytes
    tags: list[str]
    id: str = ""


_Given = Annotated[str, msgspec.Meta(min_length=1)]


class _CloudEvent(msgspec.Struct):
    """What the specification of CloudEvents says about the attributes that it defines."""

    specversion: Literal["1.0"]
    id: _Given
    source: _Given
    type: _Given
    subject: _Given | None = None
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    datacontenttype: _Given | None = None
    dataschema: _Given | None = None
    data: Any = None
    data_base64: bytes | None = None


class _Attribute(msgspec.Struct):
    key: str = ""
    value: dict[str, Any] | None = None


class _ScopeLogs(msgspec.Struct, rename="camel", omit_defaults=True):
    scope: dict[str, Any] | None = None
    log_records: list[dict[str, Any]] | None = None
    schema_url: str | None = None


class _ResourceLogs(msgspec.Struct, rename="camel", omit_defaults=True):
    resource: dict[str, Any] | None = None
    scope_logs: list[_ScopeLogs] | None = None
    schema_url: str | None = None


class _LogsData(msgspec.Struct, rename="camel"):
    resource_logs: list[_ResourceLogs] | None = None


_Records = Iterator[tuple[_ResourceLogs, _ScopeLogs, dict[str, Any] | None]]


class Events:
    """Appends events that other programs send.

    Args:
        handles: the open logs.
    """

    def __init__(self, handles: Handles) -> None:
        self._handles = handles

    async def receive(self, request: Request, name: str, body: bytes) -> Response:
        """Append S3 events or CloudEvents."""
        events = await _checked(_HINT, _parsed, request.headers, body)
        async with self._handles.use(name) as handle:
            refuse_stream(handle)
            positions, count = await _append(handle.log, events)
            return json_reply({"positions": positions}, 201 if count else 200)

    async def receive_logs(self, request: Request, name: str, body: bytes) -> Response:
        """Append log records. Records larger than the log permits are rejected."""
        kind = _media_type(request.headers)
        hint = f"Send an ExportLogsServiceRequest of OTLP as {PROTOBUF} or {JSON}."
        if kind not in (JSON, PROTOBUF):
            raise Refusal(415, "UnsupportedMediaType", f"{kind!r:.80} is not supported", hint)
        async with self._handles.use(name) as handle:
            refuse_stream(handle)
            most = handle.log.entry_bytes_max
            events, rejected = await _checked(hint, _log_records, kind, body, most)
            await _append(handle.log, events)
        reply: dict[str, Any] = {}
        if rejected:
            reason = f"an entry of this log has at most {most} bytes"
            reply = {"partialSuccess": {"rejectedLogRecords": rejected, "errorMessage": reason}}
        if kind == JSON:
            return json_reply(reply)
        from google.protobuf.json_format import ParseDict

        message = ParseDict(reply, _otlp().ExportLogsServiceResponse())
        return Response(message.SerializeToString(), media_type=PROTOBUF)


async def _append(log: zlog.aio.Log, events: list[Event]) -> tuple[list[int], int]:
    """Append events. Returns the position of each, and the number of appended ones.

    A log that is ordered by its object does not get an event twice.
    """

    async def add(new: list[Event], **condition: Any) -> list[int]:
        data, tags_each = [event.data for event in new], [event.tags for event in new]
        return await log.append_many(data, tags_each=tags_each, **condition)

    if log.view.ordering != "object" or not all(event.id for event in events):
        return await add(events), len(events)
    size = max(len(event.data) for event in events) if events else 0
    if size > log.entry_bytes_max:  # before the first part is appended
        raise zlog.EntryTooLarge(f"an event has {size} bytes of at most {log.entry_bytes_max}")
    positions: list[int] = []
    count = 0
    for start in range(0, len(events), UNLESS_SETS_MAX):
        some = {event.id: event for event in events[start : start + UNLESS_SETS_MAX]}
        known: dict[str, int] = {}
        while len(known) < len(some):
            tail = await log.tail()
            async for item in log.read_range(max(0, tail - REMEMBERED), tail, tags=some.keys()):
                if isinstance(item, zlog.Entry):
                    known |= {tag: item.position for tag in item.tags if tag in some}
            new = [event for event in some.values() if event.id not in known]
            unless, after = [[event.id] for event in new], tail - 1 if tail else None
            with suppress(zlog.Conflict):  # another server has appended some of them meanwhile
                added = await add(new, unless=unless, after=after) if new else []
                known |= {event.id: position for event, position in zip(new, added, strict=True)}
                count += len(added)
        positions += [known[event.id] for event in events[start : start + UNLESS_SETS_MAX]]
    return positions, count


def _parsed(headers: Mapping[str, str], body: bytes) -> list[Event]:
    kind = _media_type(headers)
    if kind == CLOUD_EVENTS:
        return [_cloud_event(bytes(raw)) for raw in _decoded(body, RAW_LIST)]
    if kind == CLOUD_EVENT:
        return [_cloud_event(body)]
    if kind.startswith("application/cloudevents"):
        raise Refusal(415, "UnsupportedMediaType", f"{kind!r:.80} is not supported", _HINT)
    if "ce-specversion" in headers:
        return [_cloud_event(_structured(headers, kind, body))]
    records = _decoded(body, dict[str, msgspec.Raw]).get("Records", b"null")
    return [_s3_event(bytes(raw)) for raw in _decoded(bytes(records), RAW_LIST)]


def _structured(headers: Mapping[str, str], kind: str, body: bytes) -> bytes:
    """Return a CloudEvent in JSON whose attributes are headers."""
    fields: dict[str, Any] = {}
    for header, value in headers.items():
        if header.startswith("ce-") and header != "ce-data":
            name = header[3:]
            if name in fields or not _ATTRIBUTE.fullmatch(name):
                raise ValueError(f"the header {header:.40} is repeated or not an attribute")
            fields[name] = unquote_to_bytes(value.encode("latin-1")).decode()
    if kind:
        fields["datacontenttype"] = headers["content-type"]
    if body and (kind == JSON or kind.endswith("+json")):
        fields["data"] = _decoded(body, msgspec.Raw)
    elif body:
        fields["data_base64"] = b64encode(body).decode()
    return msgspec.json.encode(fields)


def _cloud_event(data: bytes) -> Event:
    event = _decoded(data, _CloudEvent)
    fields = _decoded(data, dict[str, Any])
    if {"data", "data_base64"} <= fields.keys():
        raise ValueError("give data or data_base64, not both")
    for name in fields.keys() - {"data", "data_base64"}:
        if not _ATTRIBUTE.fullmatch(name) or isinstance(fields[name], list | dict | float):
            raise ValueError(f"{name!r:.40} is not a valid attribute, or has an invalid value")
    # If a request deletes several objects, Ceph gives the same id to all its events.
    identity = _identity(event.source, event.id, event.type, event.subject)
    tags = [_tag("type", event.type), _tag("source", event.source), identity]
    return Event(data, tags, identity)


def _s3_event(data: bytes) -> Event:
    record = _decoded(data, dict[str, Any])
    name, bucket = _text(record, "eventName"), _text(record, "s3", "bucket", "name")
    # All of the record identifies the event. It has the request's id and a sequence number.
    identity = _identity(data.decode())
    tags = [_tag("bucket", bucket), _tag("event", name.removeprefix("s3:")), identity]
    return Event(data, tags, identity)


def _log_records(kind: str, body: bytes, most: int) -> tuple[list[Event], int]:
    """Return an event for each log record, and how many have more than ``most`` bytes.

    An event is a LogsData message with one record, as in OpenTelemetry's files of JSON lines.
    """
    events: list[Event] = []
    rejected = size = 0
    records = _from_json(body) if kind == JSON else _from_protobuf(body, most)
    for group, scope, record in records:
        if record is not None:
            one = replace(group, scope_logs=[replace(scope, log_records=[record])])
            data = msgspec.json.encode(_LogsData([one]))
            size += len(data)  # also of a rejected one, which took as much time
        if len(events) == APPEND_ENTRIES_MAX or size > APPEND_BYTES_MAX:
            message = (
                f"a request has at most {APPEND_ENTRIES_MAX} log records with"
                f" {APPEND_BYTES_MAX >> 20} MiB, counting resource and scope for each record"
            )
            raise Refusal(413, "BodyTooLarge", message, "Let the exporter send smaller batches.")
        if record is None or len(data) > most:
            rejected += 1
            continue
        events.append(Event(data, _log_tags(group.resource or {}, record)))
    return events, rejected


def _from_json(body: bytes) -> _Records:
    for group in _decoded(body, _LogsData).resource_logs or ():
        for scope in group.scope_logs or ():
            for record in scope.log_records or ():
                yield group, scope, record


def _from_protobuf(body: bytes, most: int) -> _Records:
    """Parse a request.

    A record above the limit is None. In JSON it would be larger still, and as objects of Python a
    hundred times as large.
    """
    request = _otlp().ExportLogsServiceRequest
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError

    def fields(message: Any) -> dict[str, Any]:
        found: dict[str, Any] = MessageToDict(message, use_integers_for_enums=True)
        for name in {"traceId", "spanId"} & found.keys():  # OTLP has its own format for these
            found[name] = b64decode(found[name]).hex()
        return found

    try:
        groups = request.FromString(body).resource_logs
    except DecodeError as error:
        raise ValueError(str(error)) from None
    for group in groups:
        for scope in group.scope_logs:
            left = most - group.resource.ByteSize() - scope.scope.ByteSize()
            fits = [record.ByteSize() <= left for record in scope.log_records]
            outer, inner = _ResourceLogs(), _ScopeLogs()
            if any(fits):
                outer = _ResourceLogs(fields(group.resource), None, group.schema_url or None)
                inner = _ScopeLogs(fields(scope.scope), None, scope.schema_url or None)
            for record, fit in zip(scope.log_records, fits, strict=True):
                yield outer, inner, fields(record) if fit else None


def _otlp() -> Any:
    try:
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
    except ImportError:
        hint = f"Send {JSON}, or install opentelemetry-proto on the server."
        raise Refusal(415, "NoProtobuf", "this server cannot read protobuf", hint) from None
    return logs_service_pb2


def _log_tags(resource: dict[str, Any], record: dict[str, Any]) -> list[str]:
    tags = []
    for each in msgspec.convert(resource.get("attributes") or [], list[_Attribute]):
        name = (each.value or {}).get("stringValue")
        if each.key == "service.name" and isinstance(name, str):
            tags = [_tag("service.name", name)]
    number, text = record.get("severityNumber"), record.get("severityText")
    if isinstance(number, int) and 0 < number <= 24:
        text = _SEVERITIES[(number - 1) // 4]
    return [*tags, _tag("severity", text)] if text and isinstance(text, str) else tags


async def _checked(hint: str, parse: Callable[..., _T], *arguments: Any) -> _T:
    """Parse a body in a thread, since this may take a second. Raises Refusal if it is invalid."""
    try:
        return await asyncio.to_thread(parse, *arguments)
    except (RecursionError, ValueError) as error:
        raise Refusal(400, "InvalidEvent", f"the body is not valid: {error}", hint) from None


def _decoded(body: bytes, kind: Any) -> Any:
    return msgspec.json.decode(body.decode(), type=kind)


def _text(value: Any, *path: str) -> str:
    """Return a text in objects that contain each other."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if not value or not isinstance(value, str):
        raise ValueError(f"{'.'.join(path)} is missing or not a text")
    return value


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _tag(key: str, value: str) -> str:
    """Return a tag, cut to the maximum length."""
    return f"{key}:{value}".encode()[:_TAG_BYTES_MAX].decode(errors="ignore")


def _identity(*parts: Any) -> str:
    return "id:" + sha256(msgspec.json.encode(parts)).hexdigest()[:32]
