"""`salvage` and `heal`: sound bytes take the place of damaged ones, and of nothing else."""

from __future__ import annotations

import errno

import pytest

from .damage import (
    DATA,
    EIO,
    EPOCH,
    POSITIONS,
    SPANS,
    STATES,
    flip,
    lost,
    make,
    salvaged,
)
from .objects import Directory, Head, Store, Stripe
from .replies import Answer, Code, State, Verified
from .requests import CREATE, Entry
from .stored import (
    HEAD,
    HEADER,
    LATER,
    SEQUENCER,
    STORES_WITH_DOORS,
    Content,
    Door,
    envelope,
    of_version,
)

with_door = pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)

STREAMED = b"e.000000000000000b.4"
INVALID = Answer(-errno.EINVAL)
NOTHING = Answer(-errno.ENOENT)


@with_door
@pytest.mark.parametrize("key", SPANS, ids=bytes.decode)
def test_damaged_record_is_repaired(stripe: Stripe, sound: Content, door: Door, key: bytes) -> None:
    """Of each kind, whatever is damaged: its value, or the data of it in the bytestream."""
    for position in SPANS[key]:
        assert stripe.salvage(position=position).value.last == SPANS[key][-1]
    offered = salvaged(stripe, position=SPANS[key][0])
    assert offered[:2] == (key, sound.omap[key])
    assert offered[2] == (sound.stream if key == STREAMED else b"")
    damages = [sound.with_value(key, value) for value in (flip(sound.omap[key], 7), b"")]
    if key == STREAMED:
        damages.append(Content(sound.attrs, sound.omap, bytes(len(sound.stream))))
    for damaged in damages:
        door.save(stripe.name, damaged)
        indexed = damaged.omap == sound.omap
        assert stripe.salvage(position=SPANS[key][0]) == (
            EIO if indexed else Answer(Code.LOST, SPANS[key][0])
        )
        assert stripe.heal(*offered).code == Code.OK
        assert door.load(stripe.name) == sound
        assert lost(stripe.read(EPOCH, POSITIONS)) == []


@with_door
def test_verify_of_keys_only(stripe: Stripe, sound: Content, door: Door) -> None:
    """Data behind an index is looked at all the same."""
    key = b"e.0000000000000005.1"
    damaged = sound.with_value(key, flip(sound.omap[key], len(sound.omap[key]) - 1))
    door.save(stripe.name, Content(damaged.attrs, damaged.omap, bytes(len(sound.stream))))
    whole, keys = (stripe.verify(EPOCH, POSITIONS, keys_only=only).value for only in (False, True))
    assert lost_in(whole) == [5, 8, 9, 10, 11]
    assert lost_in(keys) == [5]


def lost_in(verified: Verified) -> list[int]:
    """Positions of an object of stride 1 that a verify found lost."""
    states = [row.state for row in verified.rows for _ in range(row.length)]
    return [p for p, state in zip(POSITIONS, states, strict=True) if state == State.LOST]


def stored(stripe: Stripe) -> list[tuple[bytes, bytes, bytes]]:
    """All that a sound object stores."""
    first = [salvaged(stripe, position=span[0]) for span in SPANS.values()]
    return [salvaged(stripe, name=HEADER), *first]


def test_same_bytes_replace_sound_ones(stripe: Stripe) -> None:
    """So that a replica gets them which is not the one that decides."""
    sound = stored(stripe)
    for each in sound:
        assert stripe.heal(*each).code == Code.OK
    assert stored(stripe) == sound
    assert lost(stripe.read(EPOCH, POSITIONS)) == []
    assert stripe.damaged().value.names == ()


