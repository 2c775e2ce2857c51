"""Entries with tags: stored, read, known again, selected by index and without it, trimmed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from zlog._native import core, messages

from .objects import Store, writer_id
from .replies import Code

WRITER = writer_id("w")
NAMES = [f"tag.{i}" for i in range(40)]
EVERYTHING = 2**62
WRITTEN, TRIMMED = 0, 3


@dataclass
class Tagged:
    """A stripe object of width one, through the clients' binding, and what it should hold."""

    store: Store
    name: str
    entries: dict[int, tuple[bytes, frozenset[str]]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # filled or trimmed
    trim_point: int = 0

    def call(self, method: str, request: bytes) -> bytes:
        code, reply = self.store.execute(self.name, method, request)
        assert code == Code.OK, (method, code)
        return reply

    def seal(self, epoch: int = 1) -> None:
        self.call("seal", messages.seal(epoch, 1, 0, True))

    def write(
        self, positions: Sequence[int], entries: Sequence[Any], compression: str = "none"
    ) -> int:
        """Write entries; returns the code."""
        request = core.encode_write(
            1, 1_000, WRITER, 1, positions, list(positions), entries, compression
        )
        code, _ = self.store.execute(self.name, "write", request)
        if code == Code.OK:
            for position, entry in zip(positions, entries, strict=True):
                tags = frozenset(getattr(entry, "tags", ()))
                self.entries[position] = (bytes(getattr(entry, "data", entry)), tags)
        return code

    def fill(self, positions: Sequence[int]) -> None:
        self.call("fill", messages.fill(1, 1_000, WRITER, 1, 1, positions))
        self.gone.update(positions)

    def trim(self, positions: Sequence[int]) -> None:
        self.call("trim", messages.trim(1, 1, positions))
        self.gone.update(positions)
        for position in positions:
            self.entries.pop(position, None)

    def trim_to(self, position: int) -> None:
        while messages.trim_to_reply(
            self.call("trim_to", messages.trim_to(1, position, 1024))
        ).more:
            pass
        self.trim_point = position
        self.entries = {p: entry for p, entry in self.entries.items() if p >= position}

    def select(
        self,
        tags: Iterable[str],
        start: int = 0,
        end: int = EVERYTHING,
        *,
        every: bool = False,
        reverse: bool = False,
        page: int = 1000,
        bytes_max: int = 1 << 20,
        with_ids: bool = False,
    ) -> tuple[list[tuple[int, bytes]], list[tuple[int, int, int]]]:
        """Select in pages; returns what was found and the gaps, in the order of the pages."""
        wanted = [tag.encode() for tag in tags]
        entries: list[tuple[int, bytes]] = []
        gaps: list[tuple[int, int, int]] = []
        while start < end:
            request = messages.select(
                1, start, end, wanted, every, reverse, page, bytes_max, with_ids
            )
            found = core.decode_select(self.call("select", request), None)
            assert len(found.entries) <= page
            assert not found.damaged
            for entry in found.entries:
                assert start <= entry.position < end
                assert set(entry.tags) == self.entries[entry.position][1]
                entries.append((entry.position, entry.data))
            gaps += found.gaps
            assert (found.end < end) if reverse else (found.end > start)
            start, end = (start, found.end) if reverse else (found.end, end)
        return entries, gaps

    def expected(
        self, tags: Iterable[str], start: int = 0, end: int = EVERYTHING, *, every: bool = False
    ) -> list[tuple[int, bytes]]:
        wanted = set(tags)
        match = wanted.issubset if every else lambda own: bool(wanted & own)
        return [
            (position, data)
            for position, (data, own) in sorted(self.entries.items())
            if start <= position < end and match(own)
        ]

    def unwritten(self) -> set[int]:
        """The positions below the highest one that nothing was stored at."""
        used = self.entries.keys() | self.gone
        return set(range(self.trim_point, max(used, default=0))) - used

    def check_index(self) -> int:
        """Assert that the index fits the records; returns how many tags it has."""
        reply = messages.tags_check_reply(
            self.call("tags_check", messages.tags_check(1, 0, EVERYTHING))
        )
        assert (reply.end, reply.wrong) == (EVERYTHING, [])
        return reply.tags

    def rebuild_index(self) -> None:
        start = 0
        while start < EVERYTHING:
            request = messages.tags_rebuild(1, start, EVERYTHING)
            start = messages.tags_rebuild_reply(self.call("tags_rebuild", request)).end


@pytest.fixture
def stripe(store: Store, prefix: str) -> Tagged:
    made = Tagged(store, prefix)
    made.seal()
    return made


def tagged(data: bytes, *tags: str) -> Any:
    return core.Tagged(data, tags)


def many(random_: random.Random, count: int, size: int = 20, each: int = 8) -> list[Any]:
    """Entries with so many tags that every other write of 1,100 of them ends a chunk."""
    return [core.Tagged(random_.randbytes(size), random_.sample(NAMES, each)) for _ in range(count)]


@pytest.mark.parametrize("compression", ["none", "zstd", "lz4"])
@pytest.mark.parametrize("size", [20, 20_000], ids=["inline", "stream"])
def test_a_read_tells_the_tags(stripe: Tagged, size: int, compression: str) -> None:
    entries = [tagged(b"x" * size, "a"), b"y" * size, tagged(b"z" * size, "b", "a", "ä" * 64)]
    assert stripe.write([0, 1, 2], entries, compression) == Code.OK
    request = messages.read(1, False, 1 << 25, 1, [0, 1, 2], True, True)
    found = core.decode_read(stripe.call("read", request), [0, 1, 2], None)
    assert [set(found.tags(i)) for i in range(3)] == [{"a"}, set(), {"a", "b", "ä" * 64}]
    plain = core.decode_read(
        stripe.call("read", messages.read(1, False, 1 << 25, 1, [0, 1, 2], True)), [0, 1, 2], None
    )
    assert [plain.tags(i) for i in range(3)] == [(), (), ()]
    assert stripe.select(["a"])[0] == stripe.expected(["a"])
    assert stripe.select(["a"], with_ids=True)[0] == stripe.expected(["a"])


def test_an_append_with_other_tags_is_another_one(stripe: Tagged) -> None:
    entry = tagged(b"data", "a", "b")
    assert stripe.write([3], [entry]) == Code.OK
    assert stripe.write([3], [tagged(b"data", "b", "a")]) == Code.OK
    assert stripe.write([2, 3], [tagged(b"more", "c"), entry]) == Code.OK
    for other in (b"data", tagged(b"data", "a"), tagged(b"data", "a", "b", "c")):
        assert stripe.write([3], [other]) == Code.READ_ONLY
    stripe.trim([3])
    assert stripe.write([3], [b"data"]) == Code.OK  # nothing tells what tags it had


@pytest.mark.parametrize("bad", [b"", b"x" * 129])
def test_a_bad_tag_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match="valid"):
        messages.select(1, 0, 10, [bad], False, False, 10, 10, False)


