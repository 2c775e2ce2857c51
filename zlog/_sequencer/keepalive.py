"""Socket options of both ends of a sequencer's connection."""

from __future__ import annotations

import socket

_IDLE_SECONDS = 10
_INTERVAL_SECONDS = 5
_PROBES = 3


def keep_alive(connected: socket.socket) -> None:
    """Send small frames at once, and detect within about 25 seconds that the peer has vanished.

    Without the probes, a client that waits at the tail of a quiet log would not notice that the
    sequencer's machine has lost its power.
    """
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _INTERVAL_SECONDS)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
