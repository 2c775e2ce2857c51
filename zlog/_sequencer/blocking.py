"""The blocking TCP client, shared by all threads of a process.

All threads share one connection, without a thread of its own: of those that wait for an answer,
one, the leader, reads from the socket and hands the others theirs. When the leader has its own
answer it passes the lead on. A single thread thus pays one write and one read per call.
"""

from __future__ import annotations

import os
import select
import socket
import time
import weakref
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from zlog._base.deadline import Deadline
from zlog._base.sequencer import parse_address
from zlog._native.mutex import Mutex, reentrant_call
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog._sequencer.dialing import Dialer
from zlog._sequencer.frames import (
    FRAME,
    STATUS_BYTES_MAX,
    Kind,
    Reply,
    ReplyReader,
    pack_payload,
)
from zlog._sequencer.greeting import CONNECT_SECONDS_MAX, connect_error, greet
from zlog._sequencer.keepalive import keep_alive
from zlog._sequencer.link import LinkLost
from zlog._sequencer.session import Dialers, Session
from zlog._sequencer.tls import TlsStream
from zlog.errors import SequencerTimeout

_READ_BYTES = 1 << 16


class _Signal:
    """Something other than an answer in a caller's inbox."""


_LEAD: Final = _Signal()
_LOST: Final = _Signal()

_Inbox = SimpleQueue[Reply | _Signal]


class BlockingSequencer(Session):
    """Client of the sequencer at an address, for several threads at once.

    Its coroutines never suspend. It connects when it is first used.
    """

    def __init__(self, address: str, credentials: Credentials = NO_CREDENTIALS) -> None:
        super().__init__(address, _Dialer(address, credentials))

    @staticmethod
    def shared(address: str, credentials: Credentials) -> Session:
        """Return one that shares its connection with others of this process."""
        return _SHARED.session(address, credentials)


class _Dialer(Dialer["_Link", "_Guard"]):
    """Connects, one thread at a time."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self, address: str, credentials: Credentials) -> None:
        super().__init__(address, credentials, _Guard)
        _LIVE.add(self)

    def close_copy(self) -> None:
        """Close the socket that a fork has copied, leaving the parent's connection alone."""
        if self._link is not None:
            self._link.close_copy()

    async def _dial(self, deadline: Deadline) -> _Link:
        step = deadline.sooner(CONNECT_SECONDS_MAX)
        token = self._credentials.token()
        link = self._connect(step, deadline)
        try:
            await greet(link, self._address, token, step)
        except SequencerTimeout as error:
            link.drop("no HELLO")
            raise connect_error(self._address, error, deadline) from error
        except BaseException:
            link.drop("no HELLO")
            raise
        if self._closed:
            link.drop("closed by its user")
        return link

    def _connect(self, step: Deadline, deadline: Deadline) -> _Link:
        tls = None
        connected = None
        try:
            host, port, wants_tls = parse_address(self._address)
            if wants_tls:
                tls = TlsStream(self._credentials.context(), host)
            connected = socket.create_connection((host, port), timeout=step.remaining() or 1e-3)
            if tls is not None:
                tls.shake_hands(connected, step)
        except (OSError, ValueError) as error:
            if connected is not None:
                connected.close()
            raise connect_error(self._address, error, deadline) from error
        return _Link(connected, self._address, tls)


_LIVE = weakref.WeakSet[_Dialer]()
_SHARED = Dialers(_Dialer)


def _after_fork() -> None:
    global _SHARED
    _SHARED = Dialers(_Dialer)
    for dialer in [*_LIVE]:
        dialer.close_copy()


os.register_at_fork(after_in_child=_after_fork)


class _Guard:
    """A thread's lock with a deadline."""

    def __init__(self) -> None:
        self._lock = Mutex(brief=False)

    async def acquire(self, deadline: Deadline) -> bool:
        """Take the lock; False when the deadline passes first."""
        if self._lock.acquire(blocking=False):
            return True
        left = deadline.remaining()
        return self._lock.acquire(timeout=-1 if left is None else left)

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()


class _Link:
    """One connection. ``_mutex`` guards what is pending, ``_leading`` the reading side."""

    def __init__(self, connected: socket.socket, address: str, tls: TlsStream | None) -> None:
        connected.setblocking(False)
        keep_alive(connected)
        self._socket = connected
        # With the last log that uses it: they need not be closed one by one. (No __del__: in
        # garbage with cycles the socket could be the first to go, with a warning.)
        weakref.finalize(self, connected.close)
        self._tls = tls
        self._address = address
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(connected, select.POLLIN)
        self._writable.register(connected, select.POLLOUT)
        self._reader = ReplyReader(STATUS_BYTES_MAX)
        self._mutex = Mutex()
        self._sending = _Guard()
        self._leading = Mutex(brief=False)
        self._pending: dict[int, _Inbox] = {}
        self._request = -1  # HELLO goes first and has number 0, as a refusal of the connection
        self.heard = time.monotonic()
        self.lost = ""

    async def call(
        self, kind: Kind, handle: int, a: int, b: int, payload: bytes, deadline: Deadline
    ) -> Reply:
        """Send one request and return its answer."""
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
        """End the connection; every call that waits on it raises LinkLost."""
        with self._mutex:
            if self.lost:
                return
            self.lost = f"the connection to {self._address} ended: {reason}"
            with suppress(OSError):  # the peer was faster
                self._socket.shutdown(socket.SHUT_RDWR)
            for inbox in self._pending.values():
                inbox.put(_LOST)
            self._close_if_idle()

    def close_copy(self) -> None:
        """Close the socket, and not the connection, which is the parent's."""
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
            # A TLS record that was made must go out: the other side counts them.
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
            if isinstance(message, Reply):
                return message
            if message is _LOST:
                raise LinkLost(self.lost)

    def _read(self, deadline: Deadline) -> None:
        """Read once, and hand out the answers that came. Only for the leader."""
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
        """End a call: if no call leads and one waits, let that one lead."""
        with self._mutex:
            del self._pending[request]
            if self._pending and not self._leading.locked():
                next(iter(self._pending.values())).put(_LEAD)
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self.lost and not self._pending:
            self._socket.close()

    def _timeout(self) -> SequencerTimeout:
        return SequencerTimeout(f"{self._address} did not answer in time")


def _ready(poll: select.poll, deadline: Deadline) -> bool:
    """Wait for what ``poll`` is registered for; False when the deadline passes first."""
    left = deadline.remaining()
    return bool(poll.poll(None if left is None else left * 1000))
