"""What stands in for stores and sockets in the sequencer's tests."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future

from zlog._base.sequencer import Grant, LogAddress, format_address
from zlog._sequencer.frames import FRAME, Kind, Reply, ReplyReader, pack_payload, payload_frames
from zlog.seqr.limits import Limits
from zlog.seqr.machine.machine import Machine
from zlog.seqr.machine.state import Activate, Close, Effect, Release, Send
from zlog.seqr.security import OPEN_TO_ALL, Security
from zlog.seqr.server import Server, bind

ORDERS = LogAddress("", "", "orders", 0xABC)
AUDIT = LogAddress("pool", "space", "audit", 7)


def request(kind, number=0, *, handle=0, a=0, b=0, payload=b"") -> bytes:
    """The bytes of one request."""
    if payload:
        a = len(payload)
    return FRAME.pack(kind, 0, handle, number, a, b) + pack_payload(payload)


HELLO = request(Kind.HELLO, a=1)


def open_request(log=ORDERS, number=1, dead_epoch=0) -> bytes:
    return request(Kind.OPEN, number, b=dead_epoch, payload=log.encode())


async def until(reached: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for what nothing announces."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not reached():
        assert loop.time() < end
        await asyncio.sleep(0.01)


class Desk:
    """A machine whose effects are kept: frames by connection, the rest in order."""

    def __init__(self, limits: Limits | None = None, **options) -> None:
        self.now = 100.0
        self.machine = Machine("tcp://here:1", "1.0", self.now, limits, **options)
        self.effects: list[Effect] = []
        self._replies: dict[object, list[Reply]] = defaultdict(list)
        self._readers = defaultdict(ReplyReader)

    def connect(self, *, greet: bool = True):
        connection, _ = self.machine.connect()
        assert connection is not None
        if greet:
            self.send(connection, HELLO)
            self.take(connection)
        return connection

    def send(self, connection, *requests: bytes) -> None:
        self.apply(self.machine.receive(connection, b"".join(requests), self.now))

    def send_directly(self, connection, data: bytes) -> None:
        """As the server does: what the hot path can't answer goes through the machine."""
        answers = connection.answer(data, self.now)
        self.apply([Send(connection, answers)])
        if connection.unfinished:
            self.apply(self.machine.receive(connection, b"", self.now))

    def apply(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                reader = self._readers[effect.connection]
                self._replies[effect.connection] += reader.feed(effect.data)
            else:
                self.effects.append(effect)

    def take(self, connection) -> list[Reply]:
        """The replies that the connection got since the last look."""
        return self._replies.pop(connection, [])

    def wanted(self, kind=Activate) -> list[LogAddress]:
        """The logs for which effects of this kind are waiting; they are taken away."""
        found = [effect.log for effect in self.effects if isinstance(effect, kind)]
        self.effects = [effect for effect in self.effects if not isinstance(effect, kind)]
        return found

    def activations(self) -> list[Activate]:
        """The take-overs that are wanted; they are taken away."""
        found = [effect for effect in self.effects if isinstance(effect, Activate)]
        self.wanted()
        return found

    def released(self) -> list[LogAddress]:
        return self.wanted(Release)

    def closed(self) -> list[object]:
        return [effect.connection for effect in self.effects if isinstance(effect, Close)]

    def activate(self, log=ORDERS, epoch=1, tail=0) -> None:
        """Carry out a wanted take-over."""
        assert log in self.wanted()
        self.apply(self.machine.activated(log, Grant(epoch, tail)))

    def client(self, log=ORDERS, epoch=1, tail=0):
        """A connection that has ``log`` open, under handle 0."""
        connection = self.connect()
        self.send(connection, open_request(log))
        if any(isinstance(effect, Activate) for effect in self.effects):
            self.activate(log, epoch, tail)
        self.take(connection)
        return connection


class FakeStore:
    """Takes logs over in memory: epochs rise, tails stay where they were left."""

    def __init__(self) -> None:
        self.epochs: dict[LogAddress, int] = defaultdict(int)
        self.tails: dict[LogAddress, int] = defaultdict(int)
        self.released: list[LogAddress] = []
        self.errors: list[Exception] = []
        self.takeovers = 0
        self.looks = 0
        self._begun = threading.Condition()
        self._gates: dict[object, Future[None]] = {}

    def wait_for_takeovers(self, count: int) -> None:
        """Block until that many take-overs have begun."""
        with self._begun:
            assert self._begun.wait_for(lambda: self.takeovers >= count, 10)

    def shut(self, gate: object) -> None:
        """Hold up the take-overs of a log, or all releases ("release"), until ``open``."""
        self._gates[gate] = Future()

    def open(self, gate: object) -> None:
        """Let them go on; from any thread."""
        self._gates.pop(gate).set_result(None)

    async def activate(self, log: LogAddress) -> Grant:
        with self._begun:
            self.takeovers += 1
            self._begun.notify_all()
        await self._pass(log)
        if self.errors:
            raise self.errors.pop(0)
        self.epochs[log] += 1
        return Grant(self.epochs[log], self.tails[log])

    async def lives(self, log: LogAddress, epoch: int) -> bool:
        self.looks += 1
        await self._pass("look")
        return self.epochs[log] == epoch

    async def release(self, log: LogAddress) -> None:
        await self._pass("release")
        self.released.append(log)

    async def _pass(self, gate: object) -> None:
        if gate in self._gates:
            await asyncio.wrap_future(self._gates[gate])


class ServerThread:
    """A server in a thread of its own, on a loop of any kind."""

    def __init__(
        self,
        store: FakeStore,
        port: int = 0,
        limits: Limits | None = None,
        new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
        security: Security = OPEN_TO_ALL,
    ) -> None:
        self.store = store
        self._security = security
        self._limits = limits
        self._listening = bind("127.0.0.1", port)
        self.port = self._listening.getsockname()[1]
        self.where = ("127.0.0.1", self.port)
        self.address = format_address("127.0.0.1", self.port, bool(security.certificate))
        self._ready = threading.Event()
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(10)

    def unsent(self) -> int:
        """Bytes that wait for peers to read them."""
        return sum(
            peer._transport.get_write_buffer_size() for peer in list(self._server._peers.values())
        )

    def closed(self) -> dict[str, int]:
        """Return how many connections were refused or closed, by the reason."""
        counted = self._server._machine._statistics.closed
        return {reason.value: count for reason, count in counted.items()}

    def wait_until_empty(self) -> None:
        """Wait until no connection is left, or the server has stopped."""
        while self._server._peers and self._thread.is_alive():
            time.sleep(0.01)

    def cut(self) -> None:
        """Cut every connection, as the network might."""

        async def abort() -> None:
            for peer in list(self._server._peers.values()):
                peer.abort()

        asyncio.run_coroutine_threadsafe(abort(), self._loop).result(10)

    def call(self, method, *arguments, **options):
        """Call a method of the server, in its thread; a coroutine is waited for."""

        async def call():
            result = getattr(self._server, method)(*arguments, **options)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(10)

    def stop(self, inherited=()) -> None:
        """Stop, cleanly; can be called again.

        Args:
            inherited: places that another sequencer has by now.
        """
        if self._thread.is_alive():
            self._inherited = inherited
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def _run(self) -> None:
        async def serve() -> None:
            self._stop = asyncio.Event()
            admission = self._security.admission()
            machine = Machine(
                self.address, "1.0", self._loop.time(), self._limits, admission=admission
            )
            server = Server(machine, self.store, self._security.context())
            self._server = server
            await server.start(self._listening)
            self._ready.set()
            await self._stop.wait()
            await server.stop(self._inherited)

        self._loop.run_until_complete(serve())
        self._loop.close()


class ScriptedServer:
    """Accepts one connection after the other and lets a script deal with each.

    A script is called with the socket, in the server's thread; when it returns, the connection is
    closed. After the last script there is no listener.
    """

    def __init__(self, *scripts) -> None:
        self._scripts = scripts
        self._listening = bind("127.0.0.1", 0)
        self.address = format_address(*self._listening.getsockname())
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def join(self) -> None:
        """Wait until all scripts have run."""
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with self._listening:
            for script in self._scripts:
                connected, _ = self._listening.accept()
                with connected:
                    script(connected)


def read_frames(connected, count: int = 1) -> list[tuple]:
    """Read frames from a blocking socket; fewer when the peer closes."""
    data = b""
    while len(data) < count * FRAME.size:
        chunk = connected.recv(count * FRAME.size - len(data))
        if not chunk:
            break
        data += chunk
    return list(FRAME.iter_unpack(data))


def greet(connected) -> None:
    """Answer a HELLO."""
    read_frames(connected)
    connected.sendall(FRAME.pack(Kind.HELLO, 0, 0, 0, 1, 0))


def answer_open(connected, epoch: int = 1, tail: int = 0) -> None:
    """Answer an OPEN of ORDERS with handle 0."""
    frames = read_frames(connected, 1 + payload_frames(len(ORDERS.encode())))
    connected.sendall(FRAME.pack(Kind.OPEN, 0, 0, frames[0][3], epoch, tail))


def hold(connected) -> None:
    """Keep the connection, silently, until the peer ends it."""
    while connected.recv(1 << 16):
        pass
