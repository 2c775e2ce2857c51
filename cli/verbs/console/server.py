"""Serving the console."""

from __future__ import annotations

import asyncio
import socket
from types import FrameType

import uvicorn

import zlog
from zlog.cli.output import say
from zlog.cli.session import Session
from zlog.cli.verbs.console.access import Access, Guard
from zlog.cli.verbs.console.app import make_app


class _Server(uvicorn.Server):
    """Says where it listens once it does, and ends at once, with its streams."""

    def __init__(self, config: uvicorn.Config, greeting: str, ending: asyncio.Event) -> None:
        super().__init__(config)
        self._greeting = greeting
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        say(self._greeting)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """End as is wanted: it is not raised again, as a failure would be."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending.set()
        await super().shutdown(sockets)


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
        app = make_app(session, store, access, interval, match)
        config = uvicorn.Config(
            Guard(app, access),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            ssl_certfile=None if access.certificate is None else str(access.certificate),
            ssl_keyfile=None if access.key is None else str(access.key),
        )
        greeting = f"console at {_address(access, listening)}"
        server = _Server(config, greeting, app.state.ending)
        asyncio.run(server.serve([listening]))


def _address(access: Access, listening: socket.socket) -> str:
    scheme = "http" if access.certificate is None else "https"
    host = f"[{access.host}]" if ":" in access.host else access.host
    token = f"/#token={access.token}" if access.token and access.printed else "/"
    return f"{scheme}://{host}:{listening.getsockname()[1]}{token}"
