"""Positions that a client takes and never writes, as many as it can, and how readers pass them."""

from __future__ import annotations

import socket
from collections import Counter
from dataclasses import replace

import pytest

import zlog
from zlog import Entry, GapKind, aio
from zlog._base.sequencer import parse_address
from zlog._io import BlockingIo
from zlog._sequencer.frames import FRAME, Code, Kind, pack_payload
from zlog.limits import GRANT_COUNT_MAX

from ..conformance.stored import door_to
from ..support.local_sequencer import LocalSequencer
from ..support.logs import leave_hole
from .faulty import FaultyStore

FRAMES = 15


def test_few_frames_take_few_positions(plain: zlog.Store, sequencer: LocalSequencer) -> None:
    log = zlog.Log.create(plain, "orders", width=2)
    log.append(b"first")
    address = log._client.layout.address.encode()
    frames = [
        FRAME.pack(Kind.HELLO, 0, 0, 0, 1, 0),
        FRAME.pack(Kind.OPEN, 0, 0, 1, len(address), 0) + pack_payload(address),
        *(FRAME.pack(Kind.NEXT, 0, 0, 2 + n, GRANT_COUNT_MAX, 0) for n in range(FRAMES)),
    ]
    host, port, _ = parse_address(sequencer.address)
    with socket.create_connection((host, port)) as wire:
        wire.sendall(b"".join(frames[:2]))
        _read(wire, 2)
        wire.sendall(b"".join(frames[2:]))
        codes = Counter(Code(frame[1]) for frame in _read(wire, FRAMES))
    assert codes[Code.LIMIT] >= FRAMES // 2
    assert log.append(b"second") <= FRAMES // 2 * GRANT_COUNT_MAX


def _read(wire: socket.socket, count: int) -> list[tuple[int, ...]]:
    data = b""
    while len(data) < count * FRAME.size:
        data += wire.recv(1 << 16)
    return list(FRAME.iter_unpack(data))


def leave_holes(log: zlog.Log, frames: int) -> int:
    """Have a writer take as many positions as so many frames can ask for, and append behind."""
    for _ in range(frames):
        leave_hole(log, GRANT_COUNT_MAX)
    return log.append(b"behind")


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long readers have slept, each time."""
    sleep, slept = BlockingIo.sleep, list[float]()

    async def count(io: BlockingIo, seconds: float) -> None:
        slept.append(seconds)
        await sleep(io, seconds)

    monkeypatch.setattr(BlockingIo, "sleep", count)
    return slept


def test_million_holes_are_filled_with_few_operations(
    memory: zlog.Store, waited: list[float]
) -> None:
    log = zlog.Log.create(memory, "orders", width=4)
    log.append(b"first")
    behind = leave_holes(log, FRAMES)
    calls = Counter[str]()

    def count(_: int, method: str) -> None:
        calls[method] += 1

    waited.clear()
    reader = zlog.Log.open(FaultyStore(memory, count), "orders", hole_timeout=0.2)
    assert [item.position for item in reader.read_range()] == [0, 1, behind]
    assert calls["fill"] < 60
    assert 0 < sum(waited) < 0.4


async def test_followers_and_columns_pass_many_holes(
    memory: zlog.Store, waited: list[float]
) -> None:
    log = zlog.Log.create(memory, "orders", width=4)
    log.append(b"first")
    behind = leave_holes(log, 2)
    async with await aio.Log.open(memory, "orders", hole_timeout=0.2) as reader:
        async for item in reader.follow(1):
            if isinstance(item, Entry):
                assert item.position == behind
                break
    again = zlog.Log.create(memory, "others", width=4)
    leave_holes(again, 1)
    waited.clear()
    columns = list(again.read_columns(hole_timeout=0.3))
    assert sum(waited) < 0.6
    assert sum(len(each) for each in columns) == 1


def test_entries_between_holes_are_kept(memory: zlog.Store) -> None:
    """A run ends where an object holds something; the others' are not cut short."""
    log = zlog.Log.create(memory, "orders", width=4)
    entries = {}
    for count in (3000, 1, 700, 40000, 2):
        leave_hole(log, count)
        entries[log.append(b"%d" % count)] = b"%d" % count
    with zlog.Log.open(memory, "orders", hole_timeout=0.1) as reader:
        items = list(reader.read_range())
    found = {item.position: item.data for item in items if isinstance(item, Entry)}
    assert found == entries
    assert {item.kind for item in items if not isinstance(item, Entry)} == {GapKind.FILLED}


def test_lost_entries_between_holes_stay_lost(memory: zlog.Store) -> None:
    """A run ends there too, and the reader goes on behind it."""
    log = zlog.Log.create(memory, "orders", width=2)
    leave_hole(log, 30_000)
    lost = log.append(b"lost")
    leave_hole(log, 30_000)
    behind = log.append(b"behind")
    with door_to(memory) as door:
        name = log.view.object_of(lost).name
        content = door.load(name)
        door.save(name, replace(content, omap={}))
    with zlog.Log.open(memory, "orders", hole_timeout=0.1) as reader:
        items = list(reader.read_range())
    fates = [(item.position, getattr(item, "kind", "entry")) for item in items]
    expected = [(0, GapKind.FILLED), (lost, GapKind.LOST), (lost + 1, GapKind.FILLED)]
    assert fates == [*expected, (behind, "entry")]


def test_range_does_not_fill_beyond_its_end(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=4)
    leave_hole(log, 4000)
    log.append(b"behind")
    list(log.read_range(0, 1000, hole_timeout=0.05))
    gaps = [*log.read_range(1000, 4000, hole_timeout=None)]
    assert {gap.kind for gap in gaps if isinstance(gap, zlog.Gap)} == {GapKind.UNWRITTEN}
    assert gaps[0].position == 1000
