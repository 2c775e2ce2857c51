"""Damaged storage: lost, said so, and never taken for something else.

The bytes are changed behind the class's back: in memory, on a live OSD by plain librados writes, in
the embedded store's file. A reader may then see LOST or get EIO; it never sees other data than was
written, and a position whose record is damaged is never taken for a free one.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from . import wire
from .damage import (
    DATA,
    EIO,
    EPOCH,
    INDEX_BYTES,
    POSITIONS,
    SPANS,
    assert_taken_for_good,
    calls,
    damages,
    flip,
    lost,
    make,
)
from .messages import request
from .objects import Store, Stripe
from .replies import Answer, Code, State
from .stored import (
    HEADER,
    LATER,
    STORES_WITH_DOORS,
    Content,
    Door,
    envelope,
    fields_of,
    of_version,
)

pytestmark = pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)


def test_damaged_record_is_lost(stripe: Stripe, sound: Content, host: str, door: Door) -> None:
    assert set(sound.omap) == set(SPANS)
    for key, span in SPANS.items():
        value = sound.omap[key]
        index = len(value) - INDEX_BYTES.get(key, 0)
        for what, damaged in damages(value, host):
            door.save(stripe.name, sound.with_value(key, damaged))
            gone = lost(stripe.read(EPOCH, POSITIONS, with_ids=True))
            assert set(gone) <= set(span), (key, what)
            if damaged[:index] != value[:index] or len(damaged) != len(value):
                assert gone == list(span), (key, what)
            else:
                assert len(gone) == 1, (key, what)


def test_record_of_later_version_is_unreadable(stripe: Stripe, sound: Content, door: Door) -> None:
    """Intact bytes of a later version: no damage, and nobody's to change here."""
    for key, span in SPANS.items():
        newer = of_version(key, sound.omap[key], LATER, compat=LATER)
        door.save(stripe.name, sound.with_value(key, newer))
        content = door.load(stripe.name)
        seen = stripe.read(EPOCH, POSITIONS).value.slots
        found = [p for p in POSITIONS if seen[p].state == State.UNREADABLE]
        assert found == list(span), key
        verified = stripe.verify(EPOCH, POSITIONS).value.rows
        rows = [row.length for row in verified if row.state == State.UNREADABLE]
        assert rows == [len(span)]
        for position in span:
            refused = Answer(Code.UNREADABLE, position)
            assert stripe.put(EPOCH, position, b"x", b"o" * 16) == refused
            assert stripe.put(EPOCH, position, DATA.get(position, b"")) == refused
            assert stripe.put(EPOCH - 1, position, DATA.get(position, b"")) == refused
            assert stripe.fill(EPOCH, [position]) == refused
            assert stripe.trim(EPOCH, [position]) == refused
        everything = stripe.trim(EPOCH, POSITIONS)
        assert everything == Answer(Code.UNREADABLE, span[0])
        assert door.load(stripe.name) == content


def test_trim_stops_at_record_of_later_version(stripe: Stripe, sound: Content, door: Door) -> None:
    key = b"e.0000000000000005.1"
    later = of_version(key, sound.omap[key], LATER, compat=LATER)
    door.save(stripe.name, sound.with_value(key, later))
    assert stripe.trim_to(EPOCH, 12) == Answer(Code.OK, True)
    slots = stripe.read(EPOCH, POSITIONS).value.slots
    assert [slot.state for slot in slots[:7]] == [State.TRIMMED] * 5 + [
        State.UNREADABLE,
        State.TRIMMED,
    ]
    assert slots[8].data == DATA[8]
    content = door.load(stripe.name)
    assert stripe.trim_to(EPOCH, 12) == Answer(Code.UNREADABLE, 5)
    assert door.load(stripe.name) == content


