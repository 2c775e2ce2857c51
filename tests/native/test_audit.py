"""What an audit makes of verify replies: counts, rows, and appends that come up twice."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlog
from zlog._base.striping import Striping
from zlog._native.audit import AppendId, Audit

from ..conformance import wire
from ..conformance.replies import State

Cell = tuple[State, int, int, int]  # state, writer, number, bytes

POSITIONS_MAX = 60
STRIPINGS = st.builds(Striping, st.integers(1, 9), st.sampled_from([1, 2, 8, 65536]))
CELL = st.one_of(
    st.tuples(st.just(State.WRITTEN), st.integers(1, 3), st.integers(0, 30), st.integers(0, 9)),
    st.tuples(st.just(State.TRIMMED), st.integers(0, 3), st.integers(0, 30), st.just(0)),
    st.tuples(st.sampled_from([State.UNWRITTEN, State.FILLED, State.LOST]), *[st.just(0)] * 3),
)


def reply_about(cells: Sequence[Cell]) -> bytes:
    """A verify reply with a row for each position."""
    rows = [
        wire.frame(
            wire.u32(1)
            + wire.u8(state)
            + wire.u64(0)
            + wire.u64(writer)
            + wire.u64(number if writer else 0)
            + wire.u32(0)
            + wire.u64(size)
        )
        for state, writer, number, size in cells
    ]
    counts = wire.u32(len(cells)) + wire.u32(len(rows))
    return wire.frame(wire.u8(0) + wire.u64(0) + counts + b"".join(rows))


def feed(
    audit: Audit, purpose: str, cells: Sequence[Cell], striping: Striping, window: int, part: int
) -> list[tuple[AppendId, int]]:
    """Walk over a log as a checker does, some positions of an object at a time."""
    found: list[tuple[AppendId, int]] = []
    for start in range(0, len(cells), window):
        end = min(start + window, len(cells))
        audit.begin(purpose, start, end, striping.packed)
        for index in range(striping.width):
            mine = [p for p in range(start, end) if striping.number(p) == index]
            for at in range(0, len(mine), part):
                some = [cells[p] for p in mine[at : at + part]]
                assert audit.add(reply_about(some), mine[at]) == len(some)
        audit.finish()
        found += audit.found
    return found


def doubled(cells: Sequence[Cell]) -> list[tuple[AppendId, int]]:
    """Appends that stand further down too."""
    seen, again = set(), []
    for position, (state, writer, number, _) in enumerate(cells):
        if writer and state in (State.WRITTEN, State.TRIMMED):
            append = (0, writer, number)
            if append in seen:
                again.append((append, position))
            seen.add(append)
    return again


@settings(max_examples=300, deadline=None)
@given(
    cells=st.lists(CELL, min_size=1, max_size=POSITIONS_MAX),
    striping=STRIPINGS,
    window=st.integers(1, POSITIONS_MAX),
    part=st.integers(1, 5),
    intervals_max=st.sampled_from([1, 2, 5, 1000]),
)
def test_audit_finds_duplicate_appends_in_bounded_memory(
    cells: list[Cell], striping: Striping, window: int, part: int, intervals_max: int
) -> None:
    audit = Audit(intervals_max)
    found = feed(audit, "all", cells, striping, window, part)
    while audit.next_part():
        found += feed(audit, "appends", cells, striping, window, part)
    assert set(found) == set(doubled(cells))  # some may be told in two passes
    audit.search_for({append for append, _ in found})
    wanted = {append for append, _ in doubled(cells)}
    everywhere = [
        ((0, writer, number), position)
        for position, (state, writer, number, _) in enumerate(cells)
        if (0, writer, number) in wanted and state in (State.WRITTEN, State.TRIMMED)
    ]
    assert feed(audit, "search", cells, striping, window, part) == everywhere


@settings(max_examples=100, deadline=None)
@given(
    cells=st.lists(CELL, min_size=1, max_size=POSITIONS_MAX),
    striping=STRIPINGS,
    part=st.integers(1, 5),
)
def test_positions_are_counted_in_rows(cells: list[Cell], striping: Striping, part: int) -> None:
    audit = Audit()
    feed(audit, "all", cells, striping, len(cells), part)
    states = [state for state, *_ in cells]
    counts = audit.counts
    assert counts.bytes == sum(size for state, *_, size in cells if state == State.WRITTEN)
    assert (counts.entries, counts.filled, counts.trimmed, counts.unwritten, counts.lost) == tuple(
        map(
            states.count,
            (State.WRITTEN, State.FILLED, State.TRIMMED, State.UNWRITTEN, State.LOST),
        )
    )
    lost = [position for row in audit.rows("lost") for position in row]
    assert sorted(lost) == [p for p, state in enumerate(states) if state == State.LOST]
    assert all(row.step == striping.step for row in audit.rows("lost"))
    starts = {(row.start, striping.number(row.start)) for row in audit.rows("lost")}
    ends = {(row.stop, striping.number(row.start)) for row in audit.rows("lost")}
    assert not starts & ends  # they are as long as can be
    rows = audit.rows("unwritten")
    holes = [position for row in rows for position in row]
    assert holes == [p for p, state in enumerate(states) if state == State.UNWRITTEN]
    assert all(a.stop < b.start for a, b in pairwise(rows))


def test_unreported_positions_are_unknown() -> None:
    audit = Audit()
    audit.begin("all", 10, 20, 4)
    audit.add(reply_about([(State.WRITTEN, 1, 1, 5)] * 2), 10)
    audit.rest(11, "trimmed")
    audit.rest(12, "lost")
    audit.rest(18, "unknown")
    audit.finish()
    assert audit.counts == (2, 0, 0, 3, 2, 0, 3, 10)
    assert audit.rows("lost") == [range(12, 20, 4)]


def test_malformed_reply_is_refused() -> None:
    audit = Audit()
    audit.begin("all", 0, 4, 2)
    sound = reply_about([(State.WRITTEN, 1, 1, 5)] * 2)
    longer = reply_about([(State.WRITTEN, 1, 1, 5)] * 3)  # about more than there is
    for wrong in (b"", sound[:-1], sound + b"\0", b"\0" + sound[1:], longer):
        with pytest.raises(zlog.CorruptEntry):
            audit.add(wrong, 0)
    with pytest.raises(ValueError, match="not in the window"):
        audit.add(sound, 4)
    assert audit.add(sound, 0) == 2


def test_one_writer_needs_one_interval() -> None:
    """One that reads a log in order never needs a second pass for it."""
    audit = Audit(intervals_max=2)
    cells = [(State.WRITTEN, 1, number, 0) for number in range(100)]
    assert feed(audit, "all", cells, Striping(8), 32, 4) == []
    assert not audit.next_part()
