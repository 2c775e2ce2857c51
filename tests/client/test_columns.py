"""Columns hold what a range read gives, entry for entry and gap for gap."""

from __future__ import annotations

import random
from collections.abc import Collection
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlog
from zlog import Columns, Gap, GapKind, Loss, LossReason
from zlog._native.columns import ColumnWindow
from zlog._native.local import MemoryStore

from ..native.support import reply_to
from ..support.logs import leave_hole

UNITS = (1, 4)
ZERO = datetime(1970, 1, 1, tzinfo=timezone.utc)


@pytest.fixture(params=["mem", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> zlog.Store:
    """An in-memory store, and an embedded one."""
    return zlog.connect("mem://" if request.param == "mem" else tmp_path.as_uri())


def entries_of(columns: Columns) -> list[tuple[int, bytes, int]]:
    """Return position, data and timestamp of each entry, having checked the columns' form."""
    assert (columns.positions.format, columns.timestamps.format) == ("q", "q")
    assert columns.offsets.format == "i"
    assert (
        len(columns.positions)
        == len(columns.timestamps)
        == len(columns)
        == len(columns.offsets) - 1
    )
    ends = columns.offsets.tolist()
    assert ends[0] == 0
    assert ends[-1] == len(columns.data)
    return [
        (position, bytes(columns.data[ends[i] : ends[i + 1]]), columns.timestamps[i])
        for i, position in enumerate(columns.positions)
    ]


def is_of(log: zlog.Log, indexes: Collection[int] | None, position: int) -> bool:
    """Whether one of these objects has a position."""
    return indexes is None or log.view.object_of(position).number in indexes


def expected(log: zlog.Log, start: int, end: int | None, indexes: Collection[int] | None) -> object:
    """Return the entries and the states of single positions, as a range read tells them."""
    entries, gaps = [], {}
    for item in log.read_range(start, end, hole_timeout=None):
        if isinstance(item, zlog.Entry):
            us = round((item.timestamp - ZERO).total_seconds() * 1e6)
            entries.append((item.position, item.data, us))
        else:
            gaps.update(dict.fromkeys(range(item.position, item.end), item.kind))
    mine = partial(is_of, log, indexes)
    return (
        [entry for entry in entries if mine(entry[0])],
        {position: kind for position, kind in gaps.items() if mine(position)},
    )


def found(log: zlog.Log, windows: list[Columns], indexes: Collection[int] | None) -> object:
    """Return the same of columns."""
    gaps: dict[int, GapKind] = {}
    for gap in (gap for columns in windows for gap in columns.gaps):
        positions = [p for p in range(gap.position, gap.end) if is_of(log, indexes, p)]
        assert not gaps.keys() & positions
        gaps.update(dict.fromkeys(positions, gap.kind))
    return [entry for columns in windows for entry in entries_of(columns)], gaps


def mixed(store: zlog.Store, width: int, seed: int = 1) -> zlog.Log:
    """Make a log with small and large entries, fills, trims and holes."""
    generator = random.Random(seed)
    log = zlog.Log.create(store, f"mixed-{width}-{seed}", width=width)
    for _ in range(6):
        log.append_many(
            [generator.randbytes(generator.choice([0, 1, 50, 9_000])) for _ in range(150)]
        )
    for position in generator.sample(range(900), 60):
        log.trim(position)
    log.trim_to(30)
    leave_hole(log, 40)
    log.append_many([b"behind the holes"] * 30)
    for position in range(905, 925, 2):
        log.fill(position)
    return log


@pytest.mark.parametrize("width", [1, 3, 8])
@pytest.mark.parametrize("indexes", [None, [0], [1, 2], []])
@pytest.mark.parametrize("window_bytes", [None, 1, 20_000])
def test_columns_match_range_read(
    store: zlog.Store, width: int, indexes: list[int] | None, window_bytes: int | None
) -> None:
    log = mixed(store, width)
    for start, end in ((0, None), (100, 101), (250, 777), (890, 10**9)):
        windows = [
            *log.read_columns(
                start, end, indexes=indexes, window_bytes=window_bytes, hole_timeout=None
            )
        ]
        assert found(log, windows, indexes) == expected(log, start, end, indexes)


def test_neighbouring_gaps_of_selected_objects_are_merged(store: zlog.Store) -> None:
    log = zlog.Log.create(store, "orders", width=4, stripe_unit=1)
    log.append_many([b"x"] * 16)
    for position in range(2, 14):
        log.trim(position)
    [columns] = log.read_columns(indexes=[1])
    assert columns.positions.tolist() == [1]
    assert columns.gaps == [Gap(5, 14, GapKind.TRIMMED)]
    [columns] = log.read_columns()
    assert columns.positions.tolist() == [0, 1, 14, 15]
    assert columns.gaps == [Gap(2, 14, GapKind.TRIMMED)]
    log = zlog.Log.create(store, "units", width=4, stripe_unit=4)
    log.append_many([b"x"] * 32)
    for position in range(6, 23):
        log.trim(position)
    [columns] = log.read_columns(indexes=[1])
    assert columns.positions.tolist() == [4, 5, 23]
    assert columns.gaps == [Gap(6, 23, GapKind.TRIMMED)]


@pytest.mark.parametrize("tags", [None, ["t"]])
def test_trims_of_other_objects_are_not_reported(
    memory: zlog.Store, tags: list[str] | None
) -> None:
    log = zlog.Log.create(memory, "orders", width=2, stripe_unit=8)
    log.append_many([b"x"] * 32, tags=["t"])

    def gaps(start: int, index: int) -> list[Gap]:
        columns = log.read_columns(start, indexes=[index], tags=tags)
        return [gap for each in columns for gap in each.gaps]

    log.trim_to(20)
    assert gaps(0, 0) == [Gap(0, 20, GapKind.TRIMMED)]
    assert gaps(0, 1) == [Gap(8, 16, GapKind.TRIMMED)]
    assert gaps(3, 0) == [Gap(3, 20, GapKind.TRIMMED)]
    assert gaps(16, 1) == []
    end = log.reconfigure(width=3).live_stripe.start
    log.append(b"y", tags=["t"])
    log.trim_to(end + 1)
    log.reconfigure(width=2)  # both stripes are forgotten
    assert gaps(0, 1) == [Gap(0, end + 1, GapKind.TRIMMED)]


def test_columns_outlive_their_log(store: zlog.Store) -> None:
    log = zlog.Log.create(store, "orders", width=1)
    log.append_many([b"%d" % i * 5_000 for i in range(8)])
    windows = [*log.read_columns()]
    log.close()
    store.close()
    del log
    assert [data for c in windows for _, data, _ in entries_of(c)] == [
        b"%d" % i * 5_000 for i in range(8)
    ]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"indexes": [-1]}, "must be 0 or more"),
        ({"window_bytes": 0}, "must be at least 1, not 0"),
        ({"start": -1}, "must be 0 to"),
    ],
)
def test_invalid_arguments_are_refused(
    store: zlog.Store, options: dict[str, object], reason: str
) -> None:
    log = zlog.Log.create(store, "orders")
    with pytest.raises(ValueError, match=reason):
        log.read_columns(**options)  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=30), min_size=1, max_size=40), st.integers(0, 60))