def test_unknown_fields_are_kept(stripe: Stripe, sound: Content, door: Door) -> None:
    """A later version added fields and says that this one may pass over them."""
    key = b"e.0000000000000002.3"

    def extended(name: bytes, value: bytes, known: bytes = b"") -> bytes:
        fields, payload = fields_of(value)
        return envelope(name, fields + known + b"further", payload, version=9)

    no_tags = wire.u32(0) + bytes(len(SPANS[key]))
    content = sound.with_value(key, extended(key, sound.omap[key], no_tags))
    door.save(stripe.name, content.with_attr(HEADER, extended(HEADER, sound.attrs[HEADER])))
    assert lost(stripe.read(EPOCH, POSITIONS)) == []
    assert stripe.put(EPOCH, 12, b"x").code == Code.OK
    assert stripe.trim(EPOCH, [1]).code == Code.OK
    after = door.load(stripe.name)
    for value in (after.attrs[HEADER], after.omap[key]):
        assert value[:2] == b"\x09\x01"
        assert fields_of(value)[0].endswith(b"further")


def test_header_of_later_version_is_refused(stripe: Stripe, sound: Content, door: Door) -> None:
    value = sound.attrs[HEADER]
    later = value[0] + 1
    content = sound.with_attr(HEADER, of_version(HEADER, value, later, compat=later))
    door.save(stripe.name, content)
    for method, answer in calls(stripe):
        assert answer == Answer(Code.STORED_TOO_NEW, later), method
    assert door.load(stripe.name) == content


def test_record_above_highest_is_unwritten(stripe: Stripe, sound: Content, door: Door) -> None:
    """The class did not store it: the header would say so. Reading and writing agree on that."""
    door.save(stripe.name, sound.with_value(b"e.000000000000000d.1", b"junk"))
    assert stripe.read(EPOCH, [13]).value.slots[0].state == State.UNWRITTEN
    assert stripe.verify(EPOCH, [13]).value.rows[0].state == State.UNWRITTEN
    assert stripe.put(EPOCH, 13, b"thirteen").code == Code.OK
    assert stripe.read(EPOCH, [13]).value.slots[0].data == b"thirteen"


