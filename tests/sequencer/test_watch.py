"""A standby looks after the leader's process, over real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from zlog._sequencer.frames import FRAME, PROTOCOL_VERSION, Code, Kind
from zlog.seqr.election.lock import Holder
from zlog.seqr.election.watch import LeaderWatch
from zlog.seqr.server import bind

from .fakes import until

SOON = 5.0


class Leader:
    """Listens like a leader, and counts its visitors."""

    def __init__(self) -> None:
        self._listening: socket.socket = bind("127.0.0.1", 0)
        self.port = self._listening.getsockname()[1]
        self.visitors: list[asyncio.StreamWriter] = []
        self.came = asyncio.Condition()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._greet, sock=self._listening)

    async def _greet(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(FRAME.pack(Kind.HELLO, Code.OK, 0, 0, PROTOCOL_VERSION, 0))
        async with self.came:
            self.visitors.append(writer)
            self.came.notify_all()

    async def wait_for(self, visitors: int) -> None:
        async with self.came:
            await asyncio.wait_for(self.came.wait_for(lambda: len(self.visitors) >= visitors), SOON)

    def hang_up(self) -> None:
        """End every connection, and go on listening."""
        for writer in self.visitors:
            writer.transport.abort()

    def die(self) -> None:
        self._server.close()
        self.hang_up()

    def holder(self, cookie: str = "leader") -> Holder:
        return Holder(b"", cookie, f"tcp://127.0.0.1:{self.port}", 0.0)


@pytest.fixture
async def leader():
    leader = Leader()
    await leader.start()
    yield leader
    leader.die()


@pytest.fixture
async def told():
    return asyncio.Event()


@pytest.fixture
async def watch(told):
    watch = LeaderWatch(told.set)
    yield watch
    watch.stop()


async def test_dead_leader_is_detected(leader, watch, told):
    watch.follow(leader.holder())
    await leader.wait_for(1)
    assert not watch.gone(leader.holder())
    assert not told.is_set()
    leader.die()
    while not watch.gone(leader.holder()):
        await asyncio.wait_for(told.wait(), SOON)
        told.clear()
    assert not watch.gone(leader.holder("its successor at the same address"))


async def test_connection_loss_does_not_mean_dead_leader(leader, watch, told):
    watch.follow(leader.holder())
    await leader.wait_for(1)
    leader.hang_up()
    await asyncio.wait_for(told.wait(), SOON)
    await leader.wait_for(2)
    assert not watch.gone(leader.holder())


async def test_returning_leader_is_alive_again(watch, told):
    listening = bind("127.0.0.1", 0)
    where = listening.getsockname()
    listening.close()
    holder = Holder(b"", "leader", f"tcp://127.0.0.1:{where[1]}", 0.0)
    watch.follow(holder)
    await asyncio.wait_for(told.wait(), SOON)
    assert watch.gone(holder)
    with bind(*where):
        await until(lambda: not watch.gone(holder))


@pytest.mark.parametrize("address", ["tcp://255.255.255.255:1", "nonsense", "tcp://no.invalid:1"])
async def test_unreachable_address_is_not_considered_dead(watch, told, address):
    holder = Holder(b"", "leader", address, 0.0)
    watch.follow(holder)
    await asyncio.sleep(0.2)
    assert not watch.gone(holder)
    assert not told.is_set()


async def test_only_current_leader_is_watched(leader, watch, told):
    watch.follow(leader.holder("one"))
    await leader.wait_for(1)
    watch.follow(leader.holder("other"))
    await leader.wait_for(2)
    leader.die()
    while not watch.gone(leader.holder("other")):
        await asyncio.wait_for(told.wait(), SOON)
        told.clear()
    assert not watch.gone(leader.holder("one"))
    watch.stop()
    assert not watch.gone(leader.holder("other"))