def test_other_bytes_do_not_replace_sound_ones(store: Store, prefix: str) -> None:
    """Whole records, sound in themselves: another one's of the same positions, and an older one."""
    stripe, other = make(store, prefix), Stripe(store, f"{prefix}.other")
    other.seal(EPOCH)
    other.write(EPOCH, [Entry(p, p, b"other") for p in range(3)])
    other.write(EPOCH, [Entry(p, p, DATA[p][:-1] + b"!") for p in range(8, 12)])
    before = salvaged(stripe, position=1)
    stripe.trim(EPOCH, [1])
    sound = stored(stripe)
    for offered in (before, salvaged(other, position=0)):
        assert stripe.heal(*offered) == Answer(Code.READ_ONLY, 0)
    assert stripe.heal(*salvaged(other, position=8)) == Answer(Code.READ_ONLY, 8)
    assert stripe.heal(*salvaged(other, name=HEADER)) == Answer(Code.READ_ONLY, 0)
    assert stored(stripe) == sound


@with_door
def test_repair_checks_data_against_index(store: Store, prefix: str, door: Door) -> None:
    stripe, other = make(store, prefix), Stripe(store, f"{prefix}.other")
    other.seal(EPOCH)
    other.write(EPOCH, [Entry(p, p, DATA[p][:-1] + b"!") for p in range(8, 12)])
    sound = door.load(prefix)
    damaged = Content(sound.attrs, sound.omap, bytes(len(sound.stream)))
    door.save(prefix, damaged)
    assert stripe.heal(*salvaged(other, position=8)) == Answer(Code.READ_ONLY, 8)
    assert door.load(prefix) == damaged


def test_holes_are_not_repaired(store: Store, prefix: str) -> None:
    """A hole stays one, and what is trimmed stays trimmed."""
    stripe, other = make(store, prefix), Stripe(store, f"{prefix}.other")
    other.seal(EPOCH)
    other.put(EPOCH, 12, b"never written")
    first = salvaged(stripe, position=0)
    assert stripe.heal(*salvaged(other, position=12)) == NOTHING
    assert stripe.salvage(position=12) == NOTHING
    assert stripe.salvage(b"none") == NOTHING
    assert stripe.heal(b"none", envelope(b"none", b"")) == NOTHING
    stripe.trim_to(EPOCH, 3)
    assert stripe.heal(*first) == Answer(Code.BELOW_TRIM_POINT, 3)
    missing = Stripe(store, f"{prefix}.missing")
    assert missing.heal(*first) == NOTHING
    assert missing.salvage(position=0) == NOTHING


def vanished(
    store: Store, prefix: str, door: Door, key: bytes
) -> tuple[Stripe, Content, tuple[bytes, bytes, bytes]]:
    """A stripe object without one of its records; what it was before, and what repairs it."""
    stripe = make(store, prefix)
    sound = door.load(prefix)
    offered = salvaged(stripe, position=SPANS[key][0])
    door.save(prefix, sound.without(key))
    return stripe, sound, offered


@with_door
@pytest.mark.parametrize("key", SPANS, ids=bytes.decode)
def test_missing_record_is_repaired(store: Store, prefix: str, door: Door, key: bytes) -> None:
    """Where the header knows that there was one, and all of its positions are without."""
    stripe, sound, offered = vanished(store, prefix, door, key)
    assert lost(stripe.read(EPOCH, POSITIONS)) == list(SPANS[key])
    assert stripe.heal(*offered).code == Code.OK
    assert door.load(prefix) == sound
    if len(SPANS[key]) > 1 and key != STREAMED:  # split by a trim, so that its key is another's
        stripe.trim(EPOCH, [SPANS[key][0]])
        door.save(prefix, split := door.load(prefix))
        answer = stripe.heal(*offered)
        assert answer in (NOTHING, Answer(Code.READ_ONLY, SPANS[key][0]))
        assert door.load(prefix) == split


@with_door
@pytest.mark.parametrize("key", [key for key in SPANS if len(SPANS[key]) > 1], ids=bytes.decode)
def test_repair_cut_by_trim_point(store: Store, prefix: str, door: Door, key: bytes) -> None:
    stripe, _, offered = vanished(store, prefix, door, key)
    assert stripe.trim_to(EPOCH, SPANS[key][1]).code == Code.OK
    assert stripe.heal(*offered).code == Code.OK
    found = stripe.read(EPOCH, list(SPANS[key])).value.slots
    assert [slot.state for slot in found] == [State.TRIMMED, *map(STATES.get, SPANS[key][1:])]


