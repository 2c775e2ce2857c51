"""Serving the application with uvicorn, with bounds on slow and malformed requests."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

import zlog
from zlog.web._service import Service

_HANDSHAKE_SECONDS = 10.0
_HEADER_SECONDS, _BODY_SECONDS = 10.0, 30.0
"""How long the header and the body of a request may take to arrive."""

_HEADER_BYTES_MAX = 64 << 10
_IDLE_SECONDS = 60
_UNREAD_SECONDS = 30
"""How long a client may leave a reply unread before the connection is closed."""

_STOP_SECONDS = 10


class _Protocol(HttpToolsProtocol):
    """Uvicorn's protocol, with limits that it lacks."""

    connections_max = 0
    _open = 0
    _timer: asyncio.TimerHandle | None = None
    _header_bytes: int | None = None
    """The size of the header that is arriving, or None."""
    _in_body = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        _Protocol._open += 1
        # If the handshake of TLS fails or takes too long, no other method is called.
        self._timer = self.loop.call_later(_HANDSHAKE_SECONDS + 1, self._uncount)

    def _uncount(self) -> None:
        _Protocol._open -= 1

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self._open > self.connections_max:
            transport.close()
        connected = transport.get_extra_info("socket")
        # Without uvloop, asyncio does not set this for a socket that it did not open itself. The
        # body of a reply then waits for the acknowledgement of the header, often for 40 ms.
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            wait = _UNREAD_SECONDS * 1000
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, wait)
        self._begin_header()

    def data_received(self, data: bytes) -> None:
        if self._timer is None:
            self._begin_header()
        if self._header_bytes is not None:
            self._header_bytes += len(data)
        super().data_received(data)
        if (self._header_bytes or 0) > _HEADER_BYTES_MAX:
            self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:  # uvicorn keeps the trailers of a body in memory, without a limit
            self.transport.close()
        else:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._header_bytes, self._in_body = None, True
        self._limit(_BODY_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        self._limit(None)
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._uncount()
        self._limit(None)
        super().connection_lost(exc)

    def _begin_header(self) -> None:
        self._header_bytes = 0
        self._limit(_HEADER_SECONDS)

    def _limit(self, seconds: float | None) -> None:
        """Close the connection after some time, unless this is called again before."""
        if self._timer is not None:
            self._timer.cancel()
        close = self.transport.close
        self._timer = None if seconds is None else self.loop.call_later(seconds, close)


class _Server(uvicorn.Server):
    """A server that ends waits when it stops, and stops without raising the signal again."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.ssl is not None:
            loop: Any = asyncio.get_running_loop()
            create = partial(loop.create_server, ssl_handshake_timeout=_HANDSHAKE_SECONDS)
            loop.create_server = create  # uvicorn has no option for it
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.end_waits()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises ZlogError if the address is unavailable."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise zlog.ZlogError(
            f"can't serve HTTP on {host}:{port}: {error.strerror or error}",
            hint="Use an address that belongs to this machine and a port that is free.",
        ) from error


def check_certificate(certificate: str | None, key: str | None) -> None:
    """Raise ValueError if TLS is impossible with these files."""
    if key is not None and certificate is None:
        raise ValueError("--tls-key needs --tls-cert")
    if certificate is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            advice = "" if key else "; if the key is in another file, give --tls-key"
            raise ValueError(f"can't speak TLS with {certificate}: {error}{advice}") from error


def serve(
    service: Service, listening: socket.socket, certificate: str | None, key: str | None
) -> None:
    """Serve at a socket from :func:`listen` until SIGINT or SIGTERM.

    Args:
        service: the application.
        listening: the socket.
        certificate: the path of a TLS certificate (PEM); None means no TLS.
        key: the path of its private key; None means that the certificate's file has the key.
    """
    _Protocol.connections_max = service.limits.connections
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    config = uvicorn.Config(
        service,
        http=_Protocol,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    _Server(config).run([listening])  # with uvloop if it is installed
