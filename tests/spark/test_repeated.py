"""A batch that is repeated has the same rows in the same tasks, or none."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlog
from zlog.spark import _driver
from zlog.spark._offset import Offset, WrongCheckpoint

from .test_driver import kept, only, stream

_numbers = count()


@pytest.fixture(scope="module")
def shared_store() -> Iterator[zlog.Store]:
    """One store for all examples, in which stripes are joined up to 20 kB."""
    with (
        tempfile.TemporaryDirectory() as folder,
        zlog.connect(Path(folder).as_uri()) as store,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(_driver, "JOINED_BYTES_MAX", 20_000)
        yield store


appends = st.tuples(st.just("append"), st.integers(1, 60), st.sampled_from([10, 500, 3000]))
changes = st.one_of(
    appends,
    st.tuples(st.just("reconfigure"), st.integers(1, 4)),
    st.tuples(st.just("trim"), st.integers(0, 100)),
)
sizes = st.sampled_from(
    [{}, {"minPartitions": 7}, {"maxPartitions": 2}, {"minPartitions": 3, "maxPartitions": 3}]
)


def change(log: zlog.Log, what: str, *numbers: int) -> None:
    """Append, which rolls the log every 40 entries of an object; trim; or change the width."""
    if what == "append":
        entries, size = numbers
        log.append_many([bytes(size)] * entries)
    elif what == "reconfigure":
        log.reconfigure(width=numbers[0])
    else:
        log.trim_to(log.tail() * numbers[0] // 100)


@settings(max_examples=25, deadline=None)
@given(
    before=st.lists(changes, max_size=6),
    after=st.lists(changes, min_size=1, max_size=4),
    limit=st.none() | st.integers(1, 200),
    gaps=st.booleans(),
    first=sizes,
    second=sizes,
)
def test_plan_depends_only_on_offset(
    shared_store: zlog.Store,
    before: list[tuple[str, int]],
    after: list[tuple[str, int]],
    limit: int | None,
    gaps: bool,
    first: dict[str, int],
    second: dict[str, int],
) -> None:
    """Whatever is appended or trimmed since, however the layout and the number of tasks change."""
    name = f"log-{next(_numbers)}"
    with zlog.Log.create(shared_store, name, width=2, stripe_unit=2, stripe_records=40) as log:
        log.append_many([bytes(100)] * 50)
        for each in before:
            change(log, *each)
        log.append_many([bytes(100)] * 50)
        same = {"failOnDataLoss": "false", "includeGaps": gaps}
        planner = stream(log, **same, **first)
        end = kept(planner.latest(planner.initial(), limit))
        plan = planner.plan(end)
        assert plan
        for each in after:
            change(log, *each)
            assert stream(log, **same, **second).plan(end) == plan


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"tags": "a"}, 'a query with no tags, not with tags=["a"]'),
        ({"tags": "a,b"}, {"tags": "a"}, 'a query with tags=["a", "b"], not with tags=["a"]'),
        ({"tags": "a,b"}, {"tags": "b,a", "match": "all"}, 'match="any", not with match="all"'),
        ({}, {"includeGaps": "true"}, "includeGaps=false, not with includeGaps=true"),
    ],
)
def test_checkpoint_with_other_row_options_is_refused(
    log: zlog.Log, before: dict[str, str], after: dict[str, str], message: str
) -> None:
    log.append_many([b"x"] * 10, tags=["a"])
    planner = stream(log, **before)
    end = kept(planner.latest(planner.initial(), None))
    changed = stream(log, **after)
    for use in (changed.plan, lambda start: changed.latest(start, None)):
        with pytest.raises(WrongCheckpoint) as raised:
            use(end)
        assert message in str(raised.value)
        assert "startingPosition=10" in raised.value.hint


def test_tag_order_does_not_matter(log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    planner = stream(log, tags="a,b")
    end = kept(planner.latest(planner.initial(), None))
    assert stream(log, tags="b,a").plan(end) == planner.plan(end)


def test_checkpoint_of_older_version_is_accepted(log: zlog.Log) -> None:
    log.append_many([b"x"] * 20)
    log_id = f"{log.view.log_id:016x}"
    old = {"position": 10, "from": 4, "log": "orders", "id": log_id}
    planner = stream(log, tags="x")
    offset = Offset.from_json(old)
    assert {(share.start, share.end) for task in planner.plan(offset) for share in task} == {
        (4, 10)
    }
    assert only(planner.latest(offset, None)).position == 20
    idle = {**old, "position": 20}
    assert planner.latest(Offset.from_json(idle), None).to_json(several=False) == idle
