"""The blocking TCP client, for all threads of a process.

The threads share one connection, which has no thread of its own. One of the waiting threads reads
from the socket and passes answers to the others. Once it has its own answer, another thread takes
over. So if only one thread uses the connection, a call takes one write and one read.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
import weakref
from contextlib import suppress
from queue import Empty, SimpleQueue

from zlog._base.deadline import Deadline
from zlog._base.sequencer import Endpoint
from zlog._native.mutex import Mutex, reentrant_call
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog._sequencer.dialing import Dialer
from zlog._sequencer.frames import FRAME, Kind, Reply, ReplyReader, pack_payload
from zlog._sequencer.link import Link, LinkLost, keep_alive
from zlog._sequencer.session import Dialers, Session
from zlog._sequencer.tls import TlsStream
from zlog.errors import SequencerTimeout

_READ_BYTES = 1 << 16


_Inbox = SimpleQueue[Reply | None]
"""The answer to a call. None wakes the caller to lead, or because the connection is lost."""


class BlockingSequencer(Session):
    """A sequencer's client for several threads. Its coroutines never suspend.

    It connects at its first call.
    """

    def __init__(self, address: str, credentials: Credentials = NO_CREDENTIALS) -> None:
        super().__init__(address, _Dialer(address, credentials))

    @staticmethod
    def shared(address: str, credentials: Credentials) -> Session:
        """Return a client that shares its connection with others of this process."""
        return _SHARED.session(address, credentials)


class _Guard:
    """A lock with a deadline, for threads."""

    def __init__(self) -> None:
        self._lock = Mutex(brief=False)

    async def acquire(self, deadline: Deadline) -> bool:
        """Take the lock. Returns False if the deadline passes first."""
        if self._lock.acquire(blocking=False):
            return True
        left = deadline.remaining()
        return self._lock.acquire(timeout=-1 if left is None else left)

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()


class _Dialer(Dialer):
    """Connects, one thread at a time."""

    _new_guard = _Guard
    monotonic = staticmethod(time.monotonic)

    async def _connect(
        self, endpoint: Endpoint, context: ssl.SSLContext | None, deadline: Deadline
    ) -> Link:
        host, port, _ = endpoint
        connected = socket.create_connection((host, port), timeout=deadline.remaining() or 1e-3)
        tls = None
        try:
            if context is not None:
                tls = TlsStream(context, host)
                tls.shake_hands(connected, deadline)
        except BaseException:
            connected.close()
            raise
        return _Link(connected, self._address, tls)


_SHARED = Dialers(_Dialer)
_LIVE = weakref.WeakSet["_Link"]()


def _after_fork() -> None:
    global _SHARED
    _SHARED = Dialers(_Dialer)
    for link in [*_LIVE]:
        link.close_copy()


os.register_at_fork(after_in_child=_after_fork)


class _Link:
    """A connection. ``_mutex`` guards the pending calls, and ``_leading`` the reading side."""

    def __init__(self, connected: socket.socket, address: str, tls: TlsStream | None) -> None:
        connected.setblocking(False)
        keep_alive(connected)
        self._socket = connected
        # Not __del__: in a cycle the socket could be finalized first, with a warning.
        weakref.finalize(self, connected.close)
        _LIVE.add(self)
        self._tls = tls
        self._address = address
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(connected, select.POLLIN)
        self._writable.register(connected, select.POLLOUT)
        self._reader = ReplyReader()
        self._mutex = Mutex()
        self._sending = _Guard()
        self._leading = Mutex(brief=False)
        self._pending: dict[int, _Inbox] = {}
        self._request = -1  # HELLO has 0, as does the refusal of a connection
        self.heard = time.monotonic()
        self.lost = ""

    async def call(
        self, kind: Kind, handle: int, a: int, b: int, payload: bytes, deadline: Deadline
    ) -> Reply:
        """Send a request and return its answer."""
        if self._leading.held():
            raise reentrant_call()
        inbox: _Inbox = SimpleQueue()
        with self._mutex:
            if self.lost:
                raise LinkLost(self.lost)
            self._request = request = self._request + 1 & 0xFFFFFFFF
            self._pending[request] = inbox
        try:
            frame = FRAME.pack(kind, 0, handle, request, a, b)
            await self._send(frame + pack_payload(payload) if payload else frame, deadline)
            return self._receive(inbox, deadline)
        finally:
            self._finish(request)

    def drop(self, reason: str) -> None:
        """End the connection. Calls that are waiting for it raise LinkLost."""
        with self._mutex:
            if self.lost:
                return
            self.lost = f"the connection to {self._address} ended: {reason}"
            with suppress(OSError):  # the peer has already ended it
                self._socket.shutdown(socket.SHUT_RDWR)
            for inbox in self._pending.values():
                inbox.put(None)
            self._close_if_idle()

    async def close(self) -> None:
        """End the connection because its user closes it."""
        self.drop("closed by its user")

    def close_copy(self) -> None:
        """Close the socket after a fork. The connection stays open for the parent."""
        self._socket.close()

    async def _send(self, data: bytes, deadline: Deadline) -> None:
        if not await self._sending.acquire(deadline):
            raise self._timeout()
        sent = 0
        try:
            if self._tls is not None:
                data = self._tls.wrap(data)
            while sent < len(data):
                try:
                    sent += self._socket.send(data[sent:])
                except BlockingIOError:
                    if not _ready(self._writable, deadline):
                        break
            else:
                return
        except OSError as error:
            self.drop(str(error))
            raise LinkLost(self.lost) from error
        finally:
            # A TLS record must be sent completely, because the peer counts records.
            if sent < len(data) and (sent or self._tls is not None):
                self.drop("a request was cut short")
            self._sending.release()
        raise self._timeout()

    def _receive(self, inbox: _Inbox, deadline: Deadline) -> Reply:
        while True:
            led = self._leading.acquire(blocking=False)
            if led:
                try:
                    while inbox.empty():
                        self._read(deadline)
                finally:
                    self._leading.release()
            try:
                message = inbox.get_nowait() if led else inbox.get(timeout=deadline.remaining())
            except Empty:
                raise self._timeout() from None
            if message is not None:
                return message
            if self.lost and inbox.empty():
                raise LinkLost(self.lost)

    def _read(self, deadline: Deadline) -> None:
        """Read once, and pass the answers to their callers. Only the leader calls this."""
        if not _ready(self._readable, deadline):
            raise self._timeout()
        try:
            data = self._socket.recv(_READ_BYTES)
            ended = not data
            if self._tls is not None:
                data = self._tls.unwrap(data)
            replies = self._reader.feed(data)
        except BlockingIOError:
            return
        except (OSError, ValueError) as error:
            self.drop(str(error))
            return
        if ended:
            self.drop("closed by the sequencer")
            return
        self.heard = time.monotonic()
        for reply in replies:
            inbox = self._pending.get(reply.request)
            if inbox is not None:
                inbox.put(reply)

    def _finish(self, request: int) -> None:
        """End a call. If no call leads and one is waiting, let it lead."""
        with self._mutex:
            del self._pending[request]
            if self._pending and not self._leading.locked():
                next(iter(self._pending.values())).put(None)
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self.lost and not self._pending:
            self._socket.close()

    def _timeout(self) -> SequencerTimeout:
        return SequencerTimeout(f"{self._address} did not answer in time")


def _ready(poll: select.poll, deadline: Deadline) -> bool:
    """Wait for an event of ``poll``. Returns False if the deadline passes first."""
    left = deadline.remaining()
    return bool(poll.poll(None if left is None else left * 1000))
