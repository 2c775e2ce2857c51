"""The server as an ASGI application: checks, limits, dispatch, access log and metrics."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
import time
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import zstandard
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

import zlog
from zlog.admin import is_loopback
from zlog.names import check_log_name
from zlog.web._access import Access, Grant
from zlog.web._durable import DurableStreams
from zlog.web._errors import Refusal, json_reply, reply_to
from zlog.web._events import Events
from zlog.web._handles import Handles, StaleHandle
from zlog.web._logs import PlainLogs
from zlog.web._openapi import ROUTES, Route, document
from zlog.web._paths import log_name
from zlog.web._settings import source_of

if TYPE_CHECKING:
    from prometheus_client import Metric
    from starlette.types import Message, Receive, Scope, Send

LOGGER = logging.getLogger("zlog.web")

_COMPRESS_BYTES_MIN = 1024
_BUFFERED_BYTES_MAX = 256 << 20
"""The maximum size of all request bodies in memory."""

_DISCARD_FACTOR = 4
"""How many times the limit of a body is read, so that the client gets the refusal."""

_UNPACK_BYTES = 4096
"""How much of a body is decompressed at once. It can become some ten thousand times as long."""

_REFUSED = re.compile(r"q=0(\.0*)?")
"""The weight of a content encoding that the client does not take."""

_METHODS = "GET, HEAD, PUT, POST, DELETE, OPTIONS"
_CORS_HEADERS = (
    "authorization, content-encoding, content-type, if-none-match, producer-epoch, producer-id,"
    " producer-seq, stream-closed, stream-expires-at, stream-fork-offset, stream-fork-sub-offset,"
    " stream-forked-from, stream-seq, stream-ttl"
)


@dataclass(frozen=True)
class Limits:
    """Bounds of what clients can use.

    Attributes:
        body_bytes: the maximum size of a request's body, before and after decompression.
        poll_seconds: how long a long-poll waits.
        events_seconds: how long a stream of events lasts.
        waits: the maximum number of waiting readers of each token.
        rate: the maximum number of requests in a second of each token.
        connections: the maximum number of connections.
    """

    body_bytes: int = 8 << 20
    poll_seconds: float = 15.0
    events_seconds: float = 60.0
    waits: int = 2000
    rate: float = 100_000
    connections: int = 4000


class Service:
    """An ASGI application that serves the logs of a store, and a collector of its metrics.

    Args:
        store: the store, which must stay open.
        access: who may do what.
        limits: bounds of what clients can use.
        timeout: the timeout of each call to the store, in seconds.
        origins: the origins whose pages may use this server; ``*`` means all.
        access_log: whether to log each request.
    """

    def __init__(
        self,
        store: zlog.Store,
        access: Access,
        limits: Limits,
        *,
        timeout: float | None = 30.0,
        origins: Sequence[str] = (),
        access_log: bool = False,
    ) -> None:
        self.limits = limits
        self._handles = Handles(store, timeout)
        self._access = access
        self._origins = frozenset(origins)
        self._access_log = access_log
        self._buffered = self._waits = self._sent = 0
        self._counts: Counter[tuple[str, int]] = Counter()
        cacheable = "public" if access.open else "private"
        times = limits.poll_seconds, limits.events_seconds
        self._streams = DurableStreams(self._handles, *times, cacheable)
        functions = {
            "stream": self._streams,
            "log": PlainLogs(self._handles, cacheable),
            "event": Events(self._handles),
        }
        self._routes: dict[re.Pattern[str], Methods] = {}
        for route in ROUTES:
            shape = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(route.path))
            shape = shape.replace("(?P<path>[^/]+)", "(?P<path>.+)")
            kind, _, name = route.name.partition("_")
            function = getattr(functions[kind], name)
            self._routes.setdefault(re.compile(shape), {})[route.method] = route, function
        described = Route("GET", "/openapi.json", "", "", "Describe the server")
        self._routes[re.compile(described.path)] = {"GET": (described, _describe)}

    def describe(self) -> Sequence[Metric]:
        """Return no metrics, as prometheus-client permits."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return the metrics for a scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        what = "Requests that were answered, by method and status."
        requests = CounterMetricFamily("zlog_http_requests", what, labels=["method", "status"])
        for (method, status), count in [*self._counts.items()]:
            requests.add_metric([method, str(status)], count)
        yield requests
        yield CounterMetricFamily("zlog_http_sent_bytes", "Bytes of replies.", value=self._sent)
        for name, what, value in (
            ("waiting", "Waiting readers: long-polls and event streams.", self._waits),
            ("body_bytes", "Bytes of requests' bodies in memory.", self._buffered),
            ("open_logs", "Open logs.", len(self._handles.open)),
        ):
            yield GaugeMetricFamily(f"zlog_http_{name}", what, value=value)

    def end_waits(self) -> None:
        """End long-polls and event streams, with an offset at which clients can resume."""
        self._streams.ending = True
        for handle in self._handles.open.values():
            if handle.stream is not None:
                handle.stream.live.wake()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self._handles.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
        request, done = Request(scope, receive), _Done()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                done.status = message["status"]
                self._add_headers(request, MutableHeaders(scope=message))
            done.sent += len(message.get("body", b""))
            try:
                await send(message)
            except RuntimeError as error:  # of uvloop
                if "closed" not in str(error):
                    raise
                raise ClientDisconnect from error

        try:
            try:
                await self._respond(request, done, send_counted)
            except ClientDisconnect:
                raise
            except Exception as error:
                response = reply_to(error, self._handles.store.url)
                if response.status_code >= 500 and not isinstance(error, Refusal):
                    unknown = response.status_code == 500
                    LOGGER.warning("a request failed: %r", error, exc_info=unknown)
                if done.status == _ENDED:  # the reply has not begun
                    await response(scope, receive, send_counted)
        except ClientDisconnect:
            pass
        finally:
            self._counts[request.method if request.method in _METHODS else "-", done.status] += 1
            self._sent += done.sent
            if self._access_log:
                LOGGER.info("%s", json.dumps(done.fields(scope)))

    async def _respond(self, request: Request, done: _Done, send: Send) -> None:
        self._check_sender(request)
        if request.method == "OPTIONS":
            allowed = ", ".join([*self._route(request)[0], "OPTIONS"])
            response = Response(None, 204, {"Allow": allowed})
            await response(request.scope, request.receive, send)
            return
        grant = self._access.grant_of(request.headers)
        done.token_name = grant.name
        grant.count(self.limits.rate)
        waits = "live" in request.query_params
        with grant.waiting(self.limits.waits) if waits else nullcontext():
            self._waits += waits
            try:
                response = await self._answer(request, grant)
                await response(request.scope, request.receive, send)
            finally:
                self._waits -= waits

    def _route(self, request: Request) -> tuple[Methods, dict[str, bytes]]:
        """Return the methods of an address, and the variable parts of the path."""
        path = (request.scope.get("raw_path") or request.scope["path"].encode()).partition(b"?")[0]
        for shape, methods in self._routes.items():
            if found := shape.fullmatch(path.decode("latin-1")):
                given = found.groupdict().items()
                return methods, {each: unquote_to_bytes(value) for each, value in given}
        raise Refusal(404, "NoSuchAddress", "no such address", "GET /openapi.json lists them.")

    async def _answer(self, request: Request, grant: Grant) -> Response:
        methods, given = self._route(request)
        if request.method not in methods:
            allowed = ", ".join([*methods, "OPTIONS"])
            message = f"this address has the methods {allowed}"
            raise Refusal(405, "MethodNotAllowed", message, Allow=allowed)
        route, endpoint = methods[request.method]
        _check_query(request, route)
        request.scope["path_params"] = {"grant": grant, **given}
        name = ""
        if "path" in given:
            name = log_name(given["path"])
            source = source_of(request.headers) if request.method == "PUT" else ""
            if source:
                grant.require("read", source)
        elif "name" in given:
            name = check_log_name(given["name"].decode())
        if route.right:
            grant.require(route.right, name)
        return await self._run(request, endpoint, name)

    async def _run(self, request: Request, endpoint: Endpoint, name: str) -> Response:
        taken: list[bytes] = []
        try:
            body = b""
            if request.method in ("PUT", "POST"):
                await self._take(request, taken)
                coding = request.headers.get("content-encoding", "identity").lower()
                body = b"".join(taken)
                if coding != "identity":
                    most = self.limits.body_bytes
                    body = await asyncio.to_thread(_decompressed, body, coding, most)
                    self._keep(taken, body)
            try:
                response = await endpoint(request, name, body)
            except StaleHandle:
                response = await endpoint(request, name, body)
        finally:
            self._buffered -= sum(map(len, taken))
        return await _compressed(request.headers.get("accept-encoding", ""), response)

    async def _take(self, request: Request, taken: list[bytes]) -> None:
        most, size = self.limits.body_bytes, 0
        async for part in request.stream():
            size += len(part)
            if size <= most:
                self._keep(taken, part)
            elif size > most * _DISCARD_FACTOR:
                break
        if size > most:
            raise _too_large(most)

    def _keep(self, taken: list[bytes], part: bytes) -> None:
        taken.append(part)
        self._buffered += len(part)
        if self._buffered > _BUFFERED_BYTES_MAX:
            raise Refusal(503, "Busy", "the server has no memory for bodies", Retry_After=1)

    def _check_sender(self, request: Request) -> None:
        """Refuse requests that pages of other sites may have caused."""
        host = request.headers.get("host", "")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if self._access.open and not is_loopback(name):
            message = "this server has no tokens, so it answers only requests to localhost"
            raise Refusal(421, "WrongHost", message, "Start the server with --tokens.")
        origin = request.headers.get("origin")
        if origin and not self._origins & {origin, "*"}:
            message = "pages of this origin may not use the server"
            raise Refusal(403, "OriginRefused", message, "Start the server with --allow-origin.")

    def _add_headers(self, request: Request, headers: MutableHeaders) -> None:
        headers["x-content-type-options"] = "nosniff"
        headers["content-security-policy"] = "sandbox"  # entries may be pages with scripts
        headers["cross-origin-resource-policy"] = "cross-origin" if self._origins else "same-origin"
        if self._origins:
            headers.add_vary_header("origin")
            origin = "*" if "*" in self._origins else request.headers.get("origin")
            if origin in self._origins:
                headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = "*"
            if request.method == "OPTIONS":
                headers["access-control-allow-methods"] = _METHODS
                headers["access-control-allow-headers"] = _CORS_HEADERS


