"""Columns without data: all else is as it is with data, and no data travels."""

from __future__ import annotations

import random

import pytest

import zlog
from zlog import Columns, GapKind

from ..support.logs import leave_hole
from ..support.metered import MeteredStore
from . import planted

KEY = b"a key of the log's own"
TAGS = ("even", "odd")
ROW_BYTES_MAX = 60
"""Of a reply without data, for each position: its columns, and one tag."""

SMALL = [b"%d" % number for number in range(20)]  # stored with its record
LARGE = [b"%d" % number * 2_000 for number in range(40)]  # in the bytestream
MANY = [b"x" * 1_024] * 400


@pytest.fixture(params=[None, "zstd"])
def log(store: zlog.Store, request: pytest.FixtureRequest) -> zlog.Log:
    """A log with entries of many sizes, fills, trims and holes, compressed or not."""
    log = zlog.Log.create(store, "orders", width=3, compression=request.param)
    generator = random.Random(1)
    noise = [generator.randbytes(9_000) for _ in range(20)]
    for entries in (SMALL, LARGE, MANY, noise):
        log.append_many(entries, tags_each=[[TAGS[i % 2]] for i in range(len(entries))])
    for position in generator.sample(range(400), 30):
        log.trim(position)
    log.trim_to(11)
    leave_hole(log, 30)
    log.append_many([b"behind the holes"] * 10, tags=["odd"])
    return log


def told(windows: list[Columns]) -> tuple[object, ...]:
    """Return all that columns tell but the data, for each position."""
    gaps = {
        position: gap[2:]
        for columns in windows
        for gap in columns.gaps
        for position in range(gap.position, gap.end)
    }
    positions = [position for columns in windows for position in columns.positions]
    timestamps = [us for columns in windows for us in columns.timestamps]
    tags = [own for columns in windows for own in columns.tags or ()]
    return positions, timestamps, [*map(set, tags)], gaps


def check_no_data(windows: list[Columns]) -> None:
    for columns in windows:
        assert len(columns.data) == 0
        assert columns.offsets.tolist() == [0] * (len(columns) + 1)


@pytest.mark.parametrize("indexes", [None, [1]])
def test_columns_without_data_match_otherwise(log: zlog.Log, indexes: list[int] | None) -> None:
    metered = MeteredStore(log.store)
    with zlog.Log.open(metered, log.name, hole_timeout=0.01) as same:
        for start, end, tags in ((0, None, None), (100, 300, None), (0, None, ["odd"])):
            options = {"indexes": indexes, "with_tags": True, "tags": tags}
            full = [*same.read_columns(start, end, **options)]  # type: ignore[arg-type]
            counted = metered.read_bytes
            found = [*same.read_columns(start, end, with_data=False, **options)]  # type: ignore[arg-type]
            counted = metered.read_bytes - counted
            check_no_data(found)
            assert told(found) == told(full)
            positions = sum(map(len, found)) + sum(
                len(range(*g[:2])) for c in found for g in c.gaps
            )
            data = sum(len(columns.data) for columns in full)
            assert data > 100 * ROW_BYTES_MAX
            assert counted < ROW_BYTES_MAX * positions + 10_000


def test_holes_are_filled_without_data(sequenced: zlog.Log) -> None:
    log = sequenced
    log.append_many(LARGE)
    leave_hole(log, 3)
    log.append_many(LARGE)
    with zlog.Log.open(MeteredStore(log.store), log.name) as same:
        windows = [*same.read_columns(with_data=False, hole_timeout=0.01)]
    check_no_data(windows)
    [gap] = [gap for columns in windows for gap in columns.gaps]
    assert gap[:3] == (len(LARGE), len(LARGE) + 3, GapKind.FILLED)
    assert told(windows)[0] == [p for p in range(log.tail()) if not gap.position <= p < gap.end]


def test_reply_without_data_covers_more_entries(memory: zlog.Store) -> None:
    metered = MeteredStore(memory)
    log = zlog.Log.create(metered, "orders", width=1, stripe_bytes=1 << 30)
    for _ in range(5):
        log.append_many([b"x" * (1 << 20)] * 12)
    windows = [*log.read_columns(with_data=False)]
    assert told(windows)[0] == [*range(60)]
    assert metered.read_bytes < 60 << 20


@pytest.mark.parametrize("tags", [None, ["t"]])
def test_damaged_and_forged_data_is_not_detected(
    memory: zlog.Store, tags: list[str] | None
) -> None:
    log = zlog.Log.create(memory, "orders", width=1, mac_key=KEY)
    log.append_many([b"sound", b"to be damaged", b"sound"], tags=["t"])
    [ref] = log.view.objects()
    planted.flip(memory, ref.name, b"to be damaged", b"was damaged !")
    forged = planted.entry(log, ref, 3, b"the store's own.", 7, b"x" * 40)
    planted.call(memory, ref.name, "write", forged)
    with zlog.Log.open(MeteredStore(memory), "orders", mac_key=KEY) as same:
        same.append(b"behind", tags=["t"])
        _, _, _, gaps = told([*same.read_columns(tags=tags)])
        untagged = {} if tags else {3: (GapKind.FORGED, None)}
        assert (
            gaps == {1: (GapKind.LOST, zlog.Loss(zlog.LossReason.CORRUPT, (ref.name,)))} | untagged
        )
        positions, *_, gaps = told([*same.read_columns(tags=tags, with_data=False)])
        assert (positions, gaps) == ([0, 1, 2, 4] if tags else [0, 1, 2, 3, 4], {})
