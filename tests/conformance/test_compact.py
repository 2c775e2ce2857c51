"""Compaction of a stripe object: what is left is as it was, and what goes is trimmed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import zlog

from . import wire
from .damage import flip
from .objects import Store, Stripe
from .replies import Code, State
from .requests import Entry
from .stored import MemoryDoor

EVERYTHING = 2**63


def test_compaction_reclaims_keys_and_bytes(store: Store, prefix: str) -> None:
    """Of many updates of a few keys, in batches of every size, two sparse records are left."""
    stripe = Stripe(store, prefix)
    stripe.seal(1)
    at = 0
    for count in [1] * 40 + [16] * 40 + [1_000] * 3:
        tagged = [
            Entry(at + i, at + i, b"x" * 100, (b"%d" % ((at + i) % 50),)) for i in range(count)
        ]
        assert stripe.write(1, tagged).code == Code.OK
        at += count
    before = stripe.stat(1).value
    assert (before.records, before.entries) == (83, at)
    answer = stripe.compact(1, 0, EVERYTHING, range(at - 300))
    assert (answer.value.end, answer.value.trimmed) == (EVERYTHING, at - 300)
    stat = stripe.stat(1).value
    assert (stat.records, stat.entries, stat.data_bytes) == (2, 300, 30_000)
    assert stripe.compact(1, 0, EVERYTHING, [0]).value.trimmed == 0  # nothing is left to do
    assert stripe.stat(1).value == stat
    assert stripe.tags_rebuild(1).code == Code.OK
    found = stripe.select(1, 0, EVERYTHING, [b"7"]).value
    expected = [(p, b"x" * 100) for p in range(at - 300, at) if p % 50 == 7]
    assert [(p, slot.data) for p, slot in found.found] == expected


@pytest.fixture
def damageable(memory: zlog.Store) -> tuple[Stripe, MemoryDoor]:
    stripe = Stripe(memory, "damageable")
    stripe.seal(1)
    for first in range(0, 400, 20):
        rows = range(first, first + 20)
        stripe.write(1, [Entry(p, p, b"%d" % p * 9, (b"%d" % (p % 40),)) for p in rows])
    return stripe, MemoryDoor(memory)


def test_compact_leaves_damaged_records(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    sound = door.load(stripe.name)
    key = b"e.%016x.14" % 379  # the entry at 365 is damaged: that of tag 5
    value = sound.omap[key]
    at = value.index(b"365" * 9)
    damaged = sound.with_value(key, value[:at] + b"X" + value[at + 1 :])
    door.save(stripe.name, damaged)
    gone = [*range(360), *range(366, 370)]
    assert stripe.compact(1, 0, EVERYTHING, gone).value.trimmed == 360
    after = door.load(stripe.name)
    assert after.omap[key] == damaged.omap[key]
    door.save(stripe.name, after.with_value(key, value))  # as another copy has it
    assert stripe.compact(1, 0, EVERYTHING, gone).value.trimmed == 4
    assert stripe.read(1, [365]).value.slots[0].data == b"365" * 9


def test_damaged_sparse_record_is_lost_and_repairable(
    damageable: tuple[Stripe, MemoryDoor],
) -> None:
    """Its positions are lost, none is unwritten; it is repaired as any record, and trimmed."""
    stripe, door = damageable
    gone = [p for p in range(400) if p % 8]
    assert stripe.compact(1, 0, EVERYTHING, gone).value.trimmed == 350
    sound = door.load(stripe.name)
    (key,) = (key for key in sound.omap if key.startswith(b"e."))
    value = sound.omap[key]
    salvaged = stripe.salvage(position=7).value
    assert (salvaged.name, salvaged.value) == (key, value)
    for at in range(0, len(value), 37):
        door.save(stripe.name, sound.with_value(key, flip(value, at, at % 8)))
        slots = stripe.read(1, [*range(400)], 1 << 20).value.slots
        lost = [p for p, slot in enumerate(slots) if slot.state == State.LOST]
        assert lost in ([*range(400)], [lost[0]])
        assert stripe.heal(key, value).code == Code.OK
        assert door.load(stripe.name).omap == sound.omap
    for damaged in (value[:-1], flip(value, len(value) - 1)):  # all entries, and the last one
        door.save(stripe.name, sound.with_value(key, damaged))
        assert stripe.compact(1, 0, EVERYTHING, [8, 16]).value.trimmed == 0
        assert door.load(stripe.name).omap[key] == damaged
    door.save(stripe.name, sound)
    assert stripe.trim(1, [8, 9]).code == Code.OK
    assert [slot.state for slot in stripe.read(1, [8, 16]).value.slots] == [
        State.TRIMMED,
        State.WRITTEN,
    ]
    assert stripe.stat(1).value.entries == 49
    assert stripe.trim(1, range(400)).code == Code.OK
    assert {s.state for s in stripe.read(1, range(400)).value.slots} == {State.TRIMMED}
    assert stripe.stat(1).value.entries == 0


def test_malformed_sparse_records(damageable: tuple[Stripe, MemoryDoor]) -> None:
    stripe, door = damageable
    stripe.compact(1, 0, EVERYTHING, range(398))
    content = door.load(stripe.name)
    (key,) = (key for key in content.omap if key.startswith(b"e."))
    assert key == b"e.%016x.190" % 399

    def record(
        places: Sequence[int], ends: Sequence[int], names: bytes, counts: Sequence[int], data: Any
    ) -> bytes:
        count = len(places)
        fields = wire.u8(8) + wire.u32(count) + wire.column_u32(places)
        fields += b"".join(map(wire.u64, [1] * count)) + b"w" * 16 * count
        fields += b"".join(map(wire.u64, [1] * count)) + wire.column_u32(ends)
        crcs = [wire.entry_crc(place, b"x") for place in places]
        fields += wire.column_u32(crcs) + wire.blob(names) + bytes(counts)
        return fields, data

    from .stored import envelope

    good = record([3, 399], [1, 2], b"\1a", [0, 1], b"xx")
    bad = [
        record([], [], b"", [], b""),
        record([3, 400], [1, 2], b"", [0, 0], b"xx"),
        record([3, 3], [1, 2], b"", [0, 0], b"xx"),
        record([3, 2], [1, 2], b"", [0, 0], b"xx"),
        record([3, 9], [2, 1], b"", [0, 0], b"xx"),
        record([3, 9], [1, 2], b"", [0, 0], b"x"),
        record([3, 9], [1, 2], b"\1a", [0, 0], b"xx"),
        record([3, 9], [1, 2], b"\1a", [2, 0], b"xx"),
        record([3, 9], [1, 2], b"\2a", [1, 0], b"xx"),
        record([3, 9], [1, 2], b"\0", [1, 0], b"xx"),
        record([3, 9], [1, 2], b"\x81" + b"a" * 129, [1, 0], b"xx"),
        record([3, 9], [1, 2], b"\1a" * 65, [65, 0], b"xx"),
    ]
    for fields, data in [good, *bad]:
        door.save(stripe.name, content.with_value(key, envelope(key, fields, data, 4, 4)))
        slots = stripe.read(1, [*range(400)], tags=True).value.slots
        if fields == good[0]:
            assert [p for p, slot in enumerate(slots) if slot.state == State.WRITTEN] == [3, 399]
            assert (slots[399].data, slots[399].tags) == (b"x", {b"a"})
        else:
            assert {slot.state for slot in slots} == {State.LOST}, fields
