"""TLS for the blocking client, whose threads read and write at the same time.

An ``ssl.SSLSocket`` does not allow this. OpenSSL therefore works on memory buffers, under a lock
that no thread holds while it waits for the network.
"""

from __future__ import annotations

import contextlib
import socket
import ssl

from zlog._base.deadline import Deadline
from zlog._native.mutex import Mutex

_READ_BYTES = 1 << 16


class TlsStream:
    """The TLS layer of a connection.

    Args:
        host: the name that the sequencer's certificate must have.
    """

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._lock = Mutex()

    def shake_hands(self, connected: socket.socket, deadline: Deadline) -> None:
        """Do the handshake on a socket. This changes the socket's timeout.

        Raises:
            OSError: the handshake failed, with an ``ssl.SSLError`` or a TimeoutError.
        """
        while True:
            try:
                self._ssl.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            finally:  # also send the alert if the peer's certificate is not trusted
                connected.settimeout(deadline.within(3600.0) or 1e-3)
                connected.sendall(self._outgoing.read())
            if done:
                return
            data = connected.recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError("closed by the sequencer during the TLS handshake")
            self._incoming.write(data)

    def wrap(self, data: bytes) -> bytes:
        """Encrypt ``data``. Send every result, in the order of the calls."""
        with self._lock:
            self._ssl.write(data)
            return self._outgoing.read()

    def unwrap(self, data: bytes) -> bytes:
        """Decrypt ``data``. Returns no bytes if the data does not complete a record.

        Raises:
            ssl.SSLError: the data was changed, or the peer has aborted the connection.
        """
        parts = []
        with self._lock, contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            self._incoming.write(data)
            while part := self._ssl.read(_READ_BYTES):  # empty once the peer has ended it
                parts.append(part)
        return b"".join(parts)
