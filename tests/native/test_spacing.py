"""Which object has which position: against the rule itself, in Python and in C++."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlog._base.codes import POSITION_MAX
from zlog._base.striping import Places, Spacing
from zlog._native import messages

SPACINGS = st.builds(Spacing, st.integers(1, 6), st.sampled_from([1, 2, 4, 16]))
ANY_SPACINGS = st.builds(
    Spacing, st.integers(1, 1024), st.integers(0, 16).map(lambda shift: 1 << shift)
)
STARTS = st.integers(0, 300)
LENGTHS = st.integers(0, 200)


def object_of(spacing: Spacing, position: int) -> int:
    """The rule: the objects take turns, each with a unit of positions in a row."""
    return position // spacing.unit % spacing.width


def those_of(spacing: Spacing, start: int, stop: int, number: int) -> list[int]:
    """The positions of an object in a range, one by one."""
    return [p for p in range(start, stop) if object_of(spacing, p) == number]


@given(SPACINGS, STARTS, LENGTHS)
def test_an_object_has_the_positions_of_its_turns(
    spacing: Spacing, start: int, length: int
) -> None:
    stop = start + length
    for number in range(spacing.width):
        mine = those_of(spacing, start, stop, number)
        places = spacing.places(start, stop, number)
        assert [*places] == mine
        assert len(places) == len(mine)
        assert [places[i] for i in range(len(mine))] == mine
        assert [places[i - len(mine)] for i in range(len(mine))] == mine
        assert all(spacing.number(position) == number for position in mine)


@given(SPACINGS, STARTS, LENGTHS)
def test_the_parts_of_a_range_are_all_of_it(spacing: Spacing, start: int, length: int) -> None:
    """Each object that has any of it once, in the order of their first positions."""
    parts = spacing.parts(start, start + length)
    firsts = [part[0] for part in parts]
    assert firsts == sorted(firsts)
    assert len({spacing.number(first) for first in firsts}) == len(parts)
    assert sorted(p for part in parts for p in part) == [*range(start, start + length)]


@given(SPACINGS, STARTS, st.integers(0, 40))
def test_the_way_from_one_position_to_another(spacing: Spacing, start: int, count: int) -> None:
    number = object_of(spacing, start)
    far = start + (count + 1) * spacing.unit * spacing.width
    mine = those_of(spacing, start, far + 1, number)
    assert spacing.after(start, count) == mine[count]
    assert spacing.place(start) == len(those_of(spacing, 0, start, number))
    for other in range(spacing.width):
        expected = those_of(spacing, start, far + 1, other)[0]
        assert spacing.first_at(start, other) == expected


@given(SPACINGS, STARTS, LENGTHS, st.data())
def test_places_are_cut_as_a_range_is(
    spacing: Spacing, start: int, length: int, data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, spacing.width - 1))
    places = spacing.places(start, start + length, number)
    bound = st.none() | st.integers(-len(places) - 2, len(places) + 2)
    cut = slice(data.draw(bound), data.draw(bound))
    assert [*places[cut]] == [*places][cut]
    assert len(places[cut]) == len([*places][cut])
    assert [*places[cut][:3]] == [*places][cut][:3]


def test_places_are_no_range_with_steps() -> None:
    places = Spacing(4, 2).places(0, 100, 1)
    with pytest.raises(ValueError, match="not in steps"):
        places[::2]
    for at in (len(places), -len(places) - 1):
        with pytest.raises(IndexError):
            places[at]
    assert places == Places(Spacing(4, 2), 2, 100)
    assert places != Places(Spacing(4, 1), 2, 100)
    assert places != [*places]


@given(ANY_SPACINGS)
def test_a_spacing_is_one_number_on_the_wire(spacing: Spacing) -> None:
    """Its width in the lower half, and above the power of two that its unit is."""
    low, high = spacing.packed & 0xFFFF, spacing.packed >> 16
    assert (low, 1 << high) == spacing
    assert Spacing(spacing.width).packed == spacing.width


@given(
    ANY_SPACINGS,
    st.integers(0, 2**40) | st.integers(POSITION_MAX - 2**28, POSITION_MAX),
    st.integers(1, 2000),
)
def test_a_row_is_encoded_as_its_positions_are(spacing: Spacing, first: int, count: int) -> None:
    """By the core, which goes from one to the next on its own."""
    places = Places(spacing, first, POSITION_MAX + 1)[:count]
    positions = [*places]
    assert positions == [*Places(spacing, first, positions[-1] + 1)]
    row = messages.trim(1, spacing.packed, places)
    assert row == messages.trim(1, spacing.packed, positions)
    assert row[14:22] == spacing.packed.to_bytes(4, "little") + (1).to_bytes(4, "little")
    assert row[22:] == first.to_bytes(8, "little") + len(places).to_bytes(4, "little")


@given(SPACINGS, st.sets(st.integers(0, 200), min_size=1), st.data())
def test_the_core_has_the_same_rule(
    spacing: Spacing, positions: set[int], data: st.DataObject
) -> None:
    """A request is about positions of one object, and no others."""
    number = data.draw(st.integers(0, spacing.width - 1))
    mine = [p for p in sorted(positions) if object_of(spacing, p) == number]
    others = positions - {*mine}
    if mine:
        messages.trim(1, spacing.packed, mine)
    for other in list(others)[:3] if mine else ():
        with pytest.raises(ValueError, match="of one object"):
            messages.trim(1, spacing.packed, sorted({*mine, other}))
