"""A simulated network, whose connections are slow, break, or go silent as a seed determines.

As in TCP, each connection delivers data in order and once, while different connections can overtake
each other. If a connection breaks, the sender does not know how much of its data has arrived. If
the network is cut, data does not arrive, and no error is reported until the network is restored or
a timeout expires.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from zlog.testing._process import PROCESS, Process

_END = b""
"""Takes the place of a chunk when the peer has closed the connection."""


@dataclass(slots=True)
class NetworkFaults:
    """The faults of a network. They may be changed while it is used.

    Attributes:
        latency: the minimum and maximum delay of a chunk of data, in seconds.
        slow: the probability that a chunk is slow.
        slow_seconds: the maximum delay of a slow chunk, in seconds.
        broken: the probability that sending a chunk breaks the connection.
    """

    latency: tuple[float, float] = (0.0001, 0.001)
    slow: float = 0.0
    slow_seconds: float = 1.0
    broken: float = 0.0


class Listening:
    """The address of a listener, which takes the place of a bound socket."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def getsockname(self) -> tuple[str, int]:
        """Return host and port."""
        return self.host, self.port


class Network:
    """All connections of one virtual loop.

    Args:
        loop: the virtual loop.
        seed: the seed that decides what happens to each chunk.

    Attributes:
        faults: see :class:`NetworkFaults`.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, seed: int) -> None:
        self.faults = NetworkFaults()
        self._loop = loop
        self._random = random.Random(f"{seed}.network")
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._ends: dict[_End, None] = {}  # in the order of their creation
        self._cut: set[frozenset[str]] = set()

    def bind(self, host: str, port: int) -> Listening:
        """Return what :meth:`asyncio.loop.create_server` takes as ``sock``."""
        return Listening(host, port)

    def listen(self, factory: Callable[[], asyncio.BaseProtocol], where: Listening) -> Listener:
        """Accept connections at an address, for the running process."""
        if where.getsockname() in self._listeners:
            raise OSError(f"{where.host}:{where.port} already has a listener")
        listener = Listener(self, factory, where)
        self._listeners[where.getsockname()] = listener
        return listener

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str | None, port: int | None
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to a listener. Raises ConnectionRefusedError if none listens at the address."""
        await asyncio.sleep(self._delay())
        here = PROCESS.get()
        where = str(host), int(port or 0)
        listener = self._listeners.get(where)
        while listener is not None and self._is_cut(here, listener.process):
            await asyncio.sleep(0.05)  # until the connecting side gives up
            listener = self._listeners.get(where)
        if listener is None:
            raise ConnectionRefusedError(f"nothing listens at {host}:{port}")
        near = _End(self, factory(), contextvars.copy_context(), here)
        far = _End(self, listener.factory(), listener.context, listener.process)
        near.peer, far.peer = far, near
        self._ends[near] = self._ends[far] = None
        near.made()
        self._loop.call_later(self._delay(), far.made, context=far.context)
        return near, near.protocol

    def cut(self, one: str, other: str) -> None:
        """Stop all data between two named processes. Neither of them gets an error."""
        self._cut.add(frozenset((one, other)))

    def restore(self) -> None:
        """Restore the network. Data in flight then arrives."""
        self._cut.clear()
        for end in list(self._ends):
            end.catch_up()

    def break_some(self, probability: float) -> int:
        """Break each connection with this probability. Returns the number of broken connections."""
        chosen = [end for end in self._ends if self._random.random() < probability / 2]
        for end in chosen:
            end.break_()
        return len(chosen)

    def kill(self, process: Process) -> None:
        """Break the connections of a process that has ended, and close its listeners."""
        for where, listener in list(self._listeners.items()):
            if listener.process is process:
                del self._listeners[where]
        for end in [end for end in self._ends if end.process is process]:
            end.break_()

    def _close_listener(self, where: tuple[str, int]) -> None:
        """Refuse connections to an address from now on."""
        self._listeners.pop(where, None)

    def _forget(self, end: _End) -> None:
        """Remove an end of a connection."""
        self._ends.pop(end, None)

    def _delay(self) -> float:
        """Return how long the next chunk takes."""
        faults = self.faults
        if faults.slow and self._random.random() < faults.slow:
            return self._random.uniform(0, faults.slow_seconds)
        return self._random.uniform(*faults.latency)

    def _breaks(self) -> bool:
        """Return whether the connection breaks at the next chunk."""
        return bool(self.faults.broken) and self._random.random() < self.faults.broken

    def _part(self, chunks: deque[bytes]) -> Iterator[bytes]:
        """Return the part of the data in flight that arrives when a connection breaks."""
        for _ in range(self._random.randint(0, len(chunks))):
            yield chunks.popleft()

    def _passes(self, end: _End) -> bool:
        """Return whether data can reach this end from its peer."""
        assert end.peer is not None  # set when connected
        return not self._is_cut(end.process, end.peer.process)

    def _call_later(self, end: _End, seconds: float, callback: Callable[[], object]) -> None:
        """Schedule a call that belongs to the process of an end."""
        self._loop.call_later(seconds, callback, context=end.context)

    def _is_cut(self, one: Process | None, other: Process | None) -> bool:
        if not self._cut or one is None or other is None:
            return False
        return frozenset((one.name, other.name)) in self._cut