def test_every_way_of_asking_finds_the_same(stripe: Tagged) -> None:
    source = random.Random(17)
    at = 0
    for size in (20, 40, 20):
        count = 2_100
        positions = sorted(source.sample(range(at, at + count + 6), count))
        assert stripe.write(positions, many(source, count, size)) == Code.OK
        at += count + 6
    stripe.write([at, at + 1], [b"plain", tagged(b"late chunk", NAMES[0])])
    holes = sorted(stripe.unwritten())
    stripe.write(holes[:4], many(source, 4))  # late, into chunks
    stripe.fill(holes[4:6])
    stripe.trim(sorted(source.sample(sorted(stripe.entries), 300)))
    assert stripe.check_index() > 2 * 16_384
    for _ in range(2):
        for tags in (NAMES[:1], NAMES[3:5], [NAMES[0], "no such tag"], ["no such tag"]):
            for every in (False, True):
                start, end = sorted(source.sample(range(at + 2), 2))
                expected = stripe.expected(tags, every=every)
                found, gaps = stripe.select(tags, every=every, page=250)
                assert found == expected
                holes_told = {p for first, last, _ in gaps for p in range(first, last + 1)}
                assert holes_told == stripe.unwritten()
                assert {state for *_, state in gaps} <= {1}
                back, _ = stripe.select(tags, every=every, reverse=True, page=300)
                assert back[::-1] == expected
                part, _ = stripe.select(tags, start, end, every=every, page=7_000)
                assert part == stripe.expected(tags, start, end, every=every)
        stripe.rebuild_index()
        stripe.check_index()


def test_a_trim_drops_chunks_and_is_told(stripe: Tagged) -> None:
    source = random.Random(1)
    for first in (0, 2_100, 4_200):
        stripe.write(range(first, first + 2_100), many(source, 2_100))
    before = stripe.check_index()
    stripe.trim_to(2_500)
    assert stripe.check_index() < before
    found, gaps = stripe.select(NAMES[:1])
    assert found == stripe.expected(NAMES[:1])
    assert gaps == [(0, 2_499, TRIMMED)]
    assert stripe.select(NAMES[:1], reverse=True, page=50)[0][::-1] == found
    stripe.trim_to(6_300)
    assert stripe.check_index() == 0
    assert stripe.select(NAMES[:1]) == ([], [(0, 6_299, TRIMMED)])


def test_bytes_bound_a_reply(stripe: Tagged) -> None:
    entries = [tagged(bytes([i]) * 30_000, "a", *(["b"] if i % 2 else [])) for i in range(1, 20)]
    stripe.write(range(len(entries)), entries)
    stripe.write(range(20, 2_000), [tagged(b"-", *NAMES[:10])] * 1_980)
    stripe.write([2_000], [tagged(b"ends the chunk", "b")])
    for reverse in (False, True):
        found, _ = stripe.select(["b"], bytes_max=70_000, reverse=reverse)
        assert (found[::-1] if reverse else found) == stripe.expected(["b"])


def test_tags_that_begin_late_cost_what_was_before_nothing(stripe: Tagged) -> None:
    stripe.write(range(0, 50, 2), [b"untagged"] * 25)
    stripe.write([60], [tagged(b"first", "a")])
    stripe.write([1], [tagged(b"late", "a")])
    assert stripe.check_index() == 1
    assert stripe.select(["a"])[0] == [(1, b"late"), (60, b"first")]
