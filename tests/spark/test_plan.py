"""Ranges become tasks that read each position once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlog import Striping
from zlog.spark._handles import LogRef
from zlog.spark._plan import IncompletePlan, Range, Share, Shares, Sizes, split
from zlog.view import OPEN_END, Stripe

NARROW_THEN_WIDE = (Stripe(1, 0, 10, 2), Stripe(5, 10, OPEN_END, 4))
APART = Sizes(joined=0)
ORDERS = LogRef("file:///store", "orders")
share = partial(Share, ORDERS)


def tasks_of(
    stripes: Iterable[Stripe], start: int, end: int, sizes: Sizes = APART, trimmed: int = 0
) -> list[Shares]:
    return split([Range(ORDERS, start, end, [*stripes], trimmed)], sizes)


def sizes_of(tasks: list[Shares]) -> list[int]:
    return [sum(len(share) for share in task) for task in tasks]


def test_each_stripe_object_is_one_task() -> None:
    assert tasks_of(NARROW_THEN_WIDE, 4, 16) == [
        (share(4, 10, Striping(2), (0,)),),
        (share(4, 10, Striping(2), (1,)),),
        (share(10, 16, Striping(4), (0,)),),
        (share(10, 16, Striping(4), (1,)),),
        (share(10, 16, Striping(4), (2,)),),
        (share(10, 16, Striping(4), (3,)),),
    ]


def test_small_neighbouring_stripes_are_joined_by_object() -> None:
    assert tasks_of(NARROW_THEN_WIDE, 4, 16, Sizes()) == [
        (share(4, 10, Striping(2), (0,)), share(10, 16, Striping(4), (0,))),
        (share(4, 10, Striping(2), (1,)), share(10, 16, Striping(4), (1,))),
        (share(10, 16, Striping(4), (2,)),),
        (share(10, 16, Striping(4), (3,)),),
    ]


def test_joined_tasks_are_limited_in_size() -> None:
    ends = [10, 20, 30, 40, 140, 150, OPEN_END]
    starts = [0, *ends]
    stripes = [Stripe(n + 1, s, e, 1) for n, (s, e) in enumerate(zip(starts, ends, strict=False))]
    assert sizes_of(tasks_of(stripes, 0, 160, Sizes(joined=25))) == [20, 20, 100, 20]
    assert sizes_of(tasks_of(stripes, 0, 160, Sizes(joined=1000))) == [160]


def test_maximum_combines_objects_into_tasks() -> None:
    for joined in (0, 100):
        assert tasks_of(NARROW_THEN_WIDE, 0, 20, Sizes(joined, at_most=2)) == [
            (share(0, 10, Striping(2), (0, 1)),),
            (share(10, 20, Striping(4), (0, 1, 2, 3)),),
        ]
        assert tasks_of(NARROW_THEN_WIDE, 0, 20, Sizes(joined, at_most=1)) == [
            (share(0, 10, Striping(2), (0, 1)), share(10, 20, Striping(4), (0, 1, 2, 3))),
        ]


def test_minimum_splits_objects_into_tasks() -> None:
    assert tasks_of([Stripe(1, 0, OPEN_END, 2)], 3, 15, Sizes(at_least=4)) == [
        (share(4, 9, Striping(2), (0,)),),
        (share(10, 15, Striping(2), (0,)),),
        (share(3, 8, Striping(2), (1,)),),
        (share(9, 14, Striping(2), (1,)),),
    ]
    assert len(tasks_of(NARROW_THEN_WIDE, 0, 5, Sizes(at_least=9))) == 5


def test_trimmed_positions_get_separate_task() -> None:
    assert tasks_of(NARROW_THEN_WIDE[1:], 4, 12, trimmed=10) == [
        (share(4, 10, Striping(1), (0,), trimmed=True),),
        (share(10, 12, Striping(4), (2,)),),
        (share(10, 12, Striping(4), (3,)),),
    ]
    assert tasks_of([], 4, 8, trimmed=10) == [(share(4, 8, Striping(1), (0,), trimmed=True),)]


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_missing_stripe_is_an_error(missing: int) -> None:
    stripes = [Stripe(1, 0, 10, 2), Stripe(2, 10, 20, 2), Stripe(3, 20, OPEN_END, 2)]
    del stripes[missing]
    with pytest.raises(IncompletePlan, match="its stripes hold only 20 of the 30 positions"):
        tasks_of(stripes, 0, 30)


@st.composite
def histories(draw: st.DrawFn) -> list[Stripe]:
    starts = sorted(draw(st.sets(st.integers(1, 300), max_size=5)))
    ends = [*starts, OPEN_END]
    widths = st.integers(1, 40)
    units = st.sampled_from([1, 2, 16])
    return [
        Stripe(number + 1, start, end, draw(widths), draw(units))
        for number, (start, end) in enumerate(zip([0, *starts], ends, strict=True))
    ]


limits = st.none() | st.integers(1, 9)


@given(
    histories(), st.integers(0, 400), st.integers(0, 400), st.integers(0, 200), limits, limits,
    st.integers(0, 400),
)  # fmt: skip
def test_tasks_read_every_position_once(
    stripes: list[Stripe],
    start: int,
    end: int,
    joined: int,
    at_least: int | None,
    at_most: int | None,
    trimmed: int,
) -> None:
    if at_least is not None and at_most is not None:
        at_least, at_most = sorted((at_least, at_most))
    tasks = tasks_of(stripes, start, end, Sizes(joined, at_least, at_most), trimmed)
    assert at_most is None or len(tasks) <= at_most
    assert at_least is None or len(tasks) >= min(at_least, end - start)
    shares = [share for task in tasks for share in task]
    read = [p for share in shares for r in share.positions(0, 500) for p in r]
    assert sorted(read) == list(range(start, end))
    assert all(size > 0 for size in sizes_of(tasks))
    for share in shares:
        assert share.trimmed == (share.start < trimmed)
        assert not share.trimmed or share.end <= trimmed
        for stripe in stripes:
            if not share.trimmed and stripe.start <= share.start < stripe.end:
                assert share.end <= stripe.end
                assert share.striping == stripe.striping


@pytest.mark.parametrize("tasks", [1, 3, 7, 64])
def test_tasks_have_similar_sizes(tasks: int) -> None:
    planned = tasks_of([Stripe(1, 0, OPEN_END, 64)], 0, 64_000, Sizes(at_most=tasks))
    assert len(planned) == tasks
    assert max(sizes_of(planned)) - min(sizes_of(planned)) <= 1000
