"""Records that are gone, though the header says that they were stored: lost, and never a hole.

A copy of an object may come back with its attributes and without some or all of its keys. The
header tells which positions nothing was ever stored at; only these are holes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from zlog._base.codes import HOLES_MAX

from . import wire
from .damage import EPOCH, POSITIONS, SPANS, STATES, assert_taken_for_good, lost
from .objects import Store, Stripe
from .replies import Answer, Code, State
from .requests import Entry
from .stored import HEADER, STORES_WITH_DOORS, Content, Door, envelope, fields_of

pytestmark = pytest.mark.parametrize("store_url", STORES_WITH_DOORS, indirect=True)

HISTORIES = {"mem": 300, "ceph": 5}


def states_of(stripe: Stripe, positions: Sequence[int]) -> dict[int, State]:
    """What a read says of positions; a verify and a count have to say the same."""
    slots = stripe.read(EPOCH, positions).value.slots
    rows = stripe.verify(EPOCH, positions).value.rows
    assert [slot.state for slot in slots] == [row.state for row in rows for _ in range(row.length)]
    found = {p: slot.state for p, slot in zip(positions, slots, strict=True)}
    counted = stripe.count(EPOCH, positions[0], positions[-1] + 1).value
    holes = [p for p, state in found.items() if state == State.UNWRITTEN]
    assert counted.hole == min(holes, default=None)
    assert counted.entries == [*found.values()].count(State.WRITTEN)
    return found


def gone(stripe: Stripe, positions: Sequence[int] = POSITIONS) -> list[int]:
    """Which positions are lost."""
    return [p for p, state in states_of(stripe, positions).items() if state == State.LOST]


def test_missing_record_is_lost(stripe: Stripe, sound: Content, door: Door) -> None:
    for key, span in SPANS.items():
        content = sound.without(key)
        door.save(stripe.name, content)
        assert lost(stripe.read(EPOCH, POSITIONS)) == list(span), key
        states_of(stripe, POSITIONS)
        for position in span:
            assert_taken_for_good(stripe, position)
        assert door.load(stripe.name) == content


def test_later_writes_do_not_hide_a_loss(stripe: Stripe, door: Door) -> None:
    """All keys are gone: the next appends go on above, and a true hole is still one."""
    door.save(stripe.name, replace(door.load(stripe.name), omap={}))
    assert stripe.seal(EPOCH + 1).value.highest == max(STATES)
    assert stripe.put(EPOCH + 1, 12, b"twelve").code == Code.OK
    assert stripe.put(EPOCH + 1, 15, b"fifteen").code == Code.OK
    assert stripe.fill(EPOCH + 1, [7, 13]).code == Code.OK
    slots = stripe.read(EPOCH + 1, POSITIONS).value.slots
    found = {p: slot.state for p, slot in zip(POSITIONS, slots, strict=True)}
    kept = {7: State.FILLED, 12: State.WRITTEN, 13: State.FILLED, 15: State.WRITTEN}
    assert found == {
        **dict.fromkeys(POSITIONS, State.UNWRITTEN),
        **dict.fromkeys(STATES, State.LOST),
        **kept,
    }


@pytest.mark.parametrize(
    "trim",
    [
        lambda stripe: stripe.trim_to(EPOCH, 4),
        lambda stripe: [stripe.trim_to(EPOCH, 4, records_max=1) for _ in range(4)],
        lambda stripe: stripe.trim(EPOCH, [2]),
    ],
)
def test_trim_corrects_counters(
    store: Store, prefix: str, door: Door, trim: Callable[[Stripe], object]
) -> None:
    """What limits of size keep goes by them. A count tells that some is lost."""
    stripe = Stripe(store, prefix)
    stripe.seal(EPOCH)
    for position in range(10):
        assert stripe.put(EPOCH, position, bytes(position + 1)).code == Code.OK
    content = door.load(prefix)
    vanished = sorted(key for key in content.omap if key.startswith(b"e."))[2]
    door.save(prefix, content.without(vanished))

    def held() -> tuple[int, int]:
        stat = stripe.stat(EPOCH).value
        return stat.entries, stat.data_bytes

    def lost(start: int, end: int) -> bool:
        return bool(stripe.count(EPOCH, start, end).value.lost)

    assert held() == (10, 55)
    assert (lost(0, 2), lost(0, 10), lost(2, 3), lost(3, 10)) == (False, True, True, False)
    trim(stripe)
    states = states_of(stripe, range(10))
    sizes = [position + 1 for position, state in states.items() if state == State.WRITTEN]
    assert held() == (len(sizes), sum(sizes))
    assert not lost(0, 10)


def test_header_knows_used_positions(store: Store, prefix: str, door: Door, host: str) -> None:
    """Histories by lot; then all records vanish, and what was used is told from what was not."""
    for seed in range(HISTORIES[host]):
        stripe = Stripe(store, f"{prefix}.{seed}", *((1, 0), (3, 2))[seed % 2])
        used, trimmed = history(stripe, Random(seed))
        content = door.load(stripe.name)
        door.save(stripe.name, replace(content, omap={}, stream=b""))
        positions = range(stripe.residue, max(used) + 9 * stripe.stride, stripe.stride)
        expected = {p: State.LOST if p in used else State.UNWRITTEN for p in positions}
        expected.update((p, State.TRIMMED) for p in positions if p < trimmed)
        assert states_of(stripe, positions) == expected, f"seed {seed}"


def history(stripe: Stripe, random: Random) -> tuple[set[int], int]:
    """Change an object at random; returns the positions that were used, and the trim point."""
    stripe.seal(EPOCH)
    used: set[int] = set()
    trimmed = 0
    for number in range(20):
        places = sorted(random.sample(range(40), random.choice((1, 1, 2, 5))))
        positions = [stripe.residue + stripe.stride * place for place in places]
        kind = random.choice(("write", "write", "fill", "trim", "trim_to"))
        if kind == "trim_to":
            trimmed = max(trimmed, positions[0] // 4)
            answer = stripe.trim_to(EPOCH, positions[0] // 4)
        elif kind == "write":
            answer = stripe.write(EPOCH, [Entry(p, 100 * number + p, b"x") for p in positions])
        else:
            answer = getattr(stripe, kind)(EPOCH, positions)
        if answer.code == Code.OK and kind != "trim_to":
            used.update(p for p in positions if p >= trimmed)
    used.add(positions[-1] + 40 * stripe.stride)
    assert stripe.fill(EPOCH, [positions[-1] + 40 * stripe.stride]).code == Code.OK
    return used, trimmed


def test_many_holes_are_merged(store: Store, prefix: str, door: Door) -> None:
    """A hole is never taken for a loss, and few losses for a hole: those between the nearest."""
    stripe = Stripe(store, prefix)
    stripe.seal(EPOCH)
    ends = list(itertools.accumulate(range(HOLES_MAX + 12, 2, -1)))  # ever nearer to each other
    written = [p for a, b in pairwise(ends) for p in range(a, b - 1)]
    for start in range(0, len(written), 100):
        entries = [Entry(p, p, b"") for p in written[start : start + 100]]
        assert stripe.write(EPOCH, entries).code == Code.OK
    door.save(prefix, replace(door.load(prefix), omap={}))
    known = gone(stripe, range(max(written) + 1))
    assert set(known) <= set(written)
    assert len(known) > len(written) * 0.9
    assert len(door.load(prefix).attrs[HEADER]) < 2048
    assert stripe.trim_to(EPOCH, max(written)) == Answer(Code.OK, False)
    assert len(door.load(prefix).attrs[HEADER]) < 160


def test_header_of_older_class(stripe: Stripe, sound: Content, door: Door) -> None:
    """Its header has no holes in it; or has those of a newer one, and a higher highest position."""
    fields, _ = fields_of(sound.attrs[HEADER])
    older = envelope(HEADER, fields[:69])
    door.save(stripe.name, replace(sound.with_attr(HEADER, older), omap={}))
    assert set(states_of(stripe, POSITIONS).values()) == {State.UNWRITTEN}
    assert stripe.put(EPOCH, 13, b"x").code == Code.OK
    door.save(stripe.name, replace(door.load(stripe.name), omap={}))
    assert gone(stripe) == [13]

    raised = fields[:17] + wire.u64(15) + fields[25:]
    newer = envelope(HEADER, raised, version=2)
    door.save(stripe.name, replace(sound.with_attr(HEADER, newer), omap={}))
    assert gone(stripe) == sorted(STATES)
    assert stripe.put(EPOCH, 14, b"x").code == Code.OK
    assert stripe.put(EPOCH, 16, b"x").code == Code.OK
    door.save(stripe.name, replace(door.load(stripe.name), omap={}))
    assert gone(stripe) == [*sorted(STATES), 14, 16]