def test_columns_are_split_by_data_size(data: list[bytes], most: int) -> None:
    log = zlog.Log.create(zlog.connect("mem://"), "orders", width=3)
    log.append_many(data)
    striping = log.view.live_stripe.striping
    window = ColumnWindow(striping.packed, None)
    for part in striping.by_object(0, len(data)):
        window.add(reply_to(log, striping.number(part.start), part), part.start, len(data))
    at: int | None = 0
    result = []
    while at is not None:
        positions, times, offsets, content, gaps, at, _ = window.columns({}, at, len(data), most)
        columns = Columns(positions, times, offsets, content, [])
        assert gaps == []
        assert len(columns) == 1 or len(content) <= most
        result += entries_of(columns)
    assert [(p, d) for p, d, _ in result] == [*enumerate(data)]


def test_mismatched_reply_is_lost_and_malformed_raises() -> None:
    log = zlog.Log.create(zlog.connect("mem://"), "orders", width=2, stripe_unit=1)
    log.append_many([b"data"] * 8)
    window = ColumnWindow(2, None)
    window.add(reply_to(log, 0, range(4, 8, 2)), 0, 4)
    window.add(reply_to(log, 1, range(1, 8, 2)), 1, 8)
    assert window.open() == [0, 2]
    lost = {position: Gap(position, position + 1, GapKind.LOST) for position in (0, 2)}
    positions, _, offsets, data, gaps, at, _ = window.columns(lost, 0, 8, 1 << 20)
    assert (positions.tolist(), offsets.tolist()) == ([1, 3, 5, 7], [0, 4, 8, 12, 16])
    assert (bytes(data), at) == (b"data" * 4, None)
    assert gaps == [[lost[0]], [lost[2]]]
    for malformed in (b"", b"\x01", b"\x02" + bytes(20), bytes(64)):
        with pytest.raises(zlog.CorruptEntry):
            ColumnWindow(2, None).add(malformed, 0, 4)


def test_lost_bytes_in_reply_are_omitted() -> None:
    """Their data is in the reply, between that of their neighbours."""
    log = zlog.Log.create(zlog.connect("mem://"), "orders", width=1)
    log.append_many([b"%d" % i * 3_000 for i in range(3)])
    [ref] = log.view.objects()
    store = log.store
    assert isinstance(store, MemoryStore)
    content = store.peek(ref.name)
    assert content is not None
    attrs, omap, stream = content
    store.poke(
        ref.name, attrs, {k: v.replace(b"1" * 3_000, b"7" * 3_000) for k, v in omap.items()}, stream
    )
    [columns] = log.read_columns()
    assert [entry[:2] for entry in entries_of(columns)] == [(0, b"0" * 3_000), (2, b"2" * 3_000)]
    assert columns.gaps == [Gap(1, 2, GapKind.LOST, Loss(LossReason.CORRUPT, (ref.name,)))]


@pytest.mark.parametrize("asked", [(4, 4), (0, 9), (1, 9), (3, 9), (2, 131_075)])
def test_positions_outside_stripe_are_refused(asked: tuple[int, int]) -> None:
    window = ColumnWindow(2, None)
    window.add(None, 1, 9)
    with pytest.raises(ValueError, match="object"):
        window.add(None, *asked)
