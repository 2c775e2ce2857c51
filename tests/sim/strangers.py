"""Strangers on the network: they don't know the token, and try to get or to give positions.

A stranger hears what honest processes send in their greetings. It reaches the sequencers, and can
listen where one has died; the store it does not reach. Nor can it stand between two honest
processes here: against that a token does not help, and TLS does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._sequencer.aio import AsyncioSequencer
from zlog._sequencer.credentials import Credentials
from zlog._sequencer.frames import (
    FRAME,
    FRAME_BYTES,
    PROTOCOL_VERSION,
    Code,
    Kind,
    RawFrame,
    pack_payload,
)
from zlog._sequencer.token import Pair, read_tokens
from zlog.errors import ZlogError
from zlog.testing import VirtualLoop
from zlog.testing._process import PROCESS

from ..support.programs import REPOSITORY
from .trace import Trace

TOKEN = str(REPOSITORY / "tests" / "sim" / "testdata" / "token.txt")
"""A file with the token that all honest processes know."""

OTHER_TOKEN = str(REPOSITORY / "tests" / "sim" / "testdata" / "other-token.txt")

HOST = "seqr"
STRANGER = "stranger"
IMPOSTOR = "impostor"

_GREETING_CHUNKS = 2
_PATIENCE = 0.5
_HARMLESS = {
    Kind.HELLO: (Code.TOKEN_WANTED, Code.LIMIT, Code.UNAVAILABLE),
    Kind.PROVE: (Code.TOKEN_WRONG,),
}
"""What a sequencer may say to those who have not shown that they know the token."""


class OverheardLoop(VirtualLoop):
    """A loop on whose network greetings are overheard.

    Attributes:
        greetings: what honest processes have sent first on each of their connections.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.greetings: list[list[bytes]] = []

    async def create_connection(self, protocol_factory: Any, *where: Any, **options: Any) -> Any:
        """As ever, and overheard."""
        transport, protocol = await super().create_connection(protocol_factory, *where, **options)
        if not _by_a_stranger():
            chunks: list[bytes] = []
            self.greetings.append(chunks)
            write = transport.write

            def overheard(data: Any) -> None:
                if len(chunks) < _GREETING_CHUNKS:
                    chunks.append(bytes(data))
                write(data)

            transport.write = overheard
        return transport, protocol


def _by_a_stranger() -> bool:
    process = PROCESS.get()
    return process is not None and process.name.startswith((STRANGER, IMPOSTOR))


