"""A reader that a trim overtakes gets one gap and goes on, whenever the trim comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import zlog
from zlog import Entry, Gap, GapKind
from zlog._base.io import deadline_of
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog._native.entry import from_timestamp

from ..support.logs import leave_hole, raise_tail
from .faulty import FaultyStore, WithoutSequencer

pytestmark = pytest.mark.usefixtures("small_windows")

UNITS = (1, 4)
WINDOW = 16
ENTRIES = 200
READERS = ("range", "follow", "columns")

Item = Entry | Gap
Seen = Callable[[Item], object]


def several_stripes(store: zlog.Store, stripes: int = 3) -> None:
    """Make a log whose entries lie in that many stripes, one after the other."""
    with zlog.Log.create(store, "orders", width=4) as log:
        share = ENTRIES // stripes
        for stripe in range(stripes):
            if stripe:
                log.reconfigure(width=4 + stripe % 2)
            first = log.tail()
            count = share if stripe < stripes - 1 else ENTRIES - first
            log.append_many([b"%d" % position for position in range(first, first + count)])


def rows(columns: zlog.Columns) -> list[Item]:
    """Return columns as a range read gives them."""
    entries = [
        Entry(
            position,
            bytes(columns.data[columns.offsets[i] : columns.offsets[i + 1]]),
            from_timestamp(columns.timestamps[i]),
        )
        for i, position in enumerate(columns.positions)
    ]
    return sorted([*entries, *columns.gaps], key=lambda item: item.position)


def read(log: zlog.Log, how: str, seen: Seen, hole_timeout: float | None = None) -> list[Item]:
    """Read a log from its first position to its tail; tells of each item as it is delivered."""
    if how == "columns":
        windows = log.read_columns(hole_timeout=hole_timeout)
        items: Iterator[Item] = (item for window in windows for item in rows(window))
    else:
        start = log.read_range if how == "range" else log.follow
        items = iter(start(hole_timeout=hole_timeout))
    found: list[Item] = []
    for item in items:
        found.append(item)
        seen(item)
        if how == "follow" and item.end >= ENTRIES:
            break
    return found


def assert_truthful(found: list[Item], point: int) -> None:
    """Every position is there once and rightly, and each row of trimmed ones is one gap."""
    position = 0
    before: Item | None = None
    for item in found:
        assert item.position == position
        if isinstance(item, Entry):
            assert item.data == b"%d" % position
        else:
            assert item.kind is GapKind.TRIMMED
            assert item.end <= point
            assert not isinstance(before, Gap)
        position, before = item.end, item
    assert position == ENTRIES


@pytest.mark.parametrize("sequenced", [True, False], ids=["sequenced", "slow"])
@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("point", [70, 150], ids=["one-stripe", "two-stripes"])
def test_trim_before_any_read_operation_yields_gap(how: str, sequenced: bool, point: int) -> None:
    """The trim comes at each moment in turn, and removes the objects that are about to be asked."""
    moments = 0
    while trimmed_before(moments, how, point, FaultyStore if sequenced else WithoutSequencer):
        moments += 1
    assert moments > 20


def trimmed_before(moment: int, how: str, point: int, kind: Callable[..., FaultyStore]) -> bool:
    """Read while a trim comes before an operation. Returns whether there were that many."""
    reached = False

    def trim(number: int, _: str) -> None:
        nonlocal reached
        if number == moment and not reached:
            reached = True
            with zlog.Log.open(memory, "orders") as other:
                other.trim_to(point)

    with zlog.connect("mem://") as memory:
        several_stripes(memory)
        store = kind(memory, lambda *_: None)
        log = zlog.Log.open(store, "orders", timeout=20)
        store.operations, store.fault = 0, trim
        assert_truthful(read(log, how, lambda _: None), point if reached else 0)
    return reached


@pytest.mark.parametrize("how", READERS)
def test_reader_with_old_view_sees_one_gap(store: zlog.Store, how: str) -> None:
    """It knows one stripe; that is gone by now, and so are those that came after it."""
    log = zlog.Log.create(store, "orders", width=4)
    with zlog.Log.open(store, "orders") as other:
        other.append_many([b"%d" % i for i in range(50)])
        for width in (3, 5):
            other.reconfigure(width=width)
            first = other.tail()
            other.append_many([b"%d" % (first + i) for i in range(75)])
        other.trim_to(130)
    found = read(log, how, lambda _: None)
    assert found[0] == Gap(0, 130, GapKind.TRIMMED)
    assert_truthful(found, 130)


@pytest.mark.parametrize("how", READERS)
@pytest.mark.parametrize("met", [True, False], ids=["met", "unmet"])
def test_removed_archived_stripe_is_one_gap(memory: zlog.Store, how: str, met: bool) -> None:
    """Views do not name it any more; the reader may have looked it up before, or not."""
    several_stripes(memory, stripes=40)
    log = zlog.Log.open(memory, "orders")
    assert log.view.stripes[0].start > 0
    if met:
        assert_truthful(read(log, "range", lambda _: None), 0)
    with zlog.Log.open(memory, "orders") as other:
        other.trim_to(33)
    found = read(log, how, lambda _: None)
    assert found[0] == Gap(0, 33, GapKind.TRIMMED)
    assert_truthful(found, 33)


@pytest.mark.parametrize("how", READERS)
def test_single_positions_trimmed_across_windows_are_one_gap(memory: zlog.Store, how: str) -> None:
    several_stripes(memory, stripes=1)
    log = zlog.Log.open(memory, "orders")
    for position in range(WINDOW - 3, 5 * WINDOW + 2):
        log.trim(position)
    found = read(log, how, lambda _: None)
    gaps = [item for item in found if isinstance(item, Gap)]
    assert gaps == [Gap(WINDOW - 3, 5 * WINDOW + 2, GapKind.TRIMMED)]
    assert_truthful(found, ENTRIES)


@pytest.mark.parametrize("hole_timeout", [None, 0.01], ids=["never-fills", "fills"])
@pytest.mark.parametrize("how", READERS)
def test_recorded_trim_hides_untrimmed_objects(
    memory: zlog.Store, how: str, hole_timeout: float | None
) -> None:
    """The objects know nothing of it. A hole below the point is trimmed all the same."""
    log = zlog.Log.create(memory, "orders", width=4)
    assert leave_hole(log, 10) == 0
    log.append_many([b"%d" % position for position in range(10, ENTRIES)])
    raise_tail(log, ENTRIES)
    io = BlockingIo(memory, "the test")
    head = Head(io, "orders")
    raised = head.trim_point_raise(log.view.log_id, 12, deadline_of(io, 10))
    assert drive(raised) is None
    found = read(log, how, lambda _: None, hole_timeout)
    assert found[0] == Gap(0, 10, GapKind.TRIMMED)
    assert_truthful(found, 12)
    with pytest.raises(zlog.Invalidated, match="position 0 of log 'orders' was trimmed"):
        zlog.Log.open(memory, "orders").read(0)
