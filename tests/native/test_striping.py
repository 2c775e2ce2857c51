"""Which object has which position: against the rule itself, in Python and in C++."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlog._base.codes import POSITION_MAX
from zlog._base.striping import ObjectPositions, Striping
from zlog._native import messages

STRIPINGS = st.builds(Striping, st.integers(1, 6), st.sampled_from([1, 2, 4, 16]))
ANY_STRIPINGS = st.builds(
    Striping, st.integers(1, 1024), st.integers(0, 16).map(lambda shift: 1 << shift)
)
STARTS = st.integers(0, 300)
LENGTHS = st.integers(0, 200)


def object_of(striping: Striping, position: int) -> int:
    """The rule: the objects take turns, each with a stripe unit of positions in a row."""
    return position // striping.stripe_unit % striping.width


def those_of(striping: Striping, start: int, stop: int, number: int) -> list[int]:
    """The positions of an object in a range, one by one."""
    return [p for p in range(start, stop) if object_of(striping, p) == number]


@given(STRIPINGS, STARTS, LENGTHS)
def test_positions_of_an_object(striping: Striping, start: int, length: int) -> None:
    stop = start + length
    for number in range(striping.width):
        mine = those_of(striping, start, stop, number)
        places = striping.positions(start, stop, number)
        assert [*places] == mine
        assert len(places) == len(mine)
        assert [places[i] for i in range(len(mine))] == mine
        assert [places[i - len(mine)] for i in range(len(mine))] == mine
        assert all(striping.number(position) == number for position in mine)


@given(STRIPINGS, STARTS, LENGTHS)
def test_range_parts_cover_range(striping: Striping, start: int, length: int) -> None:
    """Each object that has any of it once, in the order of their first positions."""
    parts = striping.by_object(start, start + length)
    firsts = [part[0] for part in parts]
    assert firsts == sorted(firsts)
    assert len({striping.number(first) for first in firsts}) == len(parts)
    assert sorted(p for part in parts for p in part) == [*range(start, start + length)]


@given(STRIPINGS, STARTS, st.integers(0, 40))
def test_rank_and_successor_match_rule(striping: Striping, start: int, count: int) -> None:
    number = object_of(striping, start)
    far = start + (count + 1) * striping.stripe_unit * striping.width
    mine = those_of(striping, start, far + 1, number)
    assert striping.after(start, count) == mine[count]
    assert striping.rank(start) == len(those_of(striping, 0, start, number))
    for other in range(striping.width):
        expected = those_of(striping, start, far + 1, other)[0]
        assert striping.first_at(start, other) == expected


@given(STRIPINGS, STARTS, LENGTHS, st.data())
def test_slices_of_places(striping: Striping, start: int, length: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, striping.width - 1))
    places = striping.positions(start, start + length, number)
    bound = st.none() | st.integers(-len(places) - 2, len(places) + 2)
    cut = slice(data.draw(bound), data.draw(bound))
    assert [*places[cut]] == [*places][cut]
    assert len(places[cut]) == len([*places][cut])
    assert [*places[cut][:3]] == [*places][cut][:3]


def test_object_positions_refuse_steps() -> None:
    places = Striping(4, 2).positions(0, 100, 1)
    with pytest.raises(ValueError, match="must have step 1"):
        places[::2]
    for at in (len(places), -len(places) - 1):
        with pytest.raises(IndexError):
            places[at]
    assert places == ObjectPositions(Striping(4, 2), 2, 100)
    assert places != ObjectPositions(Striping(4, 1), 2, 100)
    assert places != [*places]


@given(ANY_STRIPINGS)
def test_striping_packs_into_one_number(striping: Striping) -> None:
    """Its width in the lower half, and above the power of two that its stripe unit is."""
    low, high = striping.packed & 0xFFFF, striping.packed >> 16
    assert (low, 1 << high) == striping
    assert Striping(striping.width).packed == striping.width


@given(
    ANY_STRIPINGS,
    st.integers(0, 2**40) | st.integers(POSITION_MAX - 2**28, POSITION_MAX),
    st.integers(1, 2000),
)
def test_object_positions_encode_like_list(striping: Striping, first: int, count: int) -> None:
    """By the core, which goes from one to the next on its own."""
    places = ObjectPositions(striping, first, POSITION_MAX + 1)[:count]
    positions = [*places]
    assert positions == [*ObjectPositions(striping, first, positions[-1] + 1)]
    row = messages.trim(1, striping.packed, places)
    assert row == messages.trim(1, striping.packed, positions)
    assert row[14:22] == striping.packed.to_bytes(4, "little") + (1).to_bytes(4, "little")
    assert row[22:] == first.to_bytes(8, "little") + len(places).to_bytes(4, "little")


@given(STRIPINGS, st.sets(st.integers(0, 200), min_size=1), st.data())
def test_core_has_the_same_rule(
    striping: Striping, positions: set[int], data: st.DataObject
) -> None:
    """A request is about positions of one object, and no others."""
    number = data.draw(st.integers(0, striping.width - 1))
    mine = [p for p in sorted(positions) if object_of(striping, p) == number]
    others = positions - {*mine}
    if mine:
        messages.trim(1, striping.packed, mine)
    for other in list(others)[:3] if mine else ():
        with pytest.raises(ValueError, match="belong to one object"):
            messages.trim(1, striping.packed, sorted({*mine, other}))
