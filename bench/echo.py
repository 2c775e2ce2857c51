"""Frames as a sequencer takes them: how it is greeted, and a server that sends them back.

The rate of such a server is an upper bound for a sequencer in Python.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

import zlog
from bench.servers import ServerProcess
from zlog._base.sequencer import LogAddress, parse_address
from zlog._sequencer.frames import FRAME, PROTOCOL_VERSION, Kind, pack_payload
from zlog.seqr.service import new_event_loop


def ask_sequencer(store: zlog.Store, log: str, address: str) -> dict[str, Any]:
    """Return the options of ``frames`` for getting positions of a log from a sequencer."""
    with zlog.Log.open(store, log) as opened:
        log_id = opened.view.log_id
    payload = LogAddress(store.pool, store.namespace, log, log_id).encode()
    opening = FRAME.pack(Kind.OPEN, 0, 0, 1, len(payload), 0) + pack_payload(payload)
    return _ask(address, _HELLO + opening, replies=2)


def ask_echo(address: str) -> dict[str, Any]:
    """Return the options of ``frames`` for a server that sends everything back."""
    return _ask(address, _HELLO, replies=1)


_HELLO = FRAME.pack(Kind.HELLO, 0, 0, 0, PROTOCOL_VERSION, 0)


def _ask(address: str, greeting: bytes, replies: int) -> dict[str, Any]:
    host, port, _ = parse_address(address)
    return {"host": host, "port": port, "preamble": greeting.hex(), "replies": replies}


class _Echo(asyncio.Protocol):
    """Sends every chunk back unchanged."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


def serve() -> None:
    """Be such a server on a free port, until killed; says on stderr which."""
    loop = new_event_loop()
    server = loop.run_until_complete(loop.create_server(_Echo, "127.0.0.1", 0))
    port = server.sockets[0].getsockname()[1]
    print(f"listening address=tcp://127.0.0.1:{port}", file=sys.stderr, flush=True)
    loop.run_forever()


def start_echo() -> ServerProcess:
    """Start such a server."""
    return ServerProcess("from bench.echo import serve; serve()")
