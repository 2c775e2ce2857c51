"""The routes of the server, and their description in OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from zlog.distribution import version
from zlog.limits import (
    ENTRY_BYTES_MAX,
    NAME_BYTES_MAX,
    OPTION_VALUE_BYTES_MAX,
    ORDERINGS,
    POSITION_MAX,
    UNLESS_SETS_MAX,
    WIDTH_MAX,
)

JSON, NDJSON, RAW = "application/json", "application/x-ndjson", "application/octet-stream"
ARROW = "application/vnd.apache.arrow.stream"
CLOUD_EVENT, CLOUD_EVENTS = "application/cloudevents+json", "application/cloudevents-batch+json"
PROTOBUF = "application/x-protobuf"

ENTRIES_MAX, NAMES_MAX = 10_000, 1000

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_BYTES: Schema = {"type": "string", "format": "binary"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_NAME: Schema = {
    "type": "string",
    "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
    "maxLength": NAME_BYTES_MAX,
}
_TAGS: Schema = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": 128},
    "maxItems": 64,
}


def _number(most: int, least: int = 0) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


_POSITION = _number(POSITION_MAX)


def _object(required: str = "", **properties: Schema) -> Schema:
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required.split()} if required else found


_NEW_LOG = _object(
    width=_number(WIDTH_MAX, 1),
    stripe_unit={"enum": [1 << i for i in range(17)]},
    stripe_bytes={"type": "integer", "minimum": 1},
    stripe_records={"type": "integer", "minimum": 1},
    compression={"enum": ["none", "zstd", "lz4"]},
    options={
        "type": "object",
        "additionalProperties": {**_TEXT, "maxLength": OPTION_VALUE_BYTES_MAX},
    },
    hole_timeout={"type": ["number", "null"], "minimum": 0},
    entry_bytes_max=_number(ENTRY_BYTES_MAX, 1),
    ordering={"enum": [*ORDERINGS]},
)
_LOG = {"type": "object", "required": ["name", "id", "tail", "earliest", "ordering", "options"]}
_LOGS = _object("logs next", logs={"type": "array", "items": _NAME}, next={})
_POSITIONS = _object("positions", positions={"type": "array", "items": _POSITION})
_ERROR = {
    "type": "object",
    "required": ["code", "message", "hint"],
    "properties": {"code": _TEXT, "message": _TEXT, "hint": _TEXT},
}


def _open(required: str = "", **properties: Schema) -> Schema:
    return {**_object(required, **properties), "additionalProperties": True}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_GIVEN: Schema = {"type": "string", "minLength": 1}
_S3 = _open("bucket", bucket=_open("name", name=_GIVEN))
_S3_EVENTS = _open("Records", Records=_list(_open("eventName s3", eventName=_GIVEN, s3=_S3)))
_CLOUD = _open(
    "specversion id source type",
    specversion={"const": "1.0"},
    id=_GIVEN,
    source=_GIVEN,
    type=_GIVEN,
)
_LOG_RECORD = _open(severityNumber=_number(24), severityText=_TEXT)
_SCOPE_LOGS = _open(scope=_open(), logRecords=_list(_LOG_RECORD), schemaUrl=_TEXT)
_RESOURCE = _open(attributes=_list(_open(key=_TEXT, value=_open())))
_RESOURCE_LOGS = _open(resource=_RESOURCE, scopeLogs=_list(_SCOPE_LOGS), schemaUrl=_TEXT)
_LOG_RECORDS = _open(resourceLogs=_list(_RESOURCE_LOGS))


_NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Route(NamedTuple):
    """An operation of the server.

    Attributes:
        method, path: its address.
        name: ``stream_``, ``log_`` or ``event_``, and the name of the method that performs it.
        right: the right that it needs; empty if it needs none.
        summary: its purpose.
        query: its parameters.
        headers: the headers that it reads.
        body: the schema of its body for each media type.
        replies: the schema of its reply for each status and media type.
    """

    method: str
    path: str
    name: str
    right: str
    summary: str
    query: Mapping[str, Schema] = _NOTHING
    headers: str = ""
    body: Mapping[str, Schema] = _NOTHING
    replies: Mapping[int, Mapping[str, Schema]] = _NOTHING


_STREAM, _LOGS_PATH = "/v1/stream/{path}", "/v1/logs"
_LOG_PATH = _LOGS_PATH + "/{name}"
_ENTRIES = _LOG_PATH + "/entries"
_ANY: dict[str, Schema] = {"*/*": {}}
_READ: dict[str, Schema] = {NDJSON: _BYTES, ARROW: _BYTES, RAW: _BYTES}
_PRODUCER = " Producer-Id Producer-Epoch Producer-Seq"
_FORK = " Stream-Forked-From Stream-Fork-Offset Stream-Fork-Sub-Offset"

ROUTES = (
    Route(
        *("PUT", _STREAM, "stream_put", "create", "Create a stream"),
        headers="Stream-TTL Stream-Expires-At Stream-Closed" + _FORK,
        body=_ANY,
        replies={201: {}, 200: {}},
    ),
    Route(
        *("POST", _STREAM, "stream_post", "append", "Append to a stream, or close it"),
        headers="Stream-Seq Stream-Closed" + _PRODUCER,
        body=_ANY,
        replies={204: {}, 200: {}},
    ),
    Route(
        *("GET", _STREAM, "stream_get", "read", "Read a stream"),
        query={"offset": _TEXT, "live": {"enum": ["long-poll", "sse"]}, "cursor": _TEXT},
        headers="If-None-Match",
        replies={200: _ANY, 204: {}, 304: {}},
    ),
    Route("HEAD", _STREAM, "stream_head", "read", "Return a stream's settings", replies={200: {}}),
    Route("DELETE", _STREAM, "stream_delete", "remove", "Delete a stream", replies={204: {}}),
    Route(
        *("GET", _LOGS_PATH, "log_list", "", "List the logs that the token may read"),
        query={"after": _NAME, "count": _number(NAMES_MAX, 1)},
        replies={200: {JSON: _LOGS}},
    ),
    Route(
        *("PUT", _LOG_PATH, "log_create", "create", "Create a log"),
        body={JSON: _NEW_LOG},
        replies={201: {JSON: _LOG}},
    ),
    Route(
        *("GET", _LOG_PATH, "log_info", "read", "Return a log's settings and positions"),
        replies={200: {JSON: _LOG}},
    ),
    Route("DELETE", _LOG_PATH, "log_remove", "remove", "Remove a log", replies={204: {}}),
    Route(
        *("POST", _LOG_PATH + "/trim", "log_trim", "trim", "Trim all positions below one"),
        body={JSON: _object("before", before=_POSITION, past_cursors={"type": "boolean"})},
        replies={204: {}},
    ),
    Route(
        *("POST", _ENTRIES, "log_append", "append", "Append entries"),
        query={
            "tag": _TAGS,
            "expect": _POSITION,
            "after": _POSITION,
            "unless": {"type": "array", "items": _TEXT, "maxItems": UNLESS_SETS_MAX},
        },
        body=_READ,
        replies={201: {JSON: _POSITIONS}},
    ),
    Route(
        *("GET", _ENTRIES, "log_read", "read", "Read entries and gaps"),
        query={
            "start": _POSITION,
            "end": _POSITION,
            "since": _TIME,
            "until": _TIME,
            "tag": _TAGS,
            "match": {"enum": ["any", "all"]},
            "limit": _number(ENTRIES_MAX, 1),
        },
        headers="If-None-Match",
        replies={200: _READ, 304: {}},
    ),
    Route(
        *("GET", _ENTRIES + "/{position}", "log_read_one", "read", "Read the data of one entry"),
        replies={200: {RAW: _BYTES}},
    ),
    Route(
        *("POST", "/v1/events/{name}", "event_receive", "append", "Append events"),
        body={JSON: _S3_EVENTS, CLOUD_EVENT: _CLOUD, CLOUD_EVENTS: _list(_CLOUD)},
        replies={201: {JSON: _POSITIONS}, 200: {JSON: _POSITIONS}},
    ),
    Route(
        *("POST", "/v1/otlp/{name}/v1/logs", "event_receive_logs", "append", "Append log records"),
        body={JSON: _LOG_RECORDS, PROTOBUF: _BYTES},
        replies={200: {JSON: {"type": "object"}, PROTOBUF: _BYTES}},
    ),
)
"""All operations, except the document itself, which is at /openapi.json."""


def document() -> Schema:
    """Return the description of the server in OpenAPI 3.1."""
    paths: dict[str, dict[str, Schema]] = {}
    for route in ROUTES:
        in_path = {
            each: {"name": _NAME, "position": _POSITION, "path": {**_TEXT, "minLength": 1}}[each]
            for each in ("name", "position", "path")
            if "{" + each + "}" in route.path
        }
        operation: Schema = {
            "operationId": route.name,
            "summary": route.summary,
            "parameters": [
                *(_parameter("path", name, schema) for name, schema in in_path.items()),
                *(_parameter("query", name, schema) for name, schema in route.query.items()),
                *(_parameter("header", name, _TEXT) for name in route.headers.split()),
            ],
            "responses": {"default": {"$ref": "#/components/responses/Error"}},
        }
        for status, kinds in route.replies.items():
            reply: Schema = {"description": route.summary}
            if kinds:
                reply["content"] = _content(kinds)
            operation["responses"][str(status)] = reply
        if route.body:
            operation["requestBody"] = {"content": _content(route.body), "required": False}
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    error = {"description": "The request failed.", "content": _content({JSON: _ERROR})}
    return {
        "openapi": "3.1.0",
        "info": {"title": "zlog", "version": version()},
        "paths": paths,
        "security": [{}, {"token": []}],
        "components": {
            "responses": {"Error": error},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _parameter(place: str, name: str, schema: Schema) -> Schema:
    return {"in": place, "name": name, "schema": schema, "required": place == "path"}


def _content(kinds: Mapping[str, Schema]) -> Schema:
    return {kind: {"schema": schema} for kind, schema in kinds.items()}