@pytest.mark.parametrize(
    ("what", "damage", "expected"),
    [
        ("one byte of one entry", lambda s: flip(s, 9_000), [9]),
        ("two entries", lambda s: flip(flip(s, 8_999), 27_000), [8, 11]),
        ("zeroed", lambda s: bytes(len(s)), [8, 9, 10, 11]),
        ("cut inside an entry", lambda s: s[:20_000], [10, 11]),
        ("cut at an entry's end", lambda s: s[:18_000], [10, 11]),
        ("empty", lambda _: b"", [8, 9, 10, 11]),
        ("shifted", lambda s: b"x" + s[:-1], [8, 9, 10, 11]),
        ("entries exchanged", lambda s: s[9_000:18_000] + s[:9_000] + s[18_000:], [8, 9]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_bytestream(
    stripe: Stripe,
    sound: Content,
    door: Door,
    what: str,
    damage: Callable[[bytes], bytes],
    expected: list[int],
) -> None:
    door.save(stripe.name, replace(sound, stream=damage(sound.stream)))
    assert lost(stripe.read(EPOCH, POSITIONS, bytes_max=1 << 20)) == expected, what
    for position in range(8, 12):
        alone = stripe.read(EPOCH, [position]).value.slots[0]
        assert (alone.state == State.LOST) == (position in expected), what


def test_class_reports_missing_data(store: Store, prefix: str, door: Door) -> None:
    """What is cut off it can see without a checksum; what changed the reader's codec sees."""
    make(store, prefix)
    sound = door.load(prefix)
    door.save(prefix, replace(sound, stream=sound.stream[:20_000]))
    asked = request("read", EPOCH, False, 1 << 20, (1, range(8, 12)))
    code, reply = store.execute(prefix, "read", asked)
    states = list(reply[20:24])  # after the frame's head, highest, count and the flag
    assert (code, states) == (Code.OK, [State.WRITTEN] * 2 + [State.LOST] * 2)


def test_damaged_record_is_not_overwritten(stripe: Stripe, sound: Content, door: Door) -> None:
    for key, span in SPANS.items():
        door.save(stripe.name, sound.with_value(key, flip(sound.omap[key], 9)))
        for position in span:
            assert_taken_for_good(stripe, position)
        assert lost(stripe.read(EPOCH, POSITIONS)) == list(span)


def test_damaged_record_can_be_trimmed(stripe: Stripe, sound: Content, door: Door) -> None:
    for key, span in SPANS.items():
        door.save(stripe.name, sound.with_value(key, flip(sound.omap[key], 9)))
        assert stripe.trim(EPOCH, [span[0]]).code == Code.OK
        slots = stripe.read(EPOCH, list(span)).value.slots
        rest = [State.LOST] * (len(span) - 1)
        assert [slot.state for slot in slots] == [State.TRIMMED, *rest], key
        assert stripe.put(EPOCH, span[0], b"x").code == Code.READ_ONLY
        assert stripe.trim_to(EPOCH, span[-1] + 1) == Answer(Code.OK, False)
        slots = stripe.read(EPOCH, list(span)).value.slots
        assert {slot.state for slot in slots} == {State.TRIMMED}, key


def test_damaged_header(stripe: Stripe, sound: Content, host: str, door: Door) -> None:
    """Without it neither the epoch nor the trim point is known, so nothing may be answered."""
    for what, damaged in damages(sound.attrs[HEADER], host):
        content = sound.with_attr(HEADER, damaged)
        door.save(stripe.name, content)
        for method, answer in calls(stripe):
            assert answer == EIO, (what, method)
        assert door.load(stripe.name) == content, what


def test_header_with_impossible_hole(store: Store, prefix: str, door: Door) -> None:
    """Its checksum is right, but the positions are of another object or in no order."""
    stripe = Stripe(store, prefix, 2)
    stripe.seal(EPOCH)
    stripe.fill(EPOCH, [0, 4])
    sound = door.load(prefix)
    fields, _ = fields_of(sound.attrs[HEADER])
    for hole in ((2, 2), (1, 2), (2, 3), (4, 2), (2, 6)):
        changed = fields.replace(wire.u64(2) * 2, b"".join(map(wire.u64, hole)))
        door.save(prefix, sound.with_attr(HEADER, envelope(HEADER, changed, version=7)))
        assert (stripe.stat(EPOCH) == EIO) == (hole != (2, 2)), hole


def test_object_without_header_is_refused(stripe: Stripe, door: Door) -> None:
    """It was not made by seal: nothing is read from it, and seal does not take it over."""
    content = replace(door.load(stripe.name), attrs={})
    door.save(stripe.name, content)
    for method, answer in calls(stripe):
        expected = -errno.EEXIST if method == "seal" else -errno.ENOENT
        assert answer == Answer(expected), method
    assert door.load(stripe.name) == content


@pytest.mark.parametrize(
    "key",
    [
        b"e.x",
        b"e.0000000000000003",
        b"e.0000000000000003.",
        b"e.0000000000000003.0",
        b"e.0000000000000003.01",
        b"e.0000000000000003.5",
        b"e.0000000000000003.1x",
        b"e.000000000000000A.1",
        b"e.ffffffffffffffff.1",
        b"e.0000000000000003.ffffffffffffffff",
    ],
)
def test_malformed_record_key_is_eio(store: Store, prefix: str, door: Door, key: bytes) -> None:
    stripe = Stripe(store, prefix)
    stripe.seal(EPOCH)
    stripe.fill(EPOCH, range(20))
    sound = door.load(prefix)
    door.save(prefix, replace(sound, omap={key: envelope(key, b"\x04")}))
    assert stripe.read(EPOCH, POSITIONS) == EIO
    assert stripe.put(EPOCH, 0, b"x") == EIO


def test_foreign_keys_are_ignored(stripe: Stripe, sound: Content, door: Door) -> None:
    foreign = {b"a": b"x", b"e": b"x", b"f.0000000000000003.1": b"x", b"z": b""}
    door.save(stripe.name, replace(sound, omap={**sound.omap, **foreign}))
    assert lost(stripe.read(EPOCH, POSITIONS)) == []
    assert stripe.trim_to(EPOCH, 20).code == Code.OK
    assert door.load(stripe.name).omap == foreign
