"""Filters of tags: whatever becomes of them, conditions and selects find what the records hold."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest

from .appended import PartState
from .damage import flip
from .objects import Store, Stripe
from .replies import Code, Selected
from .requests import AppendPart, Entry
from .stored import LATER, STORES_WITH_DOORS, Content, Door, envelope, of_version
from .wire import crc32c, u32

FEW = 32
"""As many positions as get a filter."""

in_memory = pytest.mark.parametrize("store_url", ["mem"], indirect=True)
with_door = pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)


class Ordered(Stripe):
    """A stripe object that is ordered by itself, and the tags of its entries."""

    def fill(self, *tags: Iterable[bytes]) -> int:
        """Append an entry with each of these sets of tags. Returns the position of the last."""
        tail = len(self.tags)
        self.tags += map(frozenset, tags)
        entries = [Entry(0, tail + i, b"x", tuple(sorted(each))) for i, each in enumerate(tags)]
        assert self.append(1, [AppendPart(tuple(entries))]).value.stored == 1
        return len(self.tags) - 1

    def unless(self, *sets: tuple[bytes, ...], start: int = 0, tags: Any = ()) -> int | None:
        """Append an entry unless an entry has all tags of a set. Returns where one has."""
        tail, searched = len(self.tags), start
        while True:
            entry = Entry(0, tail, b"x", tuple(sorted(tags)))
            part = AppendPart((entry,), start=searched, unless=sets)
            answer = self.append(1, [part], since=tail)
            if answer.value.stored:
                self.tags.append(frozenset(tags))
                return None
            ((state, position),) = answer.value.outcomes
            if state == PartState.CONFLICT:
                return position
            assert position > searched
            searched = position

    def found(self, *tags: bytes, reverse: bool = False) -> list[int]:
        answer = self.select(1, 0, 2**63, tags, True, reverse, 10_000)
        assert isinstance(answer.value, Selected), answer
        return [position for position, _ in answer.value.found]


@pytest.fixture
def stripe(store: Store, prefix: str) -> Ordered:
    made = Ordered(store, prefix)
    made.tags = []
    assert made.seal(1).code == Code.OK
    return made


def filters(content: Content) -> list[bytes]:
    return sorted(key for key in content.omap if key.startswith(b"f."))


def record(content: Content, position: int) -> bytes:
    (key,) = (each for each in content.omap if each.startswith(b"e.%016x." % position))
    return key


@with_door
def test_filter_that_an_append_stores(stripe: Ordered, door: Door) -> None:
    for i in range(FEW - 1):
        stripe.fill([b"id %d" % i, b"type"])
    assert stripe.unless((b"none",)) is None
    assert filters(door.load(stripe.name)) == []
    assert stripe.unless((b"none",)) is None
    key = b"f.40.%016x.%x" % (FEW - 1, FEW)
    hashes = sorted({crc32c(tag) for tags in stripe.tags for tag in tags})
    expected = envelope(key, u32(len(hashes)) + b"".join(map(u32, hashes)))
    assert {key: door.load(stripe.name).omap[key] for key in filters(door.load(stripe.name))} == {
        key: expected
    }
    assert stripe.unless((b"id 3", b"type")) == 3
    assert stripe.unless((b"id 3", b"other")) is None
    assert stripe.found(b"id 3", b"type") == [3]
    stripe.unless(start=0)
    stripe.unless((b"none",), start=len(stripe.tags) - FEW + 1)  # a recent start needs no filter
    assert filters(door.load(stripe.name)) == [key]


@in_memory
@pytest.mark.parametrize("seed", range(6))
def test_results_are_those_of_the_records(stripe: Ordered, door: Door, seed: int) -> None:
    """Also if filters are lost, damaged or of a later version, and after trims."""
    rng = random.Random(seed)
    numbers, trimmed, trim_point = count(), set[int](), 0
    for step in range(500):
        kind = rng.choice([b"a", b"b", b"c"])
        new = [{kind, b"id %d" % next(numbers)} for _ in range(rng.choice([1, 1, 1, 9]))]
        if rng.random() < 0.3:
            stripe.fill(*new)
        wanted = [{b"id %d" % rng.randrange(next(numbers)), rng.choice([b"a", b"b", kind])}]
        wanted += [{b"new %d" % step}] * rng.randrange(2)
        start = max(rng.choice([0, trim_point, rng.randrange(len(stripe.tags) + 1)]), trim_point)
        matching = (
            p
            for p, tags in enumerate(stripe.tags)
            if p >= start and p not in trimmed and any(tags >= each for each in wanted)
        )
        expected = next(matching, None)
        sets = [tuple(sorted(each)) for each in wanted]
        assert stripe.unless(*sets, start=start, tags=new[0]) == expected, step
        tail = len(stripe.tags)
        if rng.random() < 0.03:
            trim_point = rng.randrange(trim_point, max(trim_point + 1, tail // 2))
            assert stripe.trim_to(1, trim_point).code == Code.OK
            trimmed |= {*range(trim_point)}
        elif rng.random() < 0.1:
            gone = rng.randrange(trim_point, tail)
            compacts = rng.random() < 0.3
            done = stripe.compact(1, trim_point, tail, [gone]) if compacts else None
            assert (done or stripe.trim(1, [gone])).code == Code.OK
            trimmed.add(gone)
        content = door.load(stripe.name)
        if (keys := filters(content)) and rng.random() < 0.1:
            key = rng.choice(keys)
            value = content.omap[key]
            later = of_version(key, value, LATER, LATER)
            damaged = rng.choice([None, flip(value, rng.randrange(len(value))), later])
            door.save(
                stripe.name, content.with_value(key, damaged) if damaged else content.without(key)
            )
        for tag in wanted[0]:
            hits = [p for p, tags in enumerate(stripe.tags) if tag in tags and p not in trimmed]
            assert sorted(stripe.found(tag, reverse=step % 2 == 0)) == hits


@in_memory
def test_filters_are_merged(stripe: Ordered, door: Door) -> None:
    for i in range(20 * FEW):
        assert stripe.unless((b"none",), tags=[b"id %d" % i]) is None
    keys = filters(door.load(stripe.name))
    assert 1 < len(keys) <= 5
    content = door.load(stripe.name)
    door.save(stripe.name, content.with_value(keys[-1], b"damaged"))
    assert stripe.unless((b"none",)) is None
    content = door.load(stripe.name)
    assert [key for key in filters(content) if content.omap[key] == b"damaged"] == []
    for key in filters(content):
        door.save(stripe.name, content.without(key))
        assert stripe.unless((b"id 1",), (b"none",)) == 1


def fill_with_many_tags(stripe: Ordered) -> int:
    """Append so many tags that their filter is divided. Returns where they begin."""
    for _ in range(2 * FEW):
        first = stripe.fill([]) + 1
    stripe.fill(*([b"%d" % (62 * i + k) for k in range(62)] for i in range(600)))
    return first


@in_memory
def test_few_records_get_no_filter(stripe: Ordered, door: Door) -> None:
    for _ in range(7):
        stripe.fill(*[[b"tag"]] * 100)
    assert stripe.unless((b"none",)) is None
    assert filters(door.load(stripe.name)) == []
    stripe.fill(*[[b"tag"]] * 100)
    many = [tuple(b"none %d.%d" % (i, k) for k in range(33)) for i in range(32)]
    assert stripe.unless(*many) is None  # more tags than are looked up in filters
    assert filters(door.load(stripe.name)) == []
    assert stripe.unless((b"none",)) is None
    assert len(filters(door.load(stripe.name))) == 1


@in_memory
def test_divided_filter(stripe: Ordered, door: Door) -> None:
    first = fill_with_many_tags(stripe)
    assert stripe.unless((b"none",)) is None
    sound = door.load(stripe.name)
    assert [key[:5] for key in filters(sound)] == [b"f.%02x." % part for part in range(64)]
    part = b"f.%02x." % (crc32c(b"7000") % 64)
    (key,) = (each for each in filters(sound) if each.startswith(part))
    lost = sound.without(key)
    hidden = [sound, lost, sound.with_value(key, flip(sound.omap[key], 30))]
    for content in (*hidden, sound.without(filters(sound)[0])):
        door.save(stripe.name, content)
        tail = len(stripe.tags)
        assert stripe.unless((b"none", b"7000"), (b"7000",)) == first + 7000 // 62
        assert stripe.unless((b"none",)) is None
        del stripe.tags[tail:]
    door.save(stripe.name, sound)
    stripe.tags.append(frozenset())
    assert stripe.trim_to(1, stripe.fill([])).code == Code.OK


@in_memory
def test_trim_removes_filters(stripe: Ordered, door: Door) -> None:
    for _ in range(2 * FEW):
        stripe.fill([b"tag"])
    assert stripe.unless((b"none",)) is None  # before there is a chunk
    assert len(filters(door.load(stripe.name))) == 1
    assert stripe.trim_to(1, len(stripe.tags) - 1).code == Code.OK
    assert filters(door.load(stripe.name)) == []
    for _ in range(3):
        fill_with_many_tags(stripe)
        assert stripe.unless((b"none",)) is None
    assert len(filters(door.load(stripe.name))) >= 64
    assert stripe.trim_to(1, len(stripe.tags) - 1).code == Code.OK
    assert stripe.unless((b"none",), start=len(stripe.tags) - 1) is None
    assert filters(door.load(stripe.name)) == []


@in_memory
def test_damaged_records(stripe: Ordered, door: Door) -> None:
    """A record that was damaged first is in no filter. Later damage hides only candidates."""
    for i in range(3 * FEW):
        stripe.fill([b"id %d" % i])
    sound = door.load(stripe.name)
    early = record(sound, 40)
    door.save(stripe.name, sound.with_value(early, flip(sound.omap[early], 20)))
    assert stripe.unless((b"none",)) == 40
    assert stripe.unless((b"none",), start=41) is None
    assert stripe.unless((b"none",), start=41) is None
    assert len(filters(door.load(stripe.name))) == 2  # below and above it
    assert stripe.unless((b"none",)) == 40
    assert stripe.unless((b"id 40",)) == 40
    content = door.load(stripe.name).with_value(early, sound.omap[early])
    late = record(sound, 20)
    door.save(stripe.name, content.with_value(late, flip(sound.omap[late], 20)))
    assert stripe.unless((b"none", b"id 3")) is None
    assert stripe.unless((b"id 20",)) == 20
    assert stripe.unless((b"id 40",)) == 40
    content = door.load(stripe.name)  # the repaired record has a filter now
    door.save(stripe.name, content.with_value(early, flip(sound.omap[early], 20)))
    assert stripe.unless((b"none",)) is None


@in_memory
def test_late_entry_in_a_hole(stripe: Ordered, door: Door) -> None:
    """Another client's write can leave a hole, which is in no filter."""
    for i in range(FEW):
        stripe.fill([b"id %d" % i])
    stripe.write(1, [Entry(FEW + 1, 1, b"x", (b"above",))])
    stripe.tags += [frozenset(), frozenset([b"above"])]
    stripe.fill(*([b"more"] for _ in range(2 * FEW)))
    assert stripe.unless((b"none",)) == FEW
    for _ in range(3):
        assert stripe.unless((b"none",), start=FEW + 1) is None
    assert filters(door.load(stripe.name))
    assert stripe.write(1, [Entry(FEW, 2, b"x", (b"late",))]).code == Code.OK
    assert stripe.unless((b"late",)) == FEW
    assert stripe.unless((b"none",)) is None


@in_memory
def test_filter_between_holes_that_were_joined(stripe: Ordered, door: Door) -> None:
    """The header then no longer says that the positions between them were written."""
    for p in range(1, FEW + 1):
        stripe.write(1, [Entry(p, p, b"x", (b"id %d" % p,))])
    stripe.tags += [frozenset()] * (FEW + 1)
    assert stripe.unless((b"none",), start=1) is None
    assert filters(door.load(stripe.name))
    for start in range(FEW + 3, 65 * (FEW + 9), FEW + 9):
        stripe.write(1, [Entry(p, p, b"x") for p in range(start, start + FEW + 8)])
    content = door.load(stripe.name)
    door.save(stripe.name, content.without(record(content, 5)))
    assert stripe.write(1, [Entry(5, 5, b"x", (b"late",))]).code == Code.OK
    stripe.tags = [frozenset()] * 65 * (FEW + 9)
    assert stripe.unless((b"late",), start=1) == 5
