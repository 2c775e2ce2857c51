"""Entries whose data is compressed in blocks: stored, read, known again, trimmed, damaged."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from zlog._native import replies

from . import zstd
from .messages import request
from .objects import Store, Stripe
from .replies import WRITTEN, Answer, Code, Slot, State
from .requests import Entry
from .stored import STORES_WITH_DOORS, Door
from .wire import crc32c

SMALL = [Entry(p, p, b"%d," % p * 9) for p in range(6)]
LARGE = [Entry(p, p, bytes(range(256)) * 80) for p in range(6)]  # blocks that do not fit a value
with_door = pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)
sizes = pytest.mark.parametrize("entries", [SMALL, LARGE], ids=["inline", "stream"])


@pytest.fixture
def stripe(store: Store, prefix: str) -> Stripe:
    made = Stripe(store, prefix)
    assert made.seal(1).code == Code.OK
    return made


def states(stripe: Stripe, count: int = 6) -> list[State]:
    return [slot.state for slot in stripe.read(1, range(count), 1 << 25).value.slots]


def stored_bytes(stripe: Stripe) -> int:
    return int(stripe.stat(1).value.stored_bytes)


@sizes
def test_block_stored_and_returned_once(stripe: Stripe, entries: list[Entry]) -> None:
    assert stripe.write(1, entries, in_block=6) == WRITTEN
    block = zstd.pack(b"".join(entry.data for entry in entries))
    assert stored_bytes(stripe) == len(block)
    for asked in (range(6), [0, 2, 3, 5], [4]):
        code, reply = stripe.store.execute(
            stripe.name, "read", request("read", 1, False, 1 << 25, (1, asked), True)
        )
        assert (code, reply.count(block)) == (0, 1)
        slots = stripe.read(1, asked, 1 << 25).value.slots
        assert [slot.data for slot in slots] == [entries[p].data for p in asked]


def test_blocks_are_unreadable_to_older_clients(stripe: Stripe) -> None:
    stripe.write(1, SMALL[:3], in_block=3)
    stripe.write(1, SMALL[3:])
    stripe.trim(1, [1])
    found = stripe.read(1, range(6), blocks=False).value.slots
    assert [slot.state for slot in found] == [5, 3, 5, 0, 0, 0]
    assert found[0] == Slot(State.UNREADABLE)


def test_block_is_not_split_beyond_a_request(stripe: Stripe) -> None:
    """By one that finds every second position taken by an append of its own."""
    count = 40
    content = bytes(range(256)) * 4096  # literals: 1 MiB stored
    entries = [Entry(p, p, content if p == 0 else b"x") for p in range(count * 2)]
    for entry in entries[1::2]:
        stripe.write(1, [entry])
        stripe.trim(1, [entry.position])
    assert stripe.write(1, entries, in_block=len(entries)) == Answer(-errno.E2BIG)


@sizes
def test_last_trim_frees_block(stripe: Stripe, entries: list[Entry]) -> None:
    stripe.write(1, entries, in_block=6)
    whole = stored_bytes(stripe)
    stripe.trim(1, [0, 2, 4])
    assert stored_bytes(stripe) == whole + stripe.stat(1).value.data_bytes - sum(
        len(entries[p].data) for p in (1, 3, 5)
    )
    assert states(stripe) == [3, 0, 3, 0, 3, 0]
    stripe.trim(1, [1, 3, 5])
    assert stored_bytes(stripe) == 0
    assert states(stripe) == [3] * 6


@sizes
def test_trim_point_frees_whole_blocks(stripe: Stripe, entries: list[Entry]) -> None:
    stripe.write(1, entries, in_block=2)
    whole = stored_bytes(stripe)
    assert stripe.trim_to(1, 3) == Answer(Code.OK, False)
    assert stored_bytes(stripe) * 3 == whole * 2
    assert states(stripe) == [3, 3, 3, 0, 0, 0]
    stripe.trim_to(1, 6)
    assert stored_bytes(stripe) == 0


@with_door
@sizes
def test_damaged_block_is_lost(stripe: Stripe, door: Door, entries: list[Entry]) -> None:
    stripe.write(1, entries[:3], in_block=3)
    stripe.write(1, entries[3:])
    content = door.load(stripe.name)
    (key,) = (k for k in content.omap if k.endswith(b"2.3"))
    value, stream = content.omap[key], content.stream
    if entries is LARGE:
        stream = stream[:99] + bytes([stream[99] ^ 1]) + stream[100:]
    else:
        value = value[:-1] + bytes([value[-1] ^ 1])
    door.save(stripe.name, type(content)(content.attrs, {**content.omap, key: value}, stream))
    assert [row.state for row in stripe.verify(1, range(6), 1 << 25).value.rows][:1] == [State.LOST]
    unread = stripe.verify(1, range(6), 1 << 25, keys_only=True).value.rows[0].state
    assert unread == (State.WRITTEN if entries is LARGE else State.LOST)
    assert stripe.salvage(position=0) == Answer(-errno.EIO)
    assert stripe.write(1, entries[:3], in_block=3) == WRITTEN  # by its checksum
    stripe.trim(1, range(3))
    assert states(stripe) == [3, 3, 3, 0, 0, 0]


@with_door
@sizes
def test_block_is_repaired_as_whole(stripe: Stripe, door: Door, entries: list[Entry]) -> None:
    stripe.write(1, entries, in_block=6)
    stripe.trim(1, [1])
    sound = door.load(stripe.name)
    name, last, value, data = stripe.salvage(position=0).value
    assert (last, len(data) > 0) == (5, entries is LARGE)
    broken = type(sound)(sound.attrs, {name: b"broken"}, bytes(len(sound.stream)))
    door.save(stripe.name, broken)
    assert stripe.heal(name, value, data + b"x") == Answer(-errno.EINVAL)
    assert stripe.heal(name, value, data).code == Code.OK
    assert door.load(stripe.name) == sound


def _changed(change: Callable[[list[tuple[int, int, int]]], None], compression: int = 1) -> bytes:
    """A write of SMALL in two blocks, of which something does not fit."""
    plain = [b"".join(e.data for e in part) for part in (SMALL[:3], SMALL[3:])]
    stored = [zstd.pack(each) for each in plain]
    rows = [(3, len(each), crc32c(each)) for each in stored]
    change(rows)
    ends = [sum(len(e.data) for e in SMALL[: i + 1]) for i in range(6)]
    runs = (1, [*range(6)])
    fields = (1, 0, b"w" * 16, 0, runs, ends, [0] * 6, [*range(6)])
    return request("write", *fields, compression, rows, compat=2) + b"".join(stored)


@pytest.mark.parametrize(
    ("change", "compression"),
    [
        (list.sort, 0),  # as it was, but of no compression
        (list.sort, 3),
        (lambda rows: rows.pop(), 1),
        (lambda rows: rows.append((1, 1, 0)), 1),
        (lambda rows: rows.insert(0, (0, 0, 0)), 1),
        (lambda rows: rows.__setitem__(0, (2, *rows[0][1:])), 1),
        (lambda rows: rows.__setitem__(1, (2**32 - 1, *rows[1][1:])), 1),
        (lambda rows: rows.__setitem__(1, (3, rows[1][1] + 1, rows[1][2])), 1),
        (lambda rows: rows.__setitem__(1, (3, rows[1][1], rows[1][2] ^ 1)), 1),
    ],
)
def test_inconsistent_blocks_are_refused(
    stripe: Stripe, change: Callable[[list[tuple[int, int, int]]], None], compression: int
) -> None:
    assert stripe.send("write", _changed(change, compression)) == Answer(-errno.EINVAL)
    assert states(stripe) == [1] * 6


def test_oversized_blocks_make_no_large_reply(stripe: Stripe) -> None:
    """A hostile writer's, which the class does not open: 25 MiB for an entry of one byte."""
    block = bytes(25 << 20)
    row = (1, len(block), replies.crc32c(block))  # in Python it takes seconds
    for position in range(3):
        fields = (1, 0, b"w" * 16, 0, (1, [position]), [1], [0], [0], 1, [row])
        assert stripe.send("write", request("write", *fields, compat=2) + block) == WRITTEN
    asked = request("read", 1, False, 1 << 25, (1, [0, 1, 2]), True)
    code, reply = stripe.store.execute(stripe.name, "read", asked)
    assert code == Code.OK
    assert len(reply) < 64 << 20
    asked = request("read", 1, False, 1 << 25, (1, [2]), True)
    assert stripe.store.execute(stripe.name, "read", asked)[1].endswith(block)
