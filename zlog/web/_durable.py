"""The Durable Streams Protocol 1.0, at /v1/stream/PATH."""

from __future__ import annotations

import asyncio
import base64
import random
import re
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

import zlog
import zlog.aio
from zlog.web._bodies import joined, messages, split
from zlog.web._errors import Refusal, location
from zlog.web._handles import Handle, Handles
from zlog.web._settings import (
    NUMBER,
    OPTION,
    Settings,
    closes,
    inherit,
    media_type,
    order_of,
    producer_of,
    same,
    wanted_by,
)
from zlog.web._stream import Chunk, Deleted, Stream

_CHUNK_BYTES = 1 << 20
"""About how much data a reply or an event has."""

_LINES = re.compile(rb"\r\n|\r|\n")

_CURSOR_EPOCH, _CURSOR_SECONDS, _CURSOR_JITTER = 1728432000, 20, 180


class DurableStreams:
    """The protocol's operations.

    Args:
        handles: the open logs.
        poll_seconds: how long a long-poll waits.
        events_seconds: how long a stream of events lasts.
        cacheable: ``public`` or ``private``.
    """

    def __init__(
        self, handles: Handles, poll_seconds: float, events_seconds: float, cacheable: str
    ) -> None:
        self._handles = handles
        self._poll_seconds = poll_seconds
        self._events_seconds = events_seconds
        self._cacheable = cacheable
        self.ending = False

    @asynccontextmanager
    async def _use(self, name: str, *, used: bool = False) -> AsyncIterator[Stream]:
        """Provide a stream for a ``with`` block. If it turns out to be deleted, clean up.

        Raises:
            LogNotFound: the stream does not exist.
            Refusal: the log is not a stream, or the stream was deleted or has expired.
        """
        async with AsyncExitStack() as stack:
            handle = await stack.enter_async_context(self._handles.use(name))
            stream = handle.stream
            if stream is None:
                hint = "Its entries are at /v1/logs."
                raise Refusal(404, "NotAStream", f"the log {name!r} is not a stream", hint)
            try:
                if not stream.begun:
                    await stream.tail()
                heir = stream
                while heir.settings.source:
                    source = None
                    with suppress(zlog.LogNotFound):
                        source = await stack.enter_async_context(
                            self._handles.use(heir.settings.source)
                        )
                    if (
                        not (source and source.stream)
                        or source.log.view.log_id != heir.settings.source_id
                    ):
                        hint = "Delete the fork. Its own entries are in its log."
                        message = "the source of the fork was removed"
                        raise Refusal(410, "SourceRemoved", message, hint)
                    heir.source = heir = source.stream
                if await stream.expired(used=used) and await stream.mark_deleted(if_expired=True):
                    raise Deleted(name)
                yield stream
            except Deleted:
                if not await self._clean_up(handle):
                    raise
                raise Refusal(404, "LogNotFound", f"the stream {name!r} was removed") from None

    async def _clean_up(self, handle: Handle) -> bool:
        """Remove a deleted stream's log unless forks need it. Returns whether it is removed.

        If the stream was the last fork of a deleted stream, its source is also removed.
        """
        assert handle.stream is not None
        for name, fork_id, new in await handle.stream.forks():
            with suppress(zlog.LogNotFound):
                async with self._handles.use(name) as fork:
                    if fork.stream and fork.stream.settings.fork_id == fork_id:
                        return False
            if new:
                return False
        name, settings = handle.log.name, handle.stream.settings
        self._handles.drop(handle)
        with suppress(zlog.LogNotFound):
            await zlog.aio.Log.remove(self._handles.store, name, timeout=self._handles.timeout)
        if settings.source:
            with suppress(zlog.LogNotFound, Refusal):
                async with self._handles.use(settings.source) as source:
                    if source.stream and source.log.view.log_id == settings.source_id:
                        await source.stream.register(name, settings.fork_id, exists=False)
                async with self._use(settings.source) as stream:
                    await stream.closed(await stream.tail())
        return True

    async def put(self, request: Request, name: str, body: bytes) -> Response:
        """Create a stream, or confirm that it exists with the same settings."""
        wanted, close = wanted_by(request.headers), closes(request.headers)
        for _ in range(5):
            try:
                async with self._use(name) as stream:
                    tail = await stream.tail()
                    if close != await stream.closed(tail) or not same(wanted, stream.settings):
                        message = f"the stream {name!r} exists with other settings"
                        raise Refusal(409, "StreamExists", message, "HEAD returns its settings.")
                    return Response(None, 200, _headers(stream, tail, closed=close))
            except Refusal as error:
                if error.status == 410 or error.code == "NotAStream":
                    raise Refusal(409, error.code, str(error), error.hint) from None
                if error.status != 404:
                    raise
            except zlog.LogNotFound:
                pass
            with suppress(zlog.Conflict):
                at = request.headers.get("stream-fork-offset")
                headers = await self._create(name, wanted, at, body, close=close)
                return Response(None, 201, {**headers, **location(request)})
        raise Refusal(503, "Busy", "other clients create and delete this stream", Retry_After=1)

    async def _create(
        self, name: str, wanted: Settings, at: str | None, body: bytes, *, close: bool
    ) -> dict[str, str]:
        """Create a stream, and return the headers of the reply. Raises Conflict if it exists."""
        if not wanted.source:
            settings = inherit(wanted, None)
            return await self._begin(name, settings, None, [], body, close=close)
        try:
            async with self._use(wanted.source) as source:
                tail = await source.tail()
                await source.closed(tail)
                settings = msgspec.structs.replace(
                    inherit(wanted, source.settings),
                    source_id=source.log.view.log_id,
                    offset=tail if wanted.offset < 0 else wanted.offset,
                    fork_id=secrets.token_hex(8),
                )
                if settings.offset > tail:
                    raise ValueError("Stream-Fork-Offset is above the source's end")
                if at is not None:
                    source.offset(at)
                if media_type(settings.type) != media_type(source.settings.type):
                    message = f"the source's content type is {source.settings.type!r}"
                    raise Refusal(409, "ContentTypeDiffers", message)
                prefix = await _prefix(source, settings)
                await source.register(name, settings.fork_id, exists=True)
                try:
                    return await self._begin(name, settings, source, prefix, body, close=close)
                except zlog.Conflict:
                    await source.register(name, settings.fork_id, exists=False)
                    raise
        except Refusal as error:
            if error.status != 410:
                raise
            raise Refusal(409, error.code, str(error), error.hint) from None

    async def _begin(
        self,
        name: str,
        settings: Settings,
        source: Stream | None,
        prefix: list[bytes],
        body: bytes,
        *,
        close: bool,
    ) -> dict[str, str]:
        """Create a stream's log, append its first entries, and return the headers of the reply.

        Raises:
            Conflict: the log exists. Look again.
        """
        if settings.is_json and body:
            messages(body)  # an invalid body must not leave a log
        options = {OPTION: msgspec.json.encode(settings).decode()}
        store, timeout = self._handles.store, self._handles.timeout
        with suppress(zlog.LogExists):
            log = await zlog.aio.Log.create(
                store, name, ordering="object", options=options, timeout=timeout
            )
            await log.close()
        async with self._handles.use(name) as handle:
            stream = handle.stream
            if stream is None or await handle.log.tail():
                raise zlog.Conflict(f"the log {name!r} exists", position=0)
            if stream.settings != settings:
                # Either its creator has died, or the stream was not created first.
                await stream.abandon()
                raise zlog.Conflict(f"the stream {name!r} was being created", position=0)
            try:
                await stream.begin(prefix + split(stream, body), close=close)
            except zlog.EntryTooLarge:
                await stream.abandon()
                await self._clean_up(handle)
                raise
            stream.source = source
            return _headers(stream, await stream.tail(), closed=close)

    async def post(self, request: Request, name: str, body: bytes) -> Response:
        """Append to a stream, or close it."""
        headers, close = request.headers, closes(request.headers)
        producer, order = producer_of(headers), order_of(headers)
        async with self._use(name) as stream:
            data: list[bytes] = []
            if body or not close:
                kind = headers.get("content-type", "")
                if not kind or not body:
                    raise ValueError("an append needs a body and a Content-Type")
                if media_type(kind) != media_type(stream.settings.type):
                    message = f"the stream's content type is {stream.settings.type!r}"
                    raise Refusal(409, "ContentTypeDiffers", message)
                data = split(stream, body)
                if not data:
                    raise ValueError("an append needs at least one message")
            done = await stream.append(data, producer, order, close=close)
            reply = {"Stream-Next-Offset": stream.text(done.tail)}
        if done.closed:
            reply["Stream-Closed"] = "true"
        if producer is not None:
            reply |= {"Producer-Epoch": str(producer.epoch), "Producer-Seq": str(done.seq)}
        return Response(None, 200 if producer and data and not done.repeated else 204, reply)

    async def delete(self, request: Request, name: str, body: bytes) -> Response:
        """Delete a stream. Its data is kept while forks of it exist."""
        try:
            async with self._use(name) as stream:
                if not await stream.mark_deleted():
                    raise Deleted(name)
        except Refusal as error:
            if error.code != "SourceRemoved":
                raise
            async with self._handles.use(name) as handle:
                assert handle.stream is not None
                await handle.stream.mark_deleted()
                await self._clean_up(handle)
            return Response(None, 204)
        with suppress(zlog.LogNotFound, Refusal):
            async with self._use(name) as stream:
                await stream.closed(await stream.tail())
        return Response(None, 204)

    async def head(self, request: Request, name: str, body: bytes) -> Response:
        """Return the settings and the tail of a stream."""
        async with self._use(name) as stream:
            tail = await stream.tail()
            headers = _headers(stream, tail, closed=await stream.closed(tail))
        return Response(None, 200, {**headers, "Cache-Control": "no-store"})

    async def get(self, request: Request, name: str, body: bytes) -> Response:
        """Read from an offset on, at once or as data arrives."""
        query = request.query_params
        live, given = query.get("live"), query.getlist("offset")
        if live not in (None, "long-poll", "sse"):
            raise ValueError(f"live is long-poll or sse, not {live!r:.40}")
        if len(given) > 1 or (live and not given):
            raise ValueError("give one offset")
        text, cursor = given[0] if given else "-1", query.get("cursor", "")
        async with self._use(name, used=True) as stream:
            offset = 0
            if text == "now":
                offset = await stream.tail()
            elif text != "-1":
                offset = stream.offset(text)
            chunk = await stream.read(offset, _CHUNK_BYTES, oldest=text == "-1")
            if live == "sse":
                return self._events(stream, name, chunk, cursor)
            if live and not (chunk.data or chunk.closed):
                polling = asyncio.ensure_future(self._poll(stream, chunk))
                leaving = asyncio.ensure_future(_left(request))
                try:
                    await asyncio.wait([polling, leaving], return_when=asyncio.FIRST_COMPLETED)
                    if not polling.done():
                        raise ClientDisconnect
                    chunk = polling.result()
                finally:
                    polling.cancel()
                    leaving.cancel()
            headers = _headers(stream, chunk.next, closed=chunk.closed)
            if chunk.at_tail:
                headers["Stream-Up-To-Date"] = "true"
            if live:
                headers["Stream-Cursor"] = _cursor(cursor)
            if text == "now" or (live and not chunk.data):
                headers["Cache-Control"] = "no-store"
            else:
                etag = f"{stream.log.view.log_id:x}:{offset}:{chunk.next}:{chunk.closed:d}"
                fresh = "no-cache" if chunk.at_tail else "max-age=60, stale-while-revalidate=300"
                headers["ETag"] = etag = f'W/"{etag}"'
                headers["Cache-Control"] = f"{self._cacheable}, {fresh}"
                if etag in request.headers.get("if-none-match", ""):
                    return Response(None, 304, headers)
            if live and not chunk.data:
                return Response(None, 204, headers)
            return Response(joined(stream, chunk), 200, headers)

    async def _poll(self, stream: Stream, chunk: Chunk) -> Chunk:
        until = time.monotonic() + self._poll_seconds
        while not (chunk.data or chunk.closed) and await self._wait(stream, chunk, until):
            chunk = await stream.read_together(chunk.next, _CHUNK_BYTES)
        return chunk

    async def _wait(self, stream: Stream, chunk: Chunk, until: float) -> bool:
        if self.ending:
            return False
        return await stream.live.wait(chunk.next - stream.base, until - time.monotonic())

    def _events(self, stream: Stream, name: str, chunk: Chunk, cursor: str) -> Response:
        # Starlette would add a charset to a media type, which clients do not expect.
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        text = stream.settings.is_json or media_type(stream.settings.type).startswith("text/")
        if not text:
            headers["Stream-SSE-Data-Encoding"] = "base64"
        log_id = stream.log.view.log_id
        each = self._each_event(name, log_id, chunk, cursor, text)
        return StreamingResponse(each, 200, headers)

    async def _each_event(
        self, name: str, log_id: int, chunk: Chunk, cursor: str, text: bool
    ) -> AsyncIterator[bytes]:
        until = time.monotonic() + self._events_seconds
        sent = -1
        # The next request reports an error.
        with suppress(zlog.ZlogError, Refusal):
            async with self._use(name) as stream:
                while stream.log.view.log_id == log_id:
                    event = b""
                    if chunk.data:
                        data = joined(stream, chunk)
                        event = _event("data", data if text else base64.b64encode(data))
                    if event or sent < 0 or chunk.closed:
                        sent = chunk.next
                        yield event + _control(stream, chunk, cursor)
                    if chunk.closed or (
                        chunk.at_tail and not await self._wait(stream, chunk, until)
                    ):
                        break
                    chunk = await stream.read_together(chunk.next, _CHUNK_BYTES)
        if 0 <= sent < chunk.next:
            yield _control(stream, Chunk(chunk.next), cursor)