class _Outsider:
    """A process that does not know the token.

    Args:
        loop: whose network it hears.
        name: of its process.
        ports: where sequencers listen.
        log: for which positions are wanted.
        chance: decides what it tries.
        trace: see there.
        complain: called with what must not happen.
    """

    def __init__(
        self,
        loop: OverheardLoop,
        name: str,
        ports: list[int],
        log: LogAddress,
        chance: random.Random,
        trace: Trace,
        complain: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._name = name
        self._ports = ports
        self._log = log
        self._chance = chance
        self._trace = trace
        self._complain = complain


class Stranger(_Outsider):
    """Knocks at the sequencers' doors until it is killed; complains of what it must not get."""

    async def run(self) -> None:
        """Try one thing after the other."""
        moves = (self._use_a_client, self._ask_at_once, self._guess, self._repeat)
        while True:
            await asyncio.sleep(self._chance.uniform(0, 0.1))
            move, port = self._chance.choice(moves), self._chance.choice(self._ports)
            try:
                await move(port)
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ZlogError) as error:
                self._trace(self._name, f"{move.__name__[1:]}: {type(error).__name__}: {error}")

    async def _use_a_client(self, port: int) -> None:
        """As any user of zlog, with no token or another one."""
        credentials = Credentials(token_file=self._chance.choice(("", OTHER_TOKEN)))
        client = AsyncioSequencer(f"tcp://{HOST}:{port}", credentials)
        deadline = Deadline(_PATIENCE, clock=self._loop.time)
        try:
            grant = await client.next(self._log, 5, 0, deadline)
            self._complain(f"S1: {self._name} was granted {grant}")
        finally:
            await client.close()

    async def _ask_at_once(self, port: int) -> None:
        """Say HELLO, and ask without waiting for what it is answered."""
        hello = self._hello(self._chance.choice((0, 7)))
        await self._talk(port, hello + self._requests(), lambda _: b"")

    async def _guess(self, port: int) -> None:
        """Answer the challenge with what is at hand."""
        number = 7

        def prove(frame: RawFrame) -> bytes:
            if frame[0] != Kind.HELLO:
                return b""
            challenge = Pair(*frame[4:])
            guesses = (
                Pair(0, 0),
                challenge,
                Pair(self._chance.getrandbits(64), self._chance.getrandbits(64)),
                read_tokens(OTHER_TOKEN)[0].client_proof(number, challenge),
                read_tokens(OTHER_TOKEN)[0].server_proof(number, challenge),
            )
            proof = self._chance.choice(guesses)
            return FRAME.pack(Kind.PROVE, 0, 0, 1, *proof) + self._requests()

        await self._talk(port, self._hello(number), prove)

    async def _repeat(self, port: int) -> None:
        """Replay what an admitted client has said, and go on in its name."""
        heard = [each for each in self._loop.greetings if len(each) == _GREETING_CHUNKS]
        if heard:
            hello, proof = self._chance.choice(heard)
            if self._chance.random() < 0.5:
                await self._talk(port, hello + proof + self._requests(), lambda _: b"")
            else:
                await self._talk(port, hello, lambda _: proof + self._requests())

    async def _talk(self, port: int, first: bytes, answer: Callable[[RawFrame], bytes]) -> None:
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(HOST, port), timeout=_PATIENCE
        )
        try:
            cut = self._chance.randint(0, len(first))
            writer.write(first[:cut])
            writer.write(first[cut:])
            while True:
                heard = await asyncio.wait_for(reader.readexactly(FRAME_BYTES), _PATIENCE)
                frame = FRAME.unpack(heard)
                if frame[1] not in _HARMLESS.get(frame[0], ()):
                    self._complain(f"S1: {self._name} was answered {frame}")
                    return
                writer.write(answer(frame))
        finally:
            writer.close()

    def _hello(self, number: int) -> bytes:
        return FRAME.pack(Kind.HELLO, 0, 0, 0, PROTOCOL_VERSION, number)

    def _requests(self) -> bytes:
        """OPEN the log, and ask for everything that there is."""
        address = self._log.encode()
        return b"".join(
            (
                FRAME.pack(Kind.OPEN, 0, 0, 2, len(address), 0),
                pack_payload(address),
                FRAME.pack(Kind.NEXT, 0, 0, 3, 5, 0),
                FRAME.pack(Kind.NEXT, 0, 1, 4, 5, 0),
                FRAME.pack(Kind.TAIL, 0, 0, 5, 0, 0),
                FRAME.pack(Kind.WAIT, 0, 0, 6, 0, 100),
                FRAME.pack(Kind.STATUS, 0, 0, 7, 0, 0),
            )
        )


class Impostor(_Outsider):
    """Listens where a sequencer has died, and hands out positions to all who ask.

    It complains if an honest process asks it for anything.
    """

    async def run(self) -> None:
        """Wait until a place is free, stay there for a while, and wait again."""
        while True:
            await asyncio.sleep(self._chance.uniform(0, 0.02))
            where = self._loop.network.bind(HOST, self._chance.choice(self._ports))
            try:
                listener = await self._loop.create_server(self._accept, sock=where)
            except OSError:
                continue
            self._trace(self._name, f"listens at {where.port}")
            await asyncio.sleep(self._chance.uniform(0.2, 1.2))
            listener.close()

    def _accept(self) -> asyncio.Protocol:
        # Who connects runs this.
        return _FalseSequencer(self._chance, self._say, in_vain=_by_a_stranger())

    def _say(self, what: str, *, wrong: bool) -> None:
        self._trace(self._name, what)
        if wrong:
            self._complain(f"S2: {self._name} {what}")


class _FalseSequencer(asyncio.Protocol):
    def __init__(self, chance: random.Random, say: Callable[..., None], *, in_vain: bool) -> None:
        self._in_vain = in_vain
        self._chance = chance
        self._say = say
        self._data = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._in_vain:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= FRAME_BYTES:
            frame = FRAME.unpack(self._data[:FRAME_BYTES])
            self._data = self._data[FRAME_BYTES:]
            assert self._transport is not None  # it is connected
            self._transport.write(self._answer(frame))

    def _answer(self, frame: RawFrame) -> bytes:
        kind, _, handle, request, a, b = frame
        if kind == Kind.HELLO:
            if self._chance.random() < 0.3:  # as one that has no token
                return FRAME.pack(Kind.HELLO, Code.OK, 0, request, PROTOCOL_VERSION, 0)
            return FRAME.pack(Kind.HELLO, Code.TOKEN_WANTED, 0, request, 1, 2)
        if kind == Kind.PROVE:
            proof = self._chance.choice(((a, b), (b, a), (0, 0), (1, 2)))
            return FRAME.pack(Kind.PROVE, Code.OK, 0, request, *proof)
        self._say(f"was asked by an honest process: {frame}", wrong=True)
        return FRAME.pack(kind, Code.OK, handle, request, 0, 1)