class Listener:
    """A listener: it accepts connections for the process that it belongs to."""

    def __init__(
        self, network: Network, factory: Callable[[], asyncio.BaseProtocol], where: Listening
    ) -> None:
        self.factory = factory
        self.context = contextvars.copy_context()
        self.process = PROCESS.get()
        self._network = network
        self._where = where

    def close(self) -> None:
        """Accept no more connections."""
        self._network._close_listener(self._where.getsockname())


class _Socket:
    """Stands for the socket whose options are set."""

    def setsockopt(self, *_: object) -> None:
        """Do nothing."""


class _End(asyncio.Transport):
    """One end of a connection. ``_coming`` has the peer's chunks that are not delivered yet."""

    def __init__(
        self,
        network: Network,
        protocol: asyncio.BaseProtocol,
        context: contextvars.Context,
        process: Process | None,
    ) -> None:
        super().__init__({"socket": _Socket()})
        self.protocol = protocol
        self.context = context
        self.process = process
        self.peer: _End | None = None
        self._network = network
        self._coming: deque[bytes] = deque()
        self._made = False
        self._reading = True
        self._closing = False
        self._broken = False
        self._over = False

    def write(self, data: Any) -> None:
        """Send a chunk."""
        if self._closing or self._over or not data:
            return
        if self._network._breaks():
            self.break_()
        else:
            self._send(bytes(data))

    def close(self) -> None:
        """Close the connection after the written data. The peer notices when that has arrived."""
        if not self._closing and not self._over:
            self._closing = True
            self._send(_END)
            self._network._call_later(self, 0, lambda: self._lose(None))

    def abort(self) -> None:
        """Close the connection at once, and perhaps lose data in flight."""
        if not self._over:
            self._coming.clear()
            self.break_()

    def is_closing(self) -> bool:
        """Return whether the connection is closed or will be closed."""
        return self._closing or self._over

    def pause_reading(self) -> None:
        """Stop receiving data for now."""
        self._reading = False

    def resume_reading(self) -> None:
        """Receive data that has arrived."""
        self._reading = True
        self.catch_up()

    def is_reading(self) -> bool:
        """Return whether this end receives data."""
        return self._reading

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing, because written data is in flight at once."""

    def get_write_buffer_size(self) -> int:
        """Return 0, because written data is already in flight."""
        return 0

    def can_write_eof(self) -> bool:
        """Return False, because a connection is closed in both directions at once."""
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Use another protocol from now on."""
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self.protocol

    def made(self) -> None:
        """Pass the connection to the protocol, and data that has arrived in the meantime."""
        if not self._over:
            self._made = True
            self.protocol.connection_made(self)
            self.catch_up()

    def break_(self) -> None:
        """Break the connection. Both ends notice it, each at a different time."""
        for end in (self, self.peer):
            assert end is not None  # set when connected
            end._coming = deque(self._network._part(end._coming))
            end._broken = end._closing = True
            end.expect()

    def catch_up(self) -> None:
        """Schedule the chunks that arrived while the protocol received nothing."""
        for _ in range(len(self._coming) or self._broken):
            self.expect()

    def expect(self) -> None:
        """Schedule one received chunk for the protocol."""
        if not self._over:
            self._network._call_later(self, self._network._delay(), self._take)

    def _send(self, chunk: bytes) -> None:
        peer = self.peer
        assert peer is not None  # set when connected
        if not peer._broken:
            peer._coming.append(chunk)
            peer.expect()

    def _take(self) -> None:
        """Pass the oldest chunk to the protocol."""
        if self._over or not (self._made and self._reading and self._network._passes(self)):
            return
        if self._coming:
            self._give(self._coming.popleft())
        while self._broken and not self._over:
            if self._coming:
                self._give(self._coming.popleft())
            else:
                self._lose(ConnectionResetError("the connection broke"))

    def _give(self, chunk: bytes) -> None:
        if chunk is _END:
            self._lose(None)
        else:
            cast(asyncio.Protocol, self.protocol).data_received(chunk)

    def _lose(self, error: Exception | None) -> None:
        if not self._over:
            self._over = self._closing = True
            self._coming.clear()
            self._network._forget(self)
            self.protocol.connection_lost(error)
