"""Serving the console."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from types import FrameType

import uvicorn

import zlog
from zlog.admin import is_loopback, reachable_at
from zlog.cli.commands.console.access import Access, Guard
from zlog.cli.commands.console.app import make_app
from zlog.cli.output import say
from zlog.cli.session import Session


class _Server(uvicorn.Server):
    """A server that prints its address once it listens, and that ends at once, with its streams."""

    def __init__(self, config: uvicorn.Config, greeting: list[str], ending: asyncio.Event) -> None:
        super().__init__(config)
        self._greeting = greeting
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for line in self._greeting:
            say(line)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server without raising the signal again, since this is not a failure."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending.set()
        await super().shutdown(sockets)


def serve(session: Session, store: zlog.Store, access: Access, interval: float, match: str) -> None:
    """Serve the console until SIGINT or SIGTERM. Raises ZlogError if its address is unavailable."""
    try:
        family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
        listening = socket.create_server((access.host, access.port), family=family)
    except OSError as error:
        raise zlog.ZlogError(
            f"can't serve the console on {access.host}:{access.port}: {error.strerror or error}",
            hint="Use --listen with an address that belongs to this machine and a port that"
            " is free.",
        ) from error
    with listening:
        app = make_app(session, store, access, interval, match)
        config = uvicorn.Config(
            Guard(app, access),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            ssl_certfile=access.certificate,
            ssl_keyfile=access.key,
        )
        server = _Server(config, _greeting(access, listening), app.state.ending)
        asyncio.run(server.serve([listening]))


def _greeting(access: Access, listening: socket.socket) -> list[str]:
    scheme = "http" if access.certificate is None else "https"
    token = f"/#token={access.token}" if access.token and access.printed else "/"
    where = reachable_at(access.host, listening)
    lines = [f"console at {scheme}://{where}{token}"]
    if ipaddress.ip_address(listening.getsockname()[0]).is_unspecified:
        host = "[::1]" if listening.family == socket.AF_INET6 else "127.0.0.1"
        port = listening.getsockname()[1]
        lines.append(f"on this machine, also at {scheme}://{host}:{port}{token}")
    if access.certificate is None and not is_loopback(access.host):
        lines.append(
            "without TLS, the token and all entries are sent unencrypted; use a certificate"
            " (--tls-cert), or listen on loopback and connect through SSH"
        )
    return lines