@with_door
def test_malformed_repairs_are_refused(stripe: Stripe, sound: Content, door: Door) -> None:
    name, value, data = salvaged(stripe, position=8)
    inline = salvaged(stripe, position=0)
    damaged = sound.with_value(name, b"").with_value(inline[0], b"")
    door.save(stripe.name, damaged)
    for offered in (
        (name, flip(value, 20), data),
        (name, value, flip(data, 100)),
        (name, value, data[:-1]),
        (name, value, data + b"x"),
        (name, value),
        (name, of_version(name, value, LATER, compat=LATER), data),
        (inline[0], value, data),
        (inline[0], flip(inline[1], len(inline[1]) - 1)),
        (inline[0], inline[1], b"x"),
        (b"e.1", envelope(b"e.1", b"")),
    ):
        assert stripe.heal(*offered) == INVALID
    assert stripe.heal(HEADER, flip(sound.attrs[HEADER], 12)) == INVALID
    assert stripe.heal(HEADER, sound.attrs[HEADER], b"x") == INVALID
    assert stripe.salvage(inline[0]) == INVALID  # records are asked for by position
    assert door.load(stripe.name) == damaged


@with_door
def test_header_is_repaired_first(stripe: Stripe, sound: Content, door: Door) -> None:
    record = salvaged(stripe, position=0)
    header = salvaged(stripe, name=HEADER)
    assert header == (HEADER, sound.attrs[HEADER], b"")
    door.save(stripe.name, sound.with_attr(HEADER, flip(sound.attrs[HEADER], 12)))
    assert stripe.damaged().value.names == (HEADER,)
    assert stripe.heal(*record) == EIO
    assert stripe.salvage(position=0) == EIO
    assert stripe.salvage(HEADER) == EIO
    assert stripe.heal(*header).code == Code.OK
    assert stripe.damaged().value.names == ()
    assert door.load(stripe.name) == sound


@with_door
def test_repair_head_and_directory(store: Store, prefix: str, door: Door) -> None:
    """Every attribute and every key, after all of them were damaged at once."""
    head, directory = Head(store, prefix), Directory(store, f"{prefix}.directory")
    head.create("orders", 7)
    for name in ("a", "b"):
        assert head.cursor_commit(name, CREATE, 0).code == Code.OK
    directory.add("orders")
    directory.announce("tcp://a:1")
    for made, attribute in ((head, HEAD), (directory, SEQUENCER)):
        sound = door.load(made.name)
        assert made.damaged().value.names == ()
        offered = [salvaged(made, name=name) for name in (attribute, *sound.omap)]
        damaged = sound.with_attr(attribute, b"")
        for key, value in sound.omap.items():
            damaged = damaged.with_value(key, flip(value, 2))
        door.save(made.name, damaged)
        assert made.damaged().value.names == (attribute, *sorted(sound.omap))
        for one in offered:
            assert made.salvage(one[0]) == EIO
            assert made.heal(*one).code == Code.OK
        assert made.damaged().value.names == ()
        assert door.load(made.name) == sound
        other = envelope(attribute, sound.attrs[attribute][10:-1] + b"!")
        assert made.heal(attribute, other).code == Code.READ_ONLY


@with_door
def test_missing_newest_view_is_repaired(head: Head, door: Door) -> None:
    """The head says that it is there; of any other key it does not know."""
    assert head.cursor_commit("a", CREATE, 0).code == Code.OK
    sound = door.load(head.name)
    older, newest = sorted(key for key in sound.omap if key.startswith(b"v."))
    offered = {name: salvaged(head, name=name) for name in sound.omap}
    door.save(head.name, Content(sound.attrs, {}, b""))
    assert head.damaged().value.names == (newest,)
    assert head.salvage(newest) == NOTHING
    assert head.heal(older, *offered[older][1:]) == NOTHING
    assert head.heal(b"c.a", *offered[b"c.a"][1:]) == NOTHING
    assert head.heal(*offered[newest]).code == Code.OK
    assert door.load(head.name) == Content(sound.attrs, {newest: sound.omap[newest]}, b"")
    assert head.damaged().value.names == ()
