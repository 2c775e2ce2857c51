"""The codec's fast paths give the same bytes and entries as the plain ones."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlog
from zlog._base.codes import State
from zlog._base.striping import Striping
from zlog._native.completions import CompletionQueue
from zlog._native.entry import from_timestamp
from zlog._native.new_entries import EntryColumn, entries_check, entries_cut, entries_owned
from zlog._native.window import Window
from zlog._native.writes import Request, encode_write, encode_writes

from ..support.logs import data_of
from .support import OBJECT, read, reply_to, requests, seal, write_request

WRITER = bytes(range(16))
ENTRIES = st.lists(st.binary(max_size=40), max_size=40)
STRIPINGS = st.builds(Striping, st.integers(1, 9), st.sampled_from([1, 2, 4, 16, 65536]))


@given(ENTRIES, STRIPINGS, st.integers(0, 100))
def test_writes_by_object(entries: list[bytes], striping: Striping, position: int) -> None:
    number, count = 7, len(entries)
    found = dict(encode_writes(3, 99, WRITER, striping.packed, position, number, entries))
    expected = {}
    for index in range(striping.width):
        mine = [i for i in range(count) if striping.number(position + i) == index]
        if mine:
            expected[index] = encode_write(
                3,
                99,
                WRITER,
                striping.packed,
                [position + i for i in mine],
                [number + i for i in mine],
                [entries[i] for i in mine],
            )
    assert {residue: bytes(request) for residue, request in found.items()} == expected


def test_request_can_be_sent_repeatedly() -> None:
    with zlog.connect("mem://") as one, zlog.connect("mem://") as other:
        (request,) = requests([b"entry"])
        for store in (one, other):
            seal(store)
            assert store.execute(OBJECT, "write", request)[0] == 0
            assert store.execute(OBJECT, "write", request)[0] == 0, "it is there already"
            assert read(store, [0]) == [b"entry"]
        assert bytes(request) == write_request([0], b"entry")
        assert len(request) == len(bytes(request))
        assert memoryview(request).readonly


def test_memory_store_starts_each_call_immediately(memory: zlog.Store) -> None:
    seen = []
    queue = CompletionQueue()
    seal(memory)

    def calls() -> Iterator[tuple[str, str, Request]]:
        for request in requests([b"a", b"b", b"c"]):
            seen.append(read(memory, [0, 1, 2]))
            yield OBJECT, "write", request

    memory.submit(queue, 0, calls())  # type: ignore[arg-type]  # to see when each is taken
    assert seen == [[None] * 3, [b"a", None, None], [b"a", b"b", None]]
    assert read(memory, [0, 1, 2]) == [b"a", b"b", b"c"]


def test_later_buffer_changes_do_not_affect_request(memory: zlog.Store) -> None:
    data = bytearray(b"before")
    entries = [data]
    ((_, request),) = encode_writes(1, 1, WRITER, 1, 0, 0, entries)
    data[:] = b"after!"
    entries[0] = bytearray(b"other")
    seal(memory)
    assert memory.execute(OBJECT, "write", request)[0] == 0
    assert read(memory, [0]) == [b"before"]


def test_payload_must_be_bytes_or_request(memory: zlog.Store) -> None:
    with pytest.raises(TypeError, match="not str"):
        memory.execute(OBJECT, "seal", "text")  # type: ignore[arg-type]


@given(ENTRIES, st.integers(1, 10), st.integers(1, 100))
def test_entries_cut_respects_both_limits(
    entries: list[bytes], count_max: int, bytes_max: int
) -> None:
    start, parts = 0, []
    while start < len(entries):
        end = entries_cut(entries, start, count_max, bytes_max)
        part = entries[start:end]
        assert 1 <= len(part) <= count_max
        assert len(part) == 1 or sum(map(len, part)) <= bytes_max
        parts += part
        start = end
    assert parts == entries


def test_mutable_entries_are_copied() -> None:
    own = [b"a", b"b"]
    assert entries_owned(own) is own
    buffer = bytearray(b"b")
    copies = entries_owned([b"a", buffer])
    buffer[:] = b"c"
    assert copies == [b"a", b"b"]
    with pytest.raises(TypeError, match="encode"):
        entries_owned([b"a", "text"])  # type: ignore[list-item]


def test_entries_check_finds_invalid_entries() -> None:
    assert entries_check([b"abc", bytearray(4), memoryview(b"12345")], 5) is None
    assert entries_check([b"abc", memoryview(b"12345")], 4) == (1, 5)
    with pytest.raises(TypeError, match="encode"):
        entries_check([b"abc", "text"], 5)  # type: ignore[list-item]


def column_of(entries: list[bytes], before: bytes = b"") -> EntryColumn:
    offsets = accumulate(map(len, entries), initial=len(before))
    return EntryColumn(array("i", offsets), before + b"".join(entries))


@given(ENTRIES, st.binary(max_size=9), st.integers(0, 50), st.integers(0, 50), st.integers(1, 99))
def test_column_as_list(
    entries: list[bytes], before: bytes, start: int, end: int, limit: int
) -> None:
    column = column_of(entries, before)
    assert entries_owned(column) is column
    part, same = column[start:end], entries[start:end]
    assert [*part] == same
    assert len(part) == len(same)
    assert entries_check(part, limit) == entries_check(same, limit)
    assert entries_cut(part, 0, limit, limit) == entries_cut(same, 0, limit, limit)
    with (
        zlog.connect("mem://") as store,
        zlog.Log.create(store, "orders", width=2, stripe_unit=2) as log,
    ):
        assert log.append_many(part) == [*range(len(same))]
        assert data_of(log.read_range()) == same


@pytest.mark.parametrize("offsets", [[], [0, 4], [-1, 2], [2, 1], [0, 3, 2, 3]])
def test_column_offsets_must_be_within_data(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="a column"):
        EntryColumn(array("i", offsets), b"abc")
    with pytest.raises(IndexError):
        column_of([b"a"])[1]


def written(data: bytes, striping: Striping) -> zlog.Log:
    width, stripe_unit = striping
    log = zlog.Log.create(zlog.connect("mem://"), "orders", width=width, stripe_unit=stripe_unit)
    log.append_many([data] * 10)
    return log


@pytest.mark.parametrize("stripe_unit", [1, 2, 8])
def test_window_combines_replies(stripe_unit: int) -> None:
    striping = Striping(3, stripe_unit)
    log = written(b"data", striping)
    log.trim(4)
    window = Window(2, 12, None)
    for part in striping.by_object(2, 12):
        reply = reply_to(log, striping.number(part.start), part)
        assert window.add(reply, part.start, striping.packed) == len(part)
    assert window.entries == 7
    assert window.data_bytes == 28
    expected = [log.read(p) if p != 4 else State.TRIMMED for p in range(2, 10)]
    assert [*window] == [*expected, State.UNWRITTEN, State.UNWRITTEN]
    assert len(window) == 10


def test_window_may_have_unanswered_positions() -> None:
    log = written(b"data", Striping(2))
    window = Window(0, 4, None)
    window.add(reply_to(log, 1, range(1, 4, 2)), 1, 2)
    assert [*window] == [None, log.read(1), None, log.read(3)]
    assert window.found() == {1: log.read(1), 3: log.read(3)}


def test_reply_for_other_positions_is_lost() -> None:
    """The checksum covers the position: an answer about others can't be taken for this one's."""
    log = written(b"data", Striping(2))
    window = Window(0, 4, None)
    window.add(reply_to(log, 0, range(4, 8, 2)), 0, 2)
    assert [*window] == [State.LOST, None, State.LOST, None]
    log = written(b"data", Striping(2, 2))
    window = Window(0, 8, None)
    window.add(reply_to(log, 1, [3, 6, 7]), 2, Striping(2, 2).packed)
    assert [*window] == [None, None, State.LOST, State.LOST, None, None, State.LOST, None]


@pytest.mark.parametrize("reply", [b"", b"\x01", b"\x02" + bytes(20), bytes(64)])
def test_malformed_reply_raises_corrupt_entry(reply: bytes) -> None:
    with pytest.raises(zlog.CorruptEntry):
        Window(0, 4, None).add(reply, 0, 2)


@given(st.integers(0, 2**64 - 1))
def test_timestamps_convert_exactly_up_to_maximum(us: int) -> None:
    last = datetime.max.replace(tzinfo=timezone.utc)
    try:
        expected = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=us)
    except OverflowError:
        expected = last
    assert from_timestamp(us) == expected
