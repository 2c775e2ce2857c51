"""TLS for the blocking client: over buffers, since its threads read and write at the same time.

An ``ssl.SSLSocket`` must not be read by one thread while another writes. Here OpenSSL works on
memory alone, under a lock that no thread holds while it waits for the network.
"""

from __future__ import annotations

import contextlib
import socket
import ssl

from zlog._base.deadline import Deadline
from zlog._native.mutex import Mutex

_READ_BYTES = 1 << 16


class TlsStream:
    """What a connection's two directions go through.

    Args:
        context: what is trusted, and shown.
        host: that the sequencer's certificate must name.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._lock = Mutex()

    def shake_hands(self, connected: socket.socket, deadline: Deadline) -> None:
        """Do the handshake on a socket, which is given time-outs meanwhile.

        Raises:
            OSError: it failed; an ``ssl.SSLError`` says why, a TimeoutError that time was up.
        """
        while True:
            try:
                self._ssl.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            finally:  # also what tells the other side that its certificate is not trusted
                connected.settimeout(deadline.within(3600.0) or 1e-3)
                connected.sendall(self._outgoing.read())
            if done:
                return
            data = connected.recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError("closed by the sequencer during the TLS handshake")
            self._incoming.write(data)

    def wrap(self, data: bytes) -> bytes:
        """Return what to send for ``data``. It must be sent, and in the order of the calls."""
        with self._lock:
            self._ssl.write(data)
            return self._outgoing.read()

    def unwrap(self, data: bytes) -> bytes:
        """Return what came in ``data``; empty as long as it holds nothing whole.

        Raises:
            ssl.SSLError: it was changed on its way, or the other side gave the connection up.
        """
        parts = []
        with self._lock, contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            self._incoming.write(data)
            while part := self._ssl.read(_READ_BYTES):  # empty once the other side has ended it
                parts.append(part)
        return b"".join(parts)
