"""Changing width and options while a log is used, and stripes that end because they are full."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

import zlog
from zlog import aio
from zlog._base.io import deadline_of
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog.view import STRIPES_MAX, Stripe, objects_of

from ..support.local_sequencer import LocalSequencer
from ..support.logs import data_without_gap
from .faulty import FaultyStore, at_method
from .planted import exists


def index_of(store: zlog.Store, log: zlog.Log) -> tuple[list[Stripe], list[tuple[int, int]]]:
    """The archived stripes of a log, and the loose ones."""
    io = BlockingIo(store)
    head, log_id = Head(io, log.name), log.view.log_id
    deadline = deadline_of(io, 5)
    archived = drive(head.stripes(log_id, 0, deadline))
    return archived, drive(head.pending_stripes(log_id, deadline))[1]


def test_width_change_keeps_positions(log: zlog.Log) -> None:
    expected: list[bytes] = []
    for width in (4, 16, 8, 1):
        view = log.reconfigure(width=width)
        assert view.live_stripe.width == width
        expected += [b"%d at width %d" % (i, width) for i in range(50)]
        positions = log.append_many(expected[-50:])
        assert positions == list(range(len(expected) - 50, len(expected)))
    assert [(s.start, s.end, s.width) for s in log.view.stripes[:-1]] == [
        (0, 50, 4),
        (50, 100, 16),
        (100, 150, 8),
    ]
    assert data_without_gap(log) == expected
    assert [log.read(p).data for p in (0, 49, 50, 99, 150)] == [
        expected[p] for p in (0, 49, 50, 99, 150)
    ]
    assert list(log.check()) == []
    stat = log.stat()
    assert (stat.stripes, stat.objects, stat.entries, stat.width) == (4, 29, 200, 1)


def test_unchanged_settings_keep_view(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=4, options={"owner": "shop"})
    epoch = log.view.epoch
    assert log.reconfigure(width=4).epoch == epoch
    assert log.reconfigure(options={"owner": "shop", "gone": None}).epoch == epoch
    assert log.reconfigure().epoch == epoch


def test_roll_ends_stripe(log: zlog.Log) -> None:
    expected = [b"%d" % i for i in range(30)]
    for first in range(0, 30, 10):
        log.append_many(expected[first : first + 10])
        live = log.view.live_stripe
        stripe = log.roll().live_stripe
        assert stripe.id > live.id
        assert (stripe.start, stripe.width) == (first + 10, live.width)
    assert [stripe.start for stripe in log.stripes()] == [0, 10, 20, 30]
    assert data_without_gap(log) == expected
    assert list(log.check()) == []


async def test_concurrent_rolls_end_stripe_once(memory: zlog.Store) -> None:
    async with aio.Log.create(memory, "orders", width=2) as log:
        await log.append(b"first")
        ended = log.view.live_stripe
        other = zlog.Log.open(memory, "orders")
        late = zlog.Log.open(FaultyStore(memory, at_method("epoch_next", other.roll)), "orders")
        view = late.roll()
        assert [stripe.id for stripe in view.stripes[:-1]] == [ended.id]
        assert view.live_stripe == other.view.live_stripe
        assert (await log.roll()).live_stripe.id > view.live_stripe.id


def test_options_change_keeps_stripe(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", options={"owner": "shop", "old": "1"})
    log.append(b"first")
    stripes = log.view.stripes
    view = log.reconfigure(stripe_bytes=1 << 20, stripe_records=50, options={"old": None})
    assert dict(view.options) == {
        "owner": "shop",
        "stripe_bytes": "1048576",
        "stripe_records": "50",
    }
    assert view.stripes == stripes
    assert zlog.Log.open(memory, "orders").view == log.view
    assert log.append(b"second") == 1


def test_empty_stripe_is_replaced(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=4)
    old = [ref.name for ref in log.view.objects()]
    log.reconfigure(width=8)
    assert [(s.start, s.width) for s in log.view.stripes] == [(0, 8)]
    assert not any(exists(memory, name) for name in old)
    assert index_of(memory, log) == ([], [])
    log.append(b"a")
    assert data_without_gap(log) == [b"a"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0},
        {"width": 1025},
        {"stripe_bytes": 0},
        {"stripe_records": -1},
        {"options": {"": "x"}},
    ],
)
def test_invalid_settings_are_refused(memory: zlog.Store, wrong: dict[str, object]) -> None:
    log = zlog.Log.create(memory, "orders")
    epoch = log.view.epoch
    with pytest.raises(ValueError, match=r"."):
        log.reconfigure(**wrong)  # type: ignore[arg-type]
    assert zlog.Log.open(memory, "orders").view.epoch == epoch
    with pytest.raises(ValueError, match=r"."):
        zlog.Log.create(memory, "other", **wrong)  # type: ignore[arg-type]


@pytest.fixture
def small(memory: zlog.Store) -> Iterator[zlog.Log]:
    """A log whose stripes are full after some appends."""
    with zlog.Log.create(memory, "orders", width=2, stripe_records=4) as log:
        yield log


@pytest.mark.usefixtures("eager")
def test_full_stripe_ends_automatically(sequenced: zlog.Log) -> None:
    log = sequenced
    log.reconfigure(stripe_records=5)
    written = [b"%d" % i for i in range(200)]
    positions = [log.append(each) for each in written]
    assert positions == list(range(200))
    stripes = log.stat().stripes
    assert stripes > 5, "each holds some 4 x 5 entries"
    assert data_without_gap(log) == written
    assert list(log.check()) == []
    for p, each in enumerate(written):
        assert log.read(p).data == each


@pytest.mark.usefixtures("eager")
def test_stripe_ends_at_byte_limit(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2, stripe_bytes=100_000)
    written = [bytes([i]) * 10_000 for i in range(100)]
    for i in range(0, 100, 10):
        log.append_many(written[i : i + 10])
    assert log.stat().stripes > 3
    assert data_without_gap(log) == written


@pytest.mark.usefixtures("eager")
def test_archived_stripes_are_readable(memory: zlog.Store, small: zlog.Log) -> None:
    written = []
    while len(index_of(memory, small)[0]) < 10:
        written.append(b"%d" % len(written))
        small.append(written[-1])
    assert len(small.view.stripes) == STRIPES_MAX
    fresh = zlog.Log.open(memory, "orders")
    first = fresh.view.stripes[0].start
    assert fresh.read(0).data == b"0"
    assert data_without_gap(fresh) == written
    assert data_without_gap(zlog.Log.open(memory, "orders"), first - 3) == written[first - 3 :]
    columns = list(zlog.Log.open(memory, "orders").read_columns())
    assert b"".join(bytes(each.data) for each in columns) == b"".join(written)
    assert fresh.stat().stripes == 10 + STRIPES_MAX
    assert list(fresh.check()) == []
    with pytest.raises(zlog.AlreadyWritten):
        zlog.Log.open(memory, "orders").fill(1)
    zlog.Log.open(memory, "orders").trim(1)
    with pytest.raises(zlog.Invalidated):
        fresh.read(1)


@pytest.mark.usefixtures("eager")
def test_trim_removes_objects_of_whole_stripes(memory: zlog.Store, small: zlog.Log) -> None:
    written = []
    while len(index_of(memory, small)[0]) < 5:
        written.append(b"%d" % len(written))
        small.append(written[-1])
    archived, _ = index_of(memory, small)
    view = small.view
    reader = zlog.Log.open(memory, "orders")
    assert reader.read(archived[3].start).data
    stale = zlog.Log.open(memory, "orders")
    for point in (archived[1].end, archived[4].start + 1, view.stripes[3].start + 1, len(written)):
        small.trim_to(point)
        left, loose = index_of(memory, small)
        assert loose == []
        assert [s for s in left if s.end <= point] == []
        for stripe in (*archived, *view.stripes[:-1]):
            names = [ref.name for ref in objects_of("orders", view.log_id, stripe)]
            assert {exists(memory, name) for name in names} == {stripe.end > point}, stripe
        with pytest.raises(zlog.Invalidated):
            reader.read(point - 1)
    assert list(small.check()) == []
    assert small.append(b"on") == len(written)
    gap, *rest = stale.read_range()
    assert gap == zlog.Gap(0, len(written), zlog.GapKind.TRIMMED)
    assert rest == [reader.read(len(written))]


@pytest.mark.usefixtures("eager")
def test_full_stripe_ends_in_one_epoch(plain: zlog.Store, sequencer: LocalSequencer) -> None:
    with zlog.Log.create(plain, "orders", width=2, stripe_records=3) as log:
        written = [b"%d" % i for i in range(60)]
        assert [log.append(each) for each in written] == list(range(60))
        views = log.views()
        assert views[-1].sequencer == sequencer.address
        sequenced = [view for view in views if view.sequencer]
        assert len(sequenced) > 3
        for before, after in pairwise(sequenced):
            assert after.epoch == before.epoch + 1
            assert after.live_stripe.id == after.epoch
        assert data_without_gap(log) == written
