"""A sequencer's server in this process, between hostile connections and a sound one.

Server, machine and peers are the real ones; the transport and the store are not. An input is one
stream on one connection, new or open, in chunks; time is virtual. Whatever comes:

- no exception escapes, and nothing is logged as an error;
- every answer is a frame that the protocol knows, to a request that was sent, and at most one;
- no position is granted twice;
- where a token is wanted, no client is served that has not shown it;
- connections, logs, waits, buffers, tasks and timers stay within the limits;
- the sound connection gets each answer at once, and the right one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import resource
from random import Random

from zlog import testing
from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import FRAME, FRAME_BYTES, TAIL_MAX, Code, Kind, pack_payload
from zlog._sequencer.token import Pair
from zlog.errors import LogNotFound, NotLeader, StoreUnavailable
from zlog.seqr.limits import Limits
from zlog.seqr.machine import admission
from zlog.seqr.machine.admission import Admission
from zlog.seqr.machine.machine import Machine
from zlog.seqr.server import Server

from .streams import Streams, hello, prove
from .transport import TOKEN, Broken, Transport, expect

LIMITS = Limits(
    connections_max=28,
    connections_per_address_max=16,
    greeting_max=12,
    logs_max=16,
    logs_per_connection_max=3,
    outstanding_per_connection_max=3,
    outstanding_max=12,
    wait_ms_max=2000,
    status_logs_max=3,
    activations_max=4,
    hello_s_max=0.1,
    idle_s_max=2.0,
    stall_s_max=1.0,
    write_buffer_bytes_max=512,
)
"""So low that every one of them is met."""

_CONNECTED_MAX = LIMITS.connections_max + LIMITS.greeting_max
"""With those that have no place yet, and are told so when they say HELLO."""

INPUTS_PER_WORLD = 20_000
_CONNECTIONS_MAX = 34
_LOOK_EVERY = 128
_ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "")
_GOOD = LogAddress("pool", "space", "good", 0xFFFF)


class World:
    """One server, and all its clients.

    Args:
        seed: decides everything, whether a token is wanted too.
        limits: that the server is given; what is looked at is ``LIMITS``.
    """

    def __init__(self, seed: int, limits: Limits = LIMITS) -> None:
        self._random = Random(f"{seed}.world")
        self._streams = Streams(Random(f"{seed}.streams"))
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, context: self.escaped.append(context))
        self.escaped: list[dict[str, object]] = []
        self.epoch = 0
        self.granted: dict[int, int] = {}  # the first position of the last grant, by epoch
        self.answers = self.frames = 0
        self.wants_token = seed % 3 != 0
        self.strict = seed % 3 == 1
        admission = Admission((TOKEN,) if self.wants_token else (), optional=not self.strict)
        machine = Machine("tcp://fuzzed:1", "1", self._loop.time(), limits, admission=admission)
        self.server = Server(machine, self)
        self.server._sweep()  # as `start` does, which needs a socket
        self._open: list[Transport] = []
        self._good = Good(self)

    async def begin(self) -> None:
        """Let the sound client in."""
        await self._good.begin()

    async def run(self, inputs: int) -> None:
        """Have that many inputs come, and then the end."""
        random = self._random
        for number in range(inputs):
            try:
                self._input()
                self._good.ask()
                if number % 16 == 0:
                    await asyncio.sleep(random.random() * 0.05)
                if number % _LOOK_EVERY == 0:
                    self._look()
            except Exception as error:
                raise Broken(f"input {number}: {error!r}") from error
        await self._end()

    def _input(self) -> None:
        """Send one stream on one connection."""
        random = self._random
        connections = self._open
        if len(connections) < 4 or random.random() < 0.5:
            if len(connections) >= _CONNECTIONS_MAX:
                self._leave(int(random.random() * len(connections)))
            link = Transport(self, random.choice(_ADDRESSES), reads=random.random() < 0.85)
            connections.append(link)
            if random.random() < 0.97:
                self._greet(link)
        else:
            link = connections[int(random.random() * len(connections))]
        data = self._streams.body(self.epoch, opens=random.random() < 0.3)
        self.frames += len(data) // FRAME_BYTES
        self._send(link, data)
        if link.gone or random.random() < 0.1:
            self._leave(connections.index(link))
        elif random.random() < 0.05:
            link.catch_up(random.choice((0.8, 1.0)))

    def _greet(self, link: Transport) -> None:
        random = self._random
        shows = self.wants_token and random.random() < 0.8
        said = hello(random.getrandbits(64) if shows else 0)
        if random.random() < 0.1:
            said = self._streams.mutated(said)
        self._send(link, said)
        if link.proof is not None and random.random() < 0.9:
            shown = prove(*link.proof)
            if random.random() < 0.1:
                shown = self._streams.mutated(shown)
            self._send(link, shown)

    def _send(self, link: Transport, data: bytes) -> None:
        """Send a stream in chunks, as far as it is read."""
        for chunk in self._streams.cut(data):
            if not link.open:
                return
            link.send(chunk)

    def _leave(self, index: int) -> None:
        link = self._open[index]
        self._open[index] = self._open[-1]
        self._open.pop()
        self.answers += link.answered
        link.leave(silently=self._random.random() < 0.01)

    def _look(self) -> None:
        """See that everything is within its limits."""
        expect(not self.escaped, self.escaped[:1])
        machine, quotas = self.server._machine, self.server._machine._quotas
        peers = self.server._peers
        expect(len(peers) == len(quotas) <= _CONNECTED_MAX, f"{len(peers)} connections")
        clients = quotas._clients.total()
        expect(clients <= LIMITS.connections_max, f"{clients} clients")
        expect(len(machine._logs) <= LIMITS.logs_max, f"{len(machine._logs)} logs")
        expect(0 <= quotas.outstanding <= LIMITS.outstanding_max, quotas.outstanding)
        waits = 2 * LIMITS.outstanding_max + 2 * 64
        expect(len(machine._timeouts) <= waits, f"{len(machine._timeouts)} timeouts")
        for log in machine._logs.values():
            expect(len(log.waits) <= waits, f"{len(log.waits)} waits")
            expect(len(log.openers) <= LIMITS.outstanding_max, f"{len(log.openers)} openers")
        for connection in peers:
            expect(connection.outstanding <= LIMITS.outstanding_per_connection_max, "waiting")
            expect(len(connection.handles) <= LIMITS.logs_per_connection_max, "handles")
            expect(not connection.unfinished, "frames are left lying")
            length = 0 if connection.open is None else connection.open[0][4]
            expect(length <= LIMITS.open_bytes_max, f"an OPEN with {length} bytes")
        overdue = self._loop.time() - (machine.next_timeout or math.inf)
        expect(overdue < 0.1, f"a WAIT that should have ended {overdue} s ago")
        tasks = len(self.server._tasks)
        expect(tasks <= LIMITS.logs_max, f"{tasks} tasks")
        timers = [each for each in self._loop._scheduled if not each._cancelled]  # type: ignore[attr-defined]
        expect(len(timers) <= _CONNECTED_MAX + 2 * LIMITS.logs_max + 4, f"{len(timers)} timers")
        for epoch in [epoch for epoch in self.granted if epoch < self.epoch - 1000]:
            del self.granted[epoch]

    async def _end(self) -> None:
        """All clients but the sound one go; nothing of them is left."""
        while self._open:
            self._leave(0)
        for _ in range(16):
            await asyncio.sleep(LIMITS.idle_s_max / 8)
            self._good.ask()
        self._look()
        machine = self.server._machine
        expect(len(self.server._peers) == 1, f"{len(self.server._peers)} connections are left")
        expect(machine._quotas.outstanding == 0, "requests are outstanding for ever")
        expect(machine.next_timeout is None, "waits are left")
        expect(not self.server._tasks, "take-overs are left")
        await self.server.stop()
        expect(not self.escaped, self.escaped[:1])

    async def activate(self, log: LogAddress) -> Grant:
        """Take a log over as a store does that is slow, and fails."""
        expect(0 <= log.log_id < 2**64, f"asked for {log!r}, which no log can be")
        self.epoch += 1
        epoch = self.epoch
        if log == _GOOD:
            return Grant(epoch, 0)
        random = self._random
        fate = random.random()
        if fate < 0.5:
            await asyncio.sleep(random.random() * 0.1)
        if fate % 0.1 < 0.01:
            raise random.choice((LogNotFound, NotLeader, StoreUnavailable, OSError))("by lot")
        tail = 0 if random.random() < 0.7 else TAIL_MAX - random.choice((0, 1, 2, 70_000))
        return Grant(epoch, tail)

    async def lives(self, log: LogAddress, epoch: int) -> bool:
        """Tell a sequencer whether the epoch of one of its logs lives, by lot."""
        return log == _GOOD or epoch % 2 == 0

    async def release(self, log: LogAddress) -> None:
        """Let a sequencer go."""


class Good:
    """A client as it should be: it asks, and has its answer before any other is heard."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._got = b""
        self._epoch = 0
        self._next = 0

    async def begin(self) -> None:
        """Connect, and open a log that no other client knows."""
        world = self._world
        self._link = link = Transport(world, "10.9.9.9")
        link.send(hello(7 if world.wants_token else 0))
        if link.proof is not None:
            link.send(prove(*link.proof))
        payload = _GOOD.encode()
        link.write = self._write  # type: ignore[method-assign]
        link.send(FRAME.pack(Kind.OPEN, 0, 0, 1, len(payload), 0) + pack_payload(payload))
        for _ in range(5):
            await asyncio.sleep(0)
        kind, code, handle, _, self._epoch, _ = FRAME.unpack(self._got)
        expect((kind, code, handle) == (Kind.OPEN, Code.OK, 0), "the sound client was not let in")

    def ask(self) -> None:
        """Take a position; now and then ask for the state."""
        self._got = b""
        request = self._next & 0xFFFFFFFF
        self._link.send(FRAME.pack(Kind.NEXT, 0, 0, request, 1, self._epoch))
        wanted = FRAME.pack(Kind.NEXT, Code.OK, 0, request, self._next, self._epoch)
        expect(self._got == wanted, f"the sound client got {self._got!r}, not {wanted!r}")
        self._next += 1
        if self._next % 1024 == 0:
            self._got = b""
            self._link.send(FRAME.pack(Kind.STATUS, 0, 0, 0, 0, 0))
            length = FRAME.unpack_from(self._got)[4]
            told = json.loads(self._got[FRAME_BYTES:][:length])
            expect(told["connections"] <= _CONNECTED_MAX, told)

    def _write(self, data: bytes) -> None:
        self._got += data


