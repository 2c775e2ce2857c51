"""Serving the console."""

from __future__ import annotations

import asyncio
import socket

import uvicorn

import zlog
from zlog.cli.output import say
from zlog.cli.session import Session
from zlog.cli.verbs.console.access import Access, Guard
from zlog.cli.verbs.console.app import make_app


class _Server(uvicorn.Server):
    """Says where it listens once it does."""

    def __init__(self, config: uvicorn.Config, greeting: str) -> None:
        super().__init__(config)
        self._greeting = greeting

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        say(self._greeting)


def serve(session: Session, store: zlog.Store, access: Access, interval: float, match: str) -> None:
    """Serve the console until SIGINT or SIGTERM.

    Raises:
        ZlogError: it can't listen there.
    """
    try:
        family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
        listening = socket.create_server((access.host, access.port), family=family)
    except OSError as error:
        raise zlog.ZlogError(
            f"can't serve the console on {access.host}:{access.port}: {error.strerror or error}",
            hint="Name a free address of this machine with --listen.",
        ) from error
    with listening:
        config = uvicorn.Config(
            Guard(make_app(session, store, access, interval, match), access),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            ssl_certfile=None if access.certificate is None else str(access.certificate),
            ssl_keyfile=None if access.key is None else str(access.key),
        )
        server = _Server(config, f"console at {_address(access, listening)}")
        asyncio.run(server.serve([listening]))


def _address(access: Access, listening: socket.socket) -> str:
    scheme = "http" if access.certificate is None else "https"
    host = f"[{access.host}]" if ":" in access.host else access.host
    token = f"/#token={access.token}" if access.token and access.printed else "/"
    return f"{scheme}://{host}:{listening.getsockname()[1]}{token}"
