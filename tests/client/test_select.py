"""Readers of tags find what readers of everything find: entries, gaps, both directions, streams."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest

import zlog
from zlog import Entry, Gap, GapKind
from zlog._native import messages

from ..support.logs import leave_hole
from .faulty import FaultyStore

STREAMS = [f"stream.{i}" for i in range(6)]
Items = Sequence[Entry | Gap]


def entries_of(items: Iterable[Entry | Gap]) -> list[Entry]:
    return [item for item in items if isinstance(item, Entry)]


def with_tags(items: Items, tags: Sequence[str], match: str = "any") -> list[Entry]:
    """What a reader of everything keeps of it."""
    test = all if match == "all" else any
    return [entry for entry in entries_of(items) if test(tag in entry.tags for tag in tags)]


def append_some(log: zlog.Log, source: random.Random, count: int) -> None:
    """Append entries of all sizes, with no tag, one or some."""
    entries = [source.randbytes(source.choice((0, 10, 100, 9_000))) for _ in range(count)]
    tags = [source.sample(STREAMS, source.choice((0, 1, 1, 1, 3))) for _ in range(count)]
    log.append_many(entries, tags_each=tags)


@pytest.mark.parametrize("seed", range(8))
def test_tag_readers_match_full_readers(
    log: zlog.Log, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = random.Random(seed)
    if seed % 2:  # all positions that an object can't tell of are more than are settled at once
        monkeypatch.setattr("zlog._read.select.MISSING_AT_ONCE", 2)
    for _ in range(source.randrange(3, 9)):
        append_some(log, source, source.choice((1, 2, 30, 300)))
        act = source.randrange(8)
        tail = log.tail()
        if act == 0:
            log.reconfigure(width=source.choice((1, 2, 5)))
        elif act == 1:
            leave_hole(log, source.randrange(1, 6))
        elif act == 2:
            log.trim(source.randrange(tail))
        elif act == 3:
            log.trim_to(source.randrange(tail))
        elif act == 4:
            log.append(b"not in any stream")
    for tags in (STREAMS[:1], STREAMS[1:3], [*STREAMS[3:], "no such stream"]):
        for match in ("any", "all"):
            start, end = sorted(source.choices(range(log.tail() + 1), k=2))
            found = list(log.read_range(tags=tags, match=match, hole_timeout=0))
            everything = list(log.read_range())
            expected = with_tags(everything, tags, match)
            assert entries_of(found) == expected
            trimmed = [Gap(0, log.view.trim_point, GapKind.TRIMMED)] if log.view.trim_point else []
            assert [item for item in found if isinstance(item, Gap)] == trimmed
            back = list(log.read_range(tags=tags, match=match, reverse=True))
            assert back == found[::-1]
            columns = list(log.read_columns(tags=tags, match=match, with_tags=True))
            assert [
                (position, bytes(some.data[some.offsets[i] : some.offsets[i + 1]]), some.tags[i])
                for some in columns
                for i, position in enumerate(some.positions)
            ] == [(entry.position, entry.data, entry.tags) for entry in expected]
            assert [gap for some in columns for gap in some.gaps] == trimmed
            part = entries_of(list(log.read_range(start, end, tags=tags, match=match)))
            assert part == [entry for entry in expected if start <= entry.position < end]
            assert log.last(*tags, match=match) == (expected[-1] if expected else None)
            below = [entry for entry in expected if entry.position < end]
            assert log.last(*tags, match=match, before=end) == (below[-1] if below else None)
    assert list(log.read_range(reverse=True)) == everything[::-1]
    assert log.last() == entries_of(everything)[-1]


def test_tag_reader_tolerates_object_trimmed_ahead(memory: zlog.Store) -> None:
    """As a hostile client may do: readers end, and find what is there."""
    with zlog.Log.create(memory, "orders", width=1) as log:
        log.append_many([b"%d" % i for i in range(4)], tags=("a",))
        request = messages.trim_to(log.view.epoch, 2, 10)
        assert memory.execute(log.view.object_of(0).name, "trim_to", request)[0] == 0
        found = [entry.data for entry in log.read_range(tags=("a",)) if isinstance(entry, Entry)]
        assert found == [b"2", b"3"]
        back = log.read_range(tags=("a",), reverse=True)
        assert [entry.data for entry in back if isinstance(entry, Entry)] == [b"3", b"2"]


def test_tag_reader_asks_at_hole_when_it_gets_there(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2, stripe_unit=1)
    leave_hole(log)
    log.append_many([b"x"] * 2400, tags_each=[("a",), ()] * 1200)  # 1200 are two replies
    calls: list[str] = []
    reader = zlog.Log.open(FaultyStore(memory, lambda _, method: calls.append(method)), "orders")
    assert len([*reader.read_range(tags=("a",), reverse=True, hole_timeout=0.05)]) == 1200
    assert calls.count("select") == 2 + 2  # of each object


def test_stream_reads_like_log(log: zlog.Log) -> None:
    cart, audit = log.stream("cart.17"), log.stream("audit")
    assert (cart.first(), cart.last(), cart.tail()) == (None, None, 0)
    first = cart.append(b"add apples")
    assert cart.last().position == first == 0
    both = cart.append(b"pay", tags=("audit",))
    audit.append_many([b"x", b"y"])
    assert [entry.data for entry in cart.read_range()] == [b"add apples", b"pay"]
    assert [entry.data for entry in audit.read_range(reverse=True)] == [b"y", b"x", b"pay"]
    assert (cart.first().position, cart.last().position, cart.tail()) == (first, both, both + 1)
    assert set(log.read(both).tags) == {"cart.17", "audit"}
    cursor = cart.cursor("billing", create=0)
    cursor.commit(both)
    assert [state.name for state in log.cursors()] == ["stream.cart-2e17.billing"]
    tail = log.tail()
    with pytest.raises(TypeError, match="not a string"):
        log.stream("cart").append(b"x", tags="eu")
    with pytest.raises(TypeError, match="not a string"):
        log.stream("cart").append_many([b"x"], tags="eu")
    assert log.tail() == tail
    with zlog.Log.open(log.store, log.name) as again:
        stream = again.stream("cart.17")
        assert stream.cursor("billing").position == both
        assert [entry.data for entry in stream.read_range(both)] == [b"pay"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"tags": "text"}, TypeError),
        ({"tags": ()}, ValueError),
        ({"tags": ("",)}, zlog.InvalidTag),
        ({"tags": ("x" * 129,)}, zlog.InvalidTag),
        ({"tags": [str(i) for i in range(65)]}, zlog.InvalidTag),
        ({"tags": ("a",), "match": "none"}, ValueError),
    ],
)
def test_invalid_tags_are_refused(log: zlog.Log, arguments: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        log.read_range(**arguments)