class Outcome:
    """What came of a world."""

    def __init__(self, world: World) -> None:
        self.frames, self.answers = world.frames, world.answers
        closed = world.server._machine._statistics.closed
        self.closed = {reason.value: count for reason, count in closed.items()}
        self.epochs = world.epoch
        self.resident_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class _Errors(logging.Handler):
    """What is logged as an error is one."""

    def emit(self, record: logging.LogRecord) -> None:
        raise Broken(f"logged: {record.getMessage()}")


def run(seed: int, inputs: int = INPUTS_PER_WORLD, limits: Limits = LIMITS) -> Outcome:
    """Run one world.

    Raises:
        Broken: with the number of the input; the same seed and number of inputs show it again.
    """
    logger = logging.getLogger("zlog.seqr")
    before, handler = logger.level, _Errors()
    challenges = Random(f"{seed}.challenges")
    new_challenge = admission.new_challenge
    admission.new_challenge = lambda: Pair(challenges.getrandbits(64), challenges.getrandbits(64))
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)  # refusals are logged, and here there are many

    async def work() -> Outcome:
        world = World(seed, limits)
        await world.begin()
        await world.run(inputs)
        return Outcome(world)

    try:
        return testing.run_virtually(work(), seed, seconds_max=1e9)
    finally:
        admission.new_challenge = new_challenge
        logger.setLevel(before)
        logger.removeHandler(handler)