Endpoint = Callable[[Request, str, bytes], Awaitable[Response]]
Methods = dict[str, tuple[Route, Endpoint]]
"""The description and the function of each method."""

_ENDED = 499
"""The status in the access log of a request that its client ended."""


class _Done:
    """What the access log says about a request."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.status, self.sent, self.token_name = _ENDED, 0, "-"

    def fields(self, scope: Scope) -> dict[str, object]:
        """Return the fields of the line."""
        return {
            "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "client": (scope.get("client") or ("-",))[0],
            "token": self.token_name,
            "method": scope["method"],
            "path": scope["path"][:256],
            "status": self.status,
            "bytes": self.sent,
            "ms": round((time.monotonic() - self.began) * 1000, 1),
        }


async def _describe(request: Request, name: str, body: bytes) -> Response:  # noqa: ARG001
    return json_reply(document())


def _check_query(request: Request, route: Route) -> None:
    """Raise ValueError if a request has parameters that the route does not have.

    The Durable Streams Protocol lets clients add their own.
    """
    if route.name.startswith("stream_"):
        return
    try:
        unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise ValueError("the parameters are not valid UTF-8") from None
    for name in request.query_params:
        if name not in route.query:
            known = ", ".join(route.query) or "none"
            raise ValueError(f"the parameter {name!r:.40} is unknown; the known ones: {known}")
        if "items" not in route.query[name] and len(request.query_params.getlist(name)) > 1:
            raise ValueError(f"give the parameter {name} once")


def _too_large(most: int) -> Refusal:
    message = f"a request's body has at most {most} bytes"
    return Refusal(413, "BodyTooLarge", message, "Send several requests.")


def _decompressed(body: bytes, coding: str, most: int) -> bytes:
    """Decompress a body, but not more of it than permitted."""
    try:
        if coding == "gzip":
            unpack: Any = zlib.decompressobj(31)
            data: bytes = unpack.decompress(body, most + 1)
        elif coding == "zstd":
            unpack = zstandard.ZstdDecompressor(max_window_size=8 << 20).decompressobj()
            parts, size, start = list[bytes](), 0, 0
            while size <= most and start < len(body) and not unpack.eof:
                parts.append(unpack.decompress(body[start : start + _UNPACK_BYTES]))
                size, start = size + len(parts[-1]), start + _UNPACK_BYTES
            data = b"".join(parts)
        else:
            message = f"the content encoding {coding!r:.40} is unknown; use gzip or zstd"
            raise Refusal(415, "UnknownEncoding", message)
    except (zlib.error, zstandard.ZstdError) as error:
        raise ValueError(f"the body is not valid {coding}: {error}") from None
    if len(data) > most:
        raise _too_large(most)
    if not unpack.eof or unpack.unused_data:
        raise ValueError(f"the body is not one complete {coding} stream")
    return data


async def _compressed(accepted: str, response: Response) -> Response:
    """Compress a long reply if the client takes it."""
    body = bytes(getattr(response, "body", b""))
    named = [part.partition(";") for part in accepted.lower().replace(" ", "").split(",")]
    taken = {name for name, _, weight in named if not _REFUSED.fullmatch(weight)}
    coding = next((each for each in ("zstd", "gzip") if each in taken), None)
    if len(body) >= _COMPRESS_BYTES_MIN:
        response.headers.add_vary_header("accept-encoding")
        if coding:
            compress = zstandard.compress if coding == "zstd" else gzip.compress
            response.body = await asyncio.to_thread(compress, body, 3)
            response.headers["content-encoding"] = coding
            response.headers["content-length"] = str(len(response.body))
    return response
