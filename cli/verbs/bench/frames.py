"""How the C++ client greets a sequencer, or an echo: what it sends before it measures."""

from __future__ import annotations

import zlog
from zlog._base.sequencer import LogAddress, parse_address
from zlog._sequencer.frames import FRAME, PROTOCOL_VERSION, Kind, pack_payload


def to_sequencer(store: zlog.Store, log: str, address: str) -> dict[str, object]:
    """Return the options of ``frames`` for positions of a log, from the sequencer at an address."""
    with zlog.Log.open(store, log) as opened:
        log_id = opened.view.log_id
    payload = LogAddress(store.pool, store.namespace, log, log_id).encode()
    greeting = FRAME.pack(Kind.HELLO, 0, 0, 0, PROTOCOL_VERSION, 0)
    greeting += FRAME.pack(Kind.OPEN, 0, 0, 1, len(payload), 0) + pack_payload(payload)
    return _options(address, greeting, replies=2)


def to_echo(address: str) -> dict[str, object]:
    """Return the options of ``frames`` for a server that sends everything back."""
    return _options(address, FRAME.pack(Kind.HELLO, 0, 0, 0, PROTOCOL_VERSION, 0), replies=1)


def _options(address: str, greeting: bytes, replies: int) -> dict[str, object]:
    host, port, _ = parse_address(address)
    return {"host": host, "port": port, "preamble": greeting.hex(), "replies": replies}
