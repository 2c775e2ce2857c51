"""Ranges become tasks that read each position once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlog.spark._plan import Share, split
from zlog.view import OPEN_END, Stripe

NARROW_THEN_WIDE = (Stripe(1, 0, 10, 2), Stripe(5, 10, OPEN_END, 4))


def test_each_stripe_object_is_a_task() -> None:
    assert split(NARROW_THEN_WIDE, 4, 16) == [
        (Share(4, 10, 2, (0,)),),
        (Share(4, 10, 2, (1,)),),
        (Share(10, 16, 4, (0,)),),
        (Share(10, 16, 4, (1,)),),
        (Share(10, 16, 4, (2,)),),
        (Share(10, 16, 4, (3,)),),
    ]


def test_objects_without_a_position_in_the_range_get_no_task() -> None:
    assert split(NARROW_THEN_WIDE, 9, 12) == [
        (Share(9, 10, 2, (1,)),),
        (Share(10, 12, 4, (2,)),),
        (Share(10, 12, 4, (3,)),),
    ]
    assert split(NARROW_THEN_WIDE, 12, 12) == []


def test_a_task_takes_several_objects_when_there_are_too_many() -> None:
    assert split(NARROW_THEN_WIDE, 0, 20, 2) == [
        (Share(0, 10, 2, (0, 1)),),
        (Share(10, 20, 4, (0, 1, 2, 3)),),
    ]
    assert split(NARROW_THEN_WIDE, 0, 20, 1) == [
        (Share(0, 10, 2, (0, 1)), Share(10, 20, 4, (0, 1, 2, 3))),
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[Stripe]:
    starts = sorted(draw(st.sets(st.integers(1, 300), max_size=5)))
    ends = [*starts, OPEN_END]
    widths = st.integers(1, 40)
    return [
        Stripe(number + 1, start, end, draw(widths))
        for number, (start, end) in enumerate(zip([0, *starts], ends, strict=True))
    ]


@given(histories(), st.integers(0, 400), st.integers(0, 400), st.none() | st.integers(1, 9))
def test_all_tasks_together_read_every_position_once(
    stripes: list[Stripe], start: int, end: int, tasks_max: int | None
) -> None:
    tasks = split(stripes, start, end, tasks_max)
    assert tasks_max is None or len(tasks) <= tasks_max
    read = [p for task in tasks for share in task for r in share.positions(0, 500) for p in r]
    assert sorted(read) == list(range(start, end))
    for task in tasks:
        assert sum(len(share) for share in task) > 0
        for share in task:
            for stripe in stripes:
                if stripe.start <= share.start < stripe.end:
                    assert share.end <= stripe.end
                    assert share.width == stripe.width


@pytest.mark.parametrize("tasks_max", [1, 3, 7, 64])
def test_tasks_are_about_the_same_size(tasks_max: int) -> None:
    tasks = split([Stripe(1, 0, OPEN_END, 64)], 0, 64_000, tasks_max)
    sizes = [sum(len(share) for share in task) for task in tasks]
    assert len(tasks) == tasks_max
    assert max(sizes) - min(sizes) <= 1000
