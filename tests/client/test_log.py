"""What a log does for one user, on every host."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

import zlog
from zlog import Gap, GapKind

from ..support.logs import data_of
from .faulty import WithoutSequencer

UNITS = (1, 4)


def test_entries_read_back_at_their_positions(log: zlog.Log) -> None:
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    assert [log.append(b"first"), log.append(b""), log.append(b"\0\xff\n")] == [0, 1, 2]
    first, empty, binary = (log.read(position) for position in range(3))
    assert (first.data, empty.data, binary.data) == (b"first", b"", b"\0\xff\n")
    assert [first.position, empty.position, binary.position] == [0, 1, 2]
    assert before < first.timestamp < datetime.now(timezone.utc) + timedelta(seconds=1)


def test_large_batch_is_split_into_operations(log: zlog.Log) -> None:
    entries = [bytes([i]) * (1 << 20) for i in range(20)]
    assert log.append_many(entries) == list(range(20))
    assert data_of(log.read_range()) == entries


def test_empty_batch_takes_no_position(log: zlog.Log) -> None:
    assert log.append_many([]) == []
    assert log.tail() == 0


def test_oversized_entry_is_refused_before_sending(log: zlog.Log) -> None:
    with pytest.raises(zlog.EntryTooLarge, match="1048577 bytes"):
        log.append_many([b"small", bytes((1 << 20) + 1)])
    assert log.tail() == 0


def test_reading_unwritten_position_fails(log: zlog.Log) -> None:
    log.append(b"one")
    with pytest.raises(zlog.NotWritten, match="position 1 of log 'orders'"):
        log.read(1)
    with pytest.raises(ValueError, match="position"):
        log.read(-1)
    with pytest.raises(ValueError, match="position"):
        log.read(2**63)


def test_range_ends_at_tail(log: zlog.Log) -> None:
    log.append_many([b"a", b"b", b"c"])
    assert data_of(log.read_range(1)) == [b"b", b"c"]
    assert data_of(log.read_range(1, 2)) == [b"b"]
    assert data_of(log.read_range(0, 10**9)) == [b"a", b"b", b"c"]
    assert list(log.read_range(3)) == []
    assert list(log.read_range(10**9)) == []


def test_only_granted_positions_are_filled_or_trimmed(log: zlog.Log) -> None:
    log.append(b"one")
    for refused in (log.fill, log.trim):
        with pytest.raises(zlog.BeyondTail, match="the tail of log 'orders' is 1"):
            refused(1)
    with pytest.raises(zlog.BeyondTail):
        log.trim_to(2)
    log.trim_to(1)
    assert log.append(b"two") == 1


def test_trimmed_entry_stays_a_gap(log: zlog.Log) -> None:
    log.append_many([b"%d" % i for i in range(10)])
    log.trim(3)
    log.trim(3)
    with pytest.raises(zlog.Invalidated, match="trimmed"):
        log.read(3)
    log.fill(3)
    items = list(log.read_range())
    assert items[3] == Gap(3, 4, GapKind.TRIMMED)
    assert data_of(items[:3] + items[4:]) == [b"%d" % i for i in range(10) if i != 3]


def test_trim_to_hides_lower_positions(log: zlog.Log) -> None:
    log.append_many([b"%d" % i for i in range(100)])
    log.trim_to(57)
    log.trim_to(20)
    items = list(log.read_range())
    assert items[0] == Gap(0, 57, GapKind.TRIMMED)
    assert [*log.read_range(3, 5)] == [Gap(3, 5, GapKind.TRIMMED)]
    assert data_of(items[1:]) == [b"%d" % i for i in range(57, 100)]
    with pytest.raises(zlog.Invalidated):
        log.read(56)
    assert log.stat().trim_point == 57
    assert log.stat().entries == 43


def test_stat_and_views_report_layout(log: zlog.Log) -> None:
    log.append_many([b"abc"] * 10)
    stat = log.stat()
    assert (stat.name, stat.tail, stat.width, stat.entries, stat.bytes) == ("orders", 10, 4, 10, 30)
    assert (stat.stripes, stat.objects) == (1, 4)
    views = log.views()
    assert views[-1].epoch == stat.epoch
    assert [view.epoch for view in views] == sorted({view.epoch for view in views})


def test_valid_names_are_accepted(store: zlog.Store) -> None:
    for name in ("a", "_x", "A.b-c_9", "x" * 128):
        zlog.Log.create(store, name, width=1)
    assert zlog.Log.list(store) == sorted(["a", "_x", "A.b-c_9", "x" * 128])


@pytest.mark.parametrize("name", ["", ".", "-a", "a/b", "a b", "ä", "x" * 129, "a\n", "a\0"])
def test_invalid_names_are_refused(memory: zlog.Store, name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid name for a log"):
        zlog.Log.create(memory, name)
    with pytest.raises(ValueError, match="is not a valid name for a log"):
        zlog.Log.open(memory, name)


def test_removed_log_frees_its_name(store: zlog.Store, log: zlog.Log) -> None:
    log.append_many([b"old"] * 10)
    zlog.Log.remove(store, "orders")
    assert zlog.Log.list(store) == []
    with pytest.raises(zlog.LogNotFound):
        zlog.Log.remove(store, "orders")
    with pytest.raises(zlog.LogNotFound):
        log.append(b"late")
    with pytest.raises(zlog.LogNotFound):
        log.read(0)
    again = zlog.Log.create(store, "orders", width=4)
    assert again.tail() == 0
    with pytest.raises(zlog.LogNotFound):
        log.append(b"late")
    assert again.append(b"new") == 0
    assert data_of(again.read_range()) == [b"new"]


def test_open_and_read_do_not_change_view(store: zlog.Store, log: zlog.Log) -> None:
    log.append_many([b"a", b"b"])
    epoch = zlog.Log.open(store, "orders").view.epoch
    other = zlog.Log.open(store, "orders")
    assert other.tail() == 2
    assert data_of(other.read_range()) == [b"a", b"b"]
    other.stat()
    list(other.check())
    assert zlog.Log.open(store, "orders").view.epoch == epoch
    assert log.append(b"c") == 2
    assert log.view.epoch == epoch


@pytest.fixture
def slow(store: zlog.Store) -> Iterator[zlog.Log]:
    with zlog.Log.create(WithoutSequencer(store), "orders", width=4, hole_timeout=0.05) as log:
        yield log


def test_writer_uses_sequencer_shared_by_store(store: zlog.Store, slow: zlog.Log) -> None:
    assert slow.append(b"slow") == 0
    with zlog.Log.open(store, "orders") as quick:
        assert quick.append(b"quick") == 1
        assert quick.view.sequencer == ("" if store.sequencer() is None else "store:")