async def _left(request: Request) -> None:
    """Wait until the client of a request has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _prefix(source: Stream, settings: Settings) -> list[bytes]:
    """Return the part of an append that a fork with a sub-offset inherits."""
    if not settings.sub:
        return []
    data = await source.next_append(settings.offset)
    if settings.is_json:
        if settings.sub <= len(data):
            return data[: settings.sub]
    elif settings.sub <= sum(map(len, data)):
        return split(source, b"".join(data)[: settings.sub])
    raise ValueError("Stream-Fork-Sub-Offset is above the size of the append at the offset")


def _headers(stream: Stream, tail: int, *, closed: bool) -> dict[str, str]:
    settings = stream.settings
    headers = {"Content-Type": settings.type, "Stream-Next-Offset": stream.text(tail)}
    if closed:
        headers["Stream-Closed"] = "true"
    if settings.ttl is not None:
        headers["Stream-TTL"] = str(settings.ttl)
    if settings.expires:
        headers["Stream-Expires-At"] = settings.expires
    return headers


def _event(kind: str, data: bytes) -> bytes:
    # A reader drops a space after the colon, so a line that begins with one gets another.
    lines = (b" " + line if line.startswith(b" ") else line for line in _LINES.split(data))
    return b"event: %s\n%s\n" % (kind.encode(), b"".join(b"data:%s\n" % line for line in lines))


def _control(stream: Stream, chunk: Chunk, cursor: str) -> bytes:
    fields: dict[str, object] = {"streamNextOffset": stream.text(chunk.next)}
    fields |= {"streamClosed": True} if chunk.closed else {"streamCursor": _cursor(cursor)}
    if chunk.at_tail:
        fields["upToDate"] = True
    return _event("control", msgspec.json.encode(fields))


def _cursor(given: str) -> str:
    """Return the number of the current interval, or a higher one than the client has."""
    now = int(time.time() - _CURSOR_EPOCH) // _CURSOR_SECONDS
    if NUMBER.fullmatch(given) and int(given) >= now:
        now = int(given) + random.randint(1, _CURSOR_JITTER)
    return str(now)
