"""Compaction of a stripe object: what is left is as it was, and what goes is trimmed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import zlog
from zlog._native import core

from . import wire
from .damage import flip
from .objects import Store, Stripe, writer_id
from .replies import Code, Selected, State
from .requests import Entry
from .stored import MemoryDoor

EVERYTHING = 2**63
NAMES = [b"key.%d" % i for i in range(12)]
GEOMETRIES = [(1, 0, 1), (3, 2, 1), (2, 1, 8)]
SEEDS = {"mem": 60, "file": 12, "ceph": 6}
STEPS = 40
SIZES = [0, 3, 3, 30, 30, 100, 3_000, 5_000, 40_000]


@dataclass
class History:
    """A stripe object, and what its positions are to hold."""

    stripe: Stripe
    source: random.Random
    entries: dict[int, tuple[bytes, Entry, int, int]] = field(default_factory=dict)
    gone: dict[int, tuple[bytes, Entry, int]] = field(default_factory=dict)
    filled: set[int] = field(default_factory=set)
    trim_point: int = 0
    number: int = 0
    compacted: int = 0

    def place(self, place: int) -> int:
        """The position of the object that has so many below it."""
        stride, unit = self.stripe.stride, self.stripe.unit
        return (place // unit * stride + self.stripe.residue) * unit + place % unit

    @property
    def used(self) -> set[int]:
        return self.entries.keys() | self.gone.keys() | self.filled

    def write(self, places: Sequence[int], size: int, blocks: int = 0) -> None:
        """Write to those of the positions that are free."""
        positions = [p for p in map(self.place, places) if p not in self.used]
        positions = [p for p in positions if p >= self.trim_point]
        if not positions:
            return
        size = min(size, 60_000 // len(positions))
        entries = []
        for position in positions:
            self.number += 1
            data = (b"%d:" % self.number * size)[:size]
            tags = tuple(self.source.sample(NAMES, self.source.choice([0, 1, 1, 1, 2, 3])))
            entries.append(Entry(position, self.number, data, tags))
        writer, time = writer_id(self.source.choice("ab")), self.number
        assert self.stripe.write(1, entries, writer, time, None, blocks).code == Code.OK
        for entry in entries:
            self.entries[entry.position] = (writer, entry, time, blocks)

    def fill(self, places: Sequence[int]) -> None:
        free = [p for p in map(self.place, places) if p not in self.used and p >= self.trim_point]
        if free:
            assert self.stripe.fill(1, free).code == Code.OK
            self.filled.update(free)

    def trim(self, places: Sequence[int]) -> None:
        positions = [*map(self.place, places)]
        assert self.stripe.trim(1, positions).code == Code.OK
        for position in positions:
            self._forget(position)
            self.filled.discard(position)
            self.gone.setdefault(position, (b"", Entry(position, 0, b""), 0))

    def _forget(self, position: int) -> None:
        if position in self.entries:
            writer, entry, _, blocks = self.entries.pop(position)
            self.gone[position] = (writer, entry, blocks)

    def trim_to(self, place: int) -> None:
        self.trim_point = max(self.trim_point, self.place(place))
        while self.stripe.trim_to(1, self.trim_point, 3).value:
            pass
        for position in [p for p in self.entries if p < self.trim_point]:
            self._forget(position)

    def compact(self, start: int, end: int, *, at_once: bool = True) -> None:
        """As the client does: trim what has a newer entry with each of its tags, or some of it."""
        newest = core.NewestOfTags()
        for reply in self._listed(0, end):
            newest.note(reply)
        superseded: list[int] = []
        for reply in self._listed(start, end):
            superseded += newest.superseded(reply)[1]
        assert superseded == self._superseded(start, end)
        if not at_once:
            superseded = self.source.sample(superseded, len(superseded) // 2)
        named = sorted(
            {*superseded, *self.source.sample(sorted(self.used), min(len(self.used), 2))}
        )
        named = [p for p in named if start <= p < end] or superseded
        trimmed = {p for p in named if p in self.entries and p >= self.trim_point}
        at = start
        while named and at < end:
            answer = self.stripe.compact(1, at, end, named)
            assert answer.code == Code.OK
            assert answer.value.end > at
            self.compacted += answer.value.trimmed
            at = answer.value.end
        for position in trimmed:
            self._forget(position)

    def _listed(self, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            code, reply = self.stripe.tags_list_bytes(1, start, end)
            assert code == Code.OK
            yield reply
            start, before = core.NewestOfTags().note(reply), start
            assert start > before

    def _superseded(self, start: int, end: int) -> list[int]:
        newest: dict[bytes, int] = {}
        for position, (_, entry, *_rest) in self.entries.items():
            if position < end:
                for tag in entry.tags:
                    newest[tag] = max(newest.get(tag, 0), position)
        return sorted(
            p
            for p, (_, entry, *_rest) in self.entries.items()
            if start <= p < end and entry.tags and all(newest[tag] > p for tag in entry.tags)
        )

    def check(self) -> None:
        """Compare all that the object tells with what it is to hold."""
        top = max(self.used, default=0)
        positions = [p for p in map(self.place, range(3_000)) if p <= top + self.stripe.stride]
        slots = {}
        rest = positions
        while rest:
            read = self.stripe.read(1, rest, 1 << 25, True, tags=True).value
            slots.update(zip(rest, read.slots, strict=False))
            rest = rest[len(read.slots) :]
        for position in positions:
            slot = slots[position]
            if position < self.trim_point or position in self.gone:
                assert slot.state == State.TRIMMED
            elif position in self.filled:
                assert slot.state == State.FILLED
            elif position in self.entries:
                writer, entry, time, _ = self.entries[position]
                told = (slot.state, slot.data, slot.tags, slot.writer, slot.number, slot.timestamp)
                expected = (State.WRITTEN, entry.data, {*entry.tags}, writer, entry.number, time)
                assert told == expected
            else:
                assert slot.state == State.UNWRITTEN
        live = {p: own[1] for p, own in self.entries.items() if p >= self.trim_point}
        size = sum(len(entry.data) for entry in live.values())
        stat = self.stripe.stat(1).value
        assert (stat.entries, stat.data_bytes) == (len(live), size)
        counted = self.stripe.count(1, 0, EVERYTHING).value
        assert (counted.entries, counted.bytes, counted.last) == (
            len(live),
            size,
            max(live, default=None),
        )
        verified = self.stripe.verify(1, positions, 1 << 25).value
        states = [row.state for row in verified.rows for _ in range(row.length)]
        assert states == [slots[p].state for p in positions]
        self.check_tags(live)

    def check_tags(self, live: dict[int, Entry]) -> None:
        wanted = self.source.sample(NAMES, 2)
        expected = [(p, live[p].data) for p in sorted(live) if {*wanted} & {*live[p].tags}]
        for reverse in (False, True):
            found, start, end = [], 0, EVERYTHING
            while start < end:
                page = self.stripe.select(1, start, end, wanted, False, reverse, 50).value
                assert isinstance(page, Selected)
                found += [(p, slot.data) for p, slot in page.found if slot.state == State.WRITTEN]
                start, end = (start, page.end) if reverse else (page.end, end)
            assert (found[::-1] if reverse else found) == expected

    def retry(self) -> None:
        """A write once more: of what is left it is known; of what is gone it may be."""
        for own, gone in ((self.entries, False), (self.gone, True)):
            known = [p for p in own if own[p][1].number]
            for position in self.source.sample(known, min(len(known), 3)):
                writer, entry, *_, blocks = own[position]
                answer = self.stripe.write(1, [entry], writer)
                if position < self.trim_point or gone:
                    assert answer.code in (Code.OK, Code.READ_ONLY), answer
                else:
                    assert answer.code in ((Code.OK, Code.ALIKE) if blocks else (Code.OK,)), answer
                other = Entry(entry.position, entry.number + 10**6, entry.data)
                assert self.stripe.write(1, [other], writer).code == Code.READ_ONLY


def history(store: Store, name: str, seed: int) -> History:
    source = random.Random(seed)
    made = History(Stripe(store, name, *source.choice(GEOMETRIES)), source)
    assert made.stripe.seal(1).code == Code.OK
    made.write([1], 3)
    while not any(entry.tags for _, entry, *_ in made.entries.values()):
        made.write([2 + made.number], 3)
    top = 4 + made.number
    for _ in range(STEPS):
        step = source.random()
        old = source.sample(range(max(top, 2)), min(top, source.choice([1, 3, 20])))
        if step < 0.45:
            count, top = source.choice([1, 1, 1, 5, 16, 60, 300]), top + source.choice([0, 0, 0, 2])
            blocks = source.choice([0, 0, 0, 0, 4])
            made.write(range(top, top + count), source.choice(SIZES), blocks)
            top += count
        elif step < 0.5:
            made.write(sorted(old), 30)
        elif step < 0.55:
            made.fill(sorted(old))
        elif step < 0.62:
            made.trim(sorted(old))
        elif step < 0.65:
            made.trim_to(source.randrange(top) // 3)
        elif step < 0.7:
            made.stripe.tags_rebuild(1)
        elif step < 0.75:
            made.retry()
        elif step < 0.95:
            ends = sorted(source.sample(range(top + 5), 2))
            start, end = source.choice([(0, EVERYTHING), (0, made.place(ends[1])), ends])
            made.compact(start, end, at_once=source.random() < 0.7)
        else:
            made.check()
    made.compact(0, EVERYTHING)
    made.check()
    made.retry()
    return made


def test_histories_of_compaction(store: Store, prefix: str, host: str) -> None:
    trimmed = 0
    for seed in range(SEEDS[host]):
        trimmed += history(store, f"{prefix}.{seed}", seed).compacted
    assert trimmed > 50 * SEEDS[host]


def test_keys_and_bytes_come_back(store: Store, prefix: str) -> None:
    """Of many updates of a few keys, in batches of every size, a record or two are left."""
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
    answer = stripe.compact(1, 0, EVERYTHING, range(at - 50))
    assert (answer.value.end, answer.value.trimmed) == (EVERYTHING, at - 50)
    stat = stripe.stat(1).value
    assert (stat.records, stat.entries, stat.data_bytes) == (1, 50, 5_000)
    assert stripe.compact(1, 0, EVERYTHING, [0]).value.trimmed == 0  # nothing is left to do
    assert stripe.stat(1).value == stat
    assert stripe.tags_rebuild(1).code == Code.OK
    found = stripe.select(1, 0, EVERYTHING, [b"7"]).value
    assert [(p, slot.data) for p, slot in found.found] == [(at - 50 + (7 - at) % 50, b"x" * 100)]


def test_a_stale_epoch_is_refused(store: Store, prefix: str) -> None:
    stripe = Stripe(store, prefix)
    stripe.seal(1)
    stripe.write(1, [Entry(0, 0, b"x", (b"a",)), Entry(1, 1, b"y", (b"a",))])
    stripe.seal(2)
    answer = stripe.compact(1, 0, 2, [0])
    assert (answer.code, answer.value) == (Code.STALE_EPOCH, 2)
    assert stripe.read(2, [0]).value.slots[0].state == State.WRITTEN


@pytest.fixture
def damageable() -> Iterator[tuple[Stripe, MemoryDoor]]:
    with zlog.connect("mem://") as store:
        stripe = Stripe(store, "damageable")
        stripe.seal(1)
        for first in range(0, 400, 20):
            rows = range(first, first + 20)
            stripe.write(1, [Entry(p, p, b"%d" % p * 9, (b"%d" % (p % 40),)) for p in rows])
        yield stripe, MemoryDoor(store)


def test_what_is_damaged_is_not_stored_anew(damageable: tuple[Stripe, MemoryDoor]) -> None:
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


def test_damage_of_a_sparse_record(damageable: tuple[Stripe, MemoryDoor]) -> None:
    """Its positions are lost, none is unwritten; it is healed as any record, and trimmed."""
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
    door.save(stripe.name, sound.with_value(key, value[:-1]))
    assert stripe.compact(1, 0, EVERYTHING, [8, 16]).value.trimmed == 0
    assert stripe.read(1, [0, 8, 16]).value.slots[1].state == State.LOST
    door.save(stripe.name, sound)
    assert stripe.trim(1, [8, 9]).code == Code.OK
    assert [slot.state for slot in stripe.read(1, [8, 16]).value.slots] == [
        State.TRIMMED,
        State.WRITTEN,
    ]
    assert stripe.stat(1).value.entries == 49


def test_sparse_records_that_are_none(damageable: tuple[Stripe, MemoryDoor]) -> None:
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
