"""Entries behave as the named tuples that they look like."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

import pytest

import zlog
from zlog import Entry, Gap, GapKind
from zlog._native.window import Items, Window

TIME = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
ENTRY = Entry(7, b"data", TIME)


def test_entry_has_tuple_fields() -> None:
    assert (ENTRY.position, ENTRY.data, ENTRY.timestamp) == (7, b"data", TIME)
    assert ENTRY.end == 8
    assert [*ENTRY] == [7, b"data", TIME]
    assert (len(ENTRY), ENTRY[0], ENTRY[-1], ENTRY[:2]) == (3, 7, TIME, (7, b"data"))
    with pytest.raises(IndexError):
        ENTRY[3]


def test_entries_compare_by_value() -> None:
    assert Entry(7, b"data", TIME) == ENTRY == (7, b"data", TIME)
    assert hash(ENTRY) == hash((7, b"data", TIME))
    later = TIME + timedelta(microseconds=1)
    for other in (Entry(8, b"data", TIME), Entry(7, b"date", TIME), Entry(7, b"data", later)):
        assert other != ENTRY
    assert ENTRY != 7
    assert sorted([Entry(8, b"a", TIME), ENTRY]) == [ENTRY, Entry(8, b"a", TIME)]
    assert min(Entry(7, b"data", later), ENTRY) == ENTRY
    with pytest.raises(TypeError):
        ENTRY < 7  # noqa: B015


def test_entry_supports_match_copy_and_repr() -> None:
    match ENTRY:
        case Entry(position, data, timestamp):
            assert (position, data, timestamp) == (7, b"data", TIME)
        case _:
            pytest.fail("it did not match")
    for again in (pickle.loads(pickle.dumps(ENTRY)), copy.deepcopy(ENTRY)):
        assert type(again) is Entry
        assert again == ENTRY
    assert repr(ENTRY) == f"Entry(position=7, data=b'data', timestamp={TIME!r})"


def test_entry_supports_replace_and_asdict() -> None:
    assert ENTRY._replace(position=8) == (8, b"data", TIME)
    assert ENTRY._asdict() == {"position": 7, "data": b"data", "timestamp": TIME}
    with pytest.raises(TypeError):
        ENTRY._replace(other=1)


def test_entry_is_immutable() -> None:
    for name in ("position", "data", "timestamp", "other"):
        with pytest.raises(AttributeError):
            setattr(ENTRY, name, 1)


def test_entry_refuses_invalid_values() -> None:
    with pytest.raises(OverflowError):
        Entry(-1, b"", TIME)
    with pytest.raises(TypeError):
        Entry(0, "text", TIME)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Entry(0, b"", TIME.replace(tzinfo=None))


def test_entry_cannot_be_appended(memory: zlog.Store) -> None:
    with pytest.raises(TypeError, match="must be bytes, not Entry"):
        zlog.Log.create(memory, "orders").append(ENTRY)  # its tags would be lost


def test_garbage_collector_does_not_track_entries() -> None:
    assert not gc.is_tracked(ENTRY)


def test_entry_outlives_its_log() -> None:
    with zlog.connect("mem://") as store:
        log = zlog.Log.create(store, "orders", width=2)
        log.append_many([b"%d" % i * 5000 for i in range(8)])
        entries = [*log.read_range()]
    del log, store
    gc.collect()
    assert [entry.data for entry in entries] == [b"%d" % i * 5000 for i in range(8)]  # type: ignore[union-attr]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_views_of_entries_outlive_everything_else(compression: str) -> None:
    expected = [b"%d" % i * 5000 for i in range(100)]
    with zlog.connect("mem://") as store:
        log = zlog.Log.create(store, "orders", width=2, compression=compression)
        log.append_many(expected)
        views = [memoryview(item) for item in log.read_range() if isinstance(item, Entry)]
    del log, store
    gc.collect()
    assert views == expected
    assert views[0].readonly


def test_kept_entries_do_not_keep_replies(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders")
    log.append_many([b"data"] * 4)
    entries = []
    for item in log.read_range():
        assert isinstance(item, Entry)
        assert not isinstance(memoryview(item).obj, bytes), "the data was copied"
        entries.append(item)
    assert all(isinstance(memoryview(entry).obj, bytes) for entry in entries)


def test_items_iterate_over_consecutive_batches() -> None:
    gap = Gap(0, 4, GapKind.FILLED)
    batches: list[Sequence[Entry | Gap] | None] = [[gap], [], [ENTRY, gap], None]
    items = Items(lambda: batches.pop(0))
    assert [*items] == [gap, ENTRY, gap]
    assert [*items] == []


def test_error_ends_iteration() -> None:
    def fail() -> None:
        raise zlog.StoreTimeout("too slow")

    items = Items(fail)
    with pytest.raises(zlog.StoreTimeout):
        next(items)
    assert [*items] == []


def test_concurrent_iteration_is_refused() -> None:
    def twice() -> None:
        next(items)

    items = Items(twice)
    with pytest.raises(ValueError, match="in use"):
        next(items)


def test_incomplete_window_yields_states() -> None:
    """As a batch it would be a mistake, but not one that reads where nothing is."""
    window = Window(0, 3, None)
    batches = [window, None]
    assert [*Items(lambda: batches.pop(0))] == [None, None, None]  # type: ignore[comparison-overlap, return-value, arg-type]
