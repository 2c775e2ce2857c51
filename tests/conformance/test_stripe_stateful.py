"""A stripe object against the model, over random histories: hypothesis looks for one that differs.

Every step asks the host and `model.StripeModel` the same and compares the whole answers. Positions
are few, so that histories collide; writes come back as retries, whole, in part and mixed with new
entries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from zlog._native.local import MemoryStore

from .damage import flip
from .histories import SHOWN_CHARS_MAX, Machine, difference, run_histories
from .model import POSITION_MAX, StripeModel
from .objects import Store, Stripe
from .replies import Answer, Code, Selected, Stat, State
from .requests import RECORDS_MAX, TIME, Entry, writer_id
from .stored import MemoryDoor

PLACES = 40  # positions that a history is about at a time, from just below the trim point on
BELOW = 4  # how far below
GEOMETRIES = [(1, 0, 1), (3, 2, 1), (8, 0, 1), (3, 1, 4), (1, 0, 16), (2, 1, 8)]
PLACE = st.integers(0, PLACES - 1)
SPAN = st.tuples(PLACE, st.integers(1, 16))  # first place, length
PLACES_SET = st.one_of(SPAN, st.sets(PLACE, min_size=1, max_size=10))
WRITER = st.sampled_from([writer_id("a"), writer_id("b")])
EPOCH_OFFSET = st.sampled_from([0] * 8 + [-1, -1, 1, 5])
BYTES_MAX = st.sampled_from([0, 1, 10, 50, 20_000, 1 << 20])
BATCH_BYTES_MAX = 50_000  # enough for both ways in which a batch can be laid out
BLOCKS = st.sampled_from([0, 0, 1, 2, 5, 100])  # entries in each; 0: not compressed
SIZE = st.sampled_from([0, 1, 3, 3, 3, 10, 10, 6_000, 40_000])
TAGS = [(), (), (b"a",), (b"a", b"b"), (b"b", b"c" * 128)]
WANTED = st.sets(st.sampled_from([b"a", b"b", b"c" * 128, b"7", b"none"]), min_size=1)
SELECT_OPTIONS = st.fixed_dictionaries(
    {
        "entries_max": st.sampled_from([1, 2, 5, 1000]),
        "bytes_max": BYTES_MAX,
        "with_ids": st.booleans(),
        "without_data": st.booleans(),
    }
)
MANY_TAGS = tuple(b"%d" % i for i in range(64))
CHUNKS_UNTIL = 2 * 256  # entries
CHUNK_ENTRIES = 256  # with so many tags each, as many as a chunk of the index has
EVERYTHING = POSITION_MAX + 1
STEPS = {"mem": (150, 50), "file": (20, 40), "ceph": (15, 40)}


class StripeMachine(Machine):
    """One history of one stripe object."""

    def __init__(self) -> None:
        super().__init__()
        self._written: list[tuple[bytes, list[Entry], int]] = []
        self._number = 0
        self._unfreed = False
        self._indexed = True  # as far as there is an index

    @initialize(geometry=st.sampled_from(GEOMETRIES), epoch=st.integers(1, 3), tagged=st.booleans())
    def make(self, geometry: tuple[int, int, int], epoch: int, tagged: bool) -> None:
        """Start without the object, as a log does; half of the logs have no tags."""
        self._tagged = tagged
        self.real = Stripe(self.store, self.name, *geometry)
        self.model = StripeModel(*geometry)
        self.both("write", epoch, self._entries([0], 1))
        self.both("seal", epoch)

    def expected(self, method: str, found: Answer, arguments: tuple[Any, ...]) -> Answer:
        """Return the answer of the model; a host may answer some writes in two ways."""
        if method == "write":
            return self.model.write_as_host(found, *arguments)
        answer = super().expected(method, found, arguments)
        if method == "verify" and self.model.compacted and answer.code == found.code == Code.OK:
            # A trim forgets the ids of entries in records that a compaction has made sparse.
            return found if found.value.slots() == answer.value.slots() else answer
        return answer

    def _positions(self, places: Any) -> list[int]:
        """The positions of places that count from the window's start."""
        if isinstance(places, tuple):
            places = range(places[0], places[0] + places[1])
        start = max(self._place(self.model.trim_point) - BELOW, 0)
        return self._absolute([start + place for place in sorted(places)])

    def _place(self, position: int) -> int:
        """About how many of the object's positions lie below one."""
        turn, stripe_unit = self.real.stride * self.real.stripe_unit, self.real.stripe_unit
        return position // turn * stripe_unit + position % stripe_unit

    def _absolute(self, places: Sequence[int]) -> list[int]:
        stripe_unit = self.real.stripe_unit
        turns = [place // stripe_unit * self.real.stride + self.real.residue for place in places]
        return [
            turn * stripe_unit + place % stripe_unit
            for turn, place in zip(turns, places, strict=True)
        ]

    def _entries(self, positions: Sequence[int], size: int) -> list[Entry]:
        entries = []
        size = min(size, BATCH_BYTES_MAX // len(positions))
        for position in positions:
            self._number += 1
            data = (b"%d:" % self._number * size)[: max(size - self._number % 3, 0)]
            tags = TAGS[self._number % len(TAGS)] if self._tagged else ()
            entries.append(Entry(position, self._number, data, tags))
        return entries

    def _epoch(self, offset: int) -> int:
        return max(self.model.epoch + offset, 0)

    @rule(offset=st.sampled_from([0, 1, 1, 1, 2, -1]), removed=st.integers(0, 60))
    def seal(self, offset: int, removed: int) -> None:
        """And now and then a removal before it."""
        if 21 <= removed <= 23:
            self._remove(ahead=removed - 21)
        self.both("seal", max(self._epoch(offset), 1))

    @rule(
        offset=EPOCH_OFFSET,
        places=PLACES_SET,
        size=SIZE,
        writer=WRITER,
        time=st.integers(0, 9),
        blocks=BLOCKS,
    )
    def write(
        self, offset: int, places: Any, size: int, writer: bytes, time: int, blocks: int
    ) -> None:
        entries = self._entries(self._positions(places), size)
        answer = self.both("write", self._epoch(offset), entries, writer, time, blocks)
        if answer.code == Code.OK or time == 0:  # a refused one may come back too
            self._written.append((writer, entries, blocks))

    @precondition(lambda self: self._written)
    @rule(which=st.integers(0, 10**6), offset=st.sampled_from([0, -1, 1]))
    def retry(self, which: int, offset: int) -> None:
        """A write once more, as after a lost reply; often in an epoch that is over."""
        writer, entries, blocks = self._written[which % len(self._written)]
        self.both("write", self._epoch(offset), entries, writer, TIME, blocks)

    @precondition(lambda self: self._written)
    @rule(data=st.data(), offset=EPOCH_OFFSET, extra=PLACES_SET, behind=st.booleans())
    def retry_otherwise(self, data: st.DataObject, offset: int, extra: Any, behind: bool) -> None:
        """A part of a write once more, or with others added, or by another client."""
        writer, entries, blocks = data.draw(st.sampled_from(self._written))
        kinds = ["part", "more", "writer", "number", "data", "tags", "blocks"]
        change = data.draw(st.sampled_from(kinds))
        if change == "part":
            kept = data.draw(st.sets(st.sampled_from(entries), min_size=1))
            entries = sorted(kept, key=lambda entry: entry.position)
        elif change == "more":
            had = {entry.position for entry in entries}
            above = max(had) if behind else 0  # among those it had, or all behind them
            turn = self.real.stride * self.real.stripe_unit
            new = [p + above - above % turn for p in self._positions(extra)]
            new = [p for p in new if p not in had]
            added = self._entries(new, 3) if new else []
            entries = sorted([*entries, *added], key=lambda entry: entry.position)
        elif change == "writer":
            writer = writer_id("c")
        elif change == "number":
            entries = [*entries[:-1], replace(entries[-1], number=10**6)]
        elif change == "data":
            last = entries[-1]
            forged = bytes(byte ^ 1 for byte in last.data) or b"forged"
            entries = [*entries[:-1], replace(last, data=forged)]
        elif change == "tags":
            entries = [*entries[:-1], replace(entries[-1], tags=data.draw(st.sampled_from(TAGS)))]
        elif change == "blocks":
            blocks = data.draw(BLOCKS)
        self.both("write", self._epoch(offset), entries, writer, TIME, blocks)

    @precondition(lambda self: self.model.cells)
    @rule(
        offset=EPOCH_OFFSET,
        above=st.integers(1, 4),
        length=st.integers(1, 20),
        size=SIZE,
        blocks=BLOCKS,
    )
    def append(self, offset: int, above: int, length: int, size: int, blocks: int) -> None:
        """A batch at the tail, the common case, with or without a gap before it."""
        start = self._place(self.model.highest or 0) + above
        entries = self._entries(self._absolute(range(start, start + length)), size)
        self.both("write", self._epoch(offset), entries, writer_id("a"), TIME, blocks)
        self._written.append((writer_id("a"), entries, blocks))

    @precondition(lambda self: self._tagged and self._number < CHUNKS_UNTIL)
    @rule(above=st.integers(1, 4), behind=st.integers(0, 2))
    def end_a_chunk(self, above: int, behind: int) -> None:
        """By as many tags as it has, and what is written behind them."""
        start = self._place(self.model.highest or 0) + above
        positions = self._absolute(range(start, start + CHUNK_ENTRIES))
        entries = [Entry(p, self._number + i, b"", MANY_TAGS) for i, p in enumerate(positions)]
        self._number += CHUNK_ENTRIES
        self.both("write", self.model.epoch, entries, writer_id("a"), TIME, 0)
        for place in range(start + CHUNK_ENTRIES, start + CHUNK_ENTRIES + behind):
            entries = self._entries(self._absolute([place]), 3)
            self.both("write", self.model.epoch, entries, writer_id("a"), TIME, 0)

    @precondition(lambda self: self._tagged and isinstance(self.store, MemoryStore))
    @rule(which=st.integers(0, 10**6), bit=st.integers(0, 10**6), gone=st.booleans())
    def damage_the_index(self, which: int, bit: int, gone: bool) -> None:
        """Records tell what its values can't, from then on."""
        door = MemoryDoor(self.store)
        content = door.load(self.real.name)
        keys = [key for key in content.omap if key.startswith((b"c.", b"t."))]
        if keys:
            key = keys[which % len(keys)]
            value = content.omap[key]
            damaged = content.with_value(key, flip(value, bit % len(value), bit % 8))
            door.save(self.real.name, content.without(key) if gone else damaged)
            self._indexed = False
            note(f"{key!r} is {'gone' if gone else 'damaged'}")

    @rule(
        offset=EPOCH_OFFSET,
        places=PLACES_SET,
        beside=st.integers(0, 7),
        tags=WANTED,
        flags=st.tuples(st.booleans(), st.booleans()),
        options=SELECT_OPTIONS,
    )
    def select(
        self,
        offset: int,
        places: Any,
        beside: int,
        tags: Collection[bytes],
        flags: tuple[bool, bool],
        options: dict[str, Any],
    ) -> None:
        positions = self._positions(places)
        bounds = max(positions[0] - beside, 0), positions[-1] + beside
        self._select(self._epoch(offset), bounds, tags, *flags, **options)

    def _select(
        self,
        epoch: int,
        bounds: tuple[int, int],
        tags: Collection[bytes],
        every: bool,
        reverse: bool,
        **options: Any,
    ) -> None:
        """All pages together are what the model finds."""
        expected = self.model.select(epoch, *bounds, tags, every, **options)
        found: list[Any] = []
        gaps: list[Any] = []
        (start, end), wanted = bounds, sorted(tags)
        while True:
            asked = epoch, start, end, wanted, every, reverse
            answer = self.real.select(*asked, **options)
            note(f"select{asked} {options} -> {answer}"[:SHOWN_CHARS_MAX])
            page = answer.value
            if not isinstance(page, Selected):
                assert answer == expected
                return
            assert page.highest == expected.value.highest
            assert len(page.found) <= options.get("entries_max", 1000)
            for position, slot in page.found:
                if slot.state == State.TRIMMED:  # the index knew it from before
                    assert self.model.cell(position).state == State.TRIMMED
                else:
                    found.append((position, slot))
            for first, last, state in page.gaps:
                gaps += [(p, p, state) for p in range(first, last + 1) if self.model.has(p)]
            done = page.end == (start if reverse else end)
            assert done or start < page.end < end
            start, end = (start, page.end) if reverse else (page.end, end)
            if done:
                break
        found = found[::-1] if reverse else found
        assert found == [*expected.value.found], difference(found, expected.value.found)
        assert sorted(gaps) == [*expected.value.gaps]

    @rule(offset=EPOCH_OFFSET, rebuild=st.booleans())
    def check_the_index(self, offset: int, rebuild: bool) -> None:
        """It fits the records, unless it was damaged; and does again once it was made anew."""
        epoch = self._epoch(offset)
        if refusal := self.model.max_position(epoch).code:
            assert self.real.tags_check(epoch).code == refusal
            assert self.real.tags_rebuild(epoch).code == refusal
            return
        start = 0
        while rebuild and start < EVERYTHING:
            reached = self.real.tags_rebuild(epoch, start, EVERYTHING).value
            assert start < reached
            start = reached
        self._indexed |= rebuild
        checked = self.real.tags_check(epoch, 0, EVERYTHING).value
        assert checked.end == EVERYTHING
        wrong = [each for each in checked.wrong if each.last >= self.model.trim_point]
        assert not (wrong and self._indexed), checked

    @rule(offset=EPOCH_OFFSET, places=PLACES_SET, reason=st.integers(0, 3))
    def fill(self, offset: int, places: Any, reason: int) -> None:
        positions = self._positions(places)
        self.both("fill", self._epoch(offset), positions, writer_id("f"), 77, reason)

    @rule(offset=EPOCH_OFFSET, places=PLACES_SET)
    def trim(self, offset: int, places: Any) -> None:
        self.both("trim", self._epoch(offset), self._positions(places))

    @rule(offset=EPOCH_OFFSET, happens=st.integers(0, 20))
    def freeze(self, offset: int, happens: int) -> None:
        """Not often, as it is for ever."""
        if happens == 0:
            self.both("freeze", self._epoch(offset))

    @rule(
        offset=EPOCH_OFFSET,
        places=st.sampled_from([-3, 0, 1, 2, 3, 5, 8, 13, 30, 100]),
        beside=st.integers(0, 7),
        records_max=st.sampled_from([1, 2, 3, RECORDS_MAX, RECORDS_MAX]),
        finish=st.booleans(),
    )
    def trim_to(
        self, offset: int, places: int, beside: int, records_max: int, finish: bool
    ) -> None:
        """Some places on from the last point, at any position between; not always to the end."""
        stride = self.real.stride
        point = self.model.trim_point + places * stride + beside % (stride * self.real.stripe_unit)
        self._trim_to(self._epoch(offset), max(point, 0), records_max, finish)

    def _trim_to(self, epoch: int, point: int, records_max: int, finish: bool) -> None:
        for _ in range(1000):
            expected = self.model.trim_to(epoch, point, records_max)
            found = self.real.trim_to(epoch, point, records_max)
            note(f"trim_to{(epoch, point, records_max)} -> {found}")
            if found.code != Code.OK:
                assert found == expected
                return
            self._unfreed = found.value
            assert not (records_max == RECORDS_MAX and found.value)
            if not (found.value and finish):
                return
        raise AssertionError("trim_to never ends")

    @rule(
        offset=EPOCH_OFFSET,
        places=PLACES_SET,
        bytes_max=BYTES_MAX,
        more=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    )
    def read(self, offset: int, places: Any, bytes_max: int, more: tuple[bool, bool, bool]) -> None:
        ids, tags, without_data = more
        asked = self._positions(places), bytes_max, ids, True, tags, without_data
        self.both("read", self._epoch(offset), *asked)

    @rule(offset=EPOCH_OFFSET, places=PLACES_SET, bytes_max=BYTES_MAX)
    def verify(self, offset: int, places: Any, bytes_max: int) -> None:
        epoch, positions = self._epoch(offset), self._positions(places)
        if self.model.freed.keys().isdisjoint(positions):
            self.both("verify", epoch, positions, bytes_max)
            return
        answers = [each.verify(epoch, positions, bytes_max) for each in (self.real, self.model)]
        found, expected = (
            [row.state for row in answer.value.rows for _ in range(row.length)]
            if answer.code == Code.OK
            else answer
            for answer in answers
        )
        assert found == expected  # the host may have forgotten who wrote what was trimmed

    @precondition(lambda self: self.model.cells)
    @rule(offset=EPOCH_OFFSET, places=PLACES_SET, others=st.booleans(), everywhere=st.booleans())
    def compact(self, offset: int, places: Any, others: bool, everywhere: bool) -> None:
        """Trim some entries, or all others, and store together what is left of their records."""
        epoch, positions = self._epoch(offset), self._positions(places)
        if others:
            positions = sorted({*self.model.cells} - {*positions}) or positions
        start, end = (0, EVERYTHING) if everywhere else (positions[0], positions[-1] + 1)
        listed = self.model.tags_list(epoch, start, end)
        assert self._in_pages("tags_list", epoch, start, end) == listed
        expected = self.model.compact(epoch, start, end, positions)
        found = self._in_pages("compact", epoch, start, end, positions)
        assert found.code == expected.code
        if found.code == Code.OK:  # records that an unfinished trim has left count with it
            below = sum(position < self.model.trim_point for position in self.model.freed)
            assert 0 <= found.value - expected.value <= below
        self._indexed = False  # until it is made again

    def _in_pages(self, method: str, epoch: int, start: int, end: int, *more: Any) -> Answer:
        """Call a method until it has come to the end; the answers put together."""
        found: Any = () if method == "tags_list" else 0
        while start < end:
            answer = getattr(self.real, method)(epoch, start, end, *more)
            note(f"{method}{(epoch, start, end, *more)} -> {answer}"[:SHOWN_CHARS_MAX])
            if answer.code != Code.OK:
                return answer  # type: ignore[no-any-return]
            assert start < answer.value.end
            start = answer.value.end
            found += answer.value.tags if method == "tags_list" else answer.value.trimmed
        return Answer(Code.OK, found)

    @rule(offset=EPOCH_OFFSET, places=PLACES_SET, beside=st.integers(0, 7))
    def count(self, offset: int, places: Any, beside: int) -> None:
        positions = self._positions(places)
        end = positions[-1] + beside
        self.both("count", self._epoch(offset), max(positions[0] - beside, 0), end)

    @rule(offset=EPOCH_OFFSET)
    def look(self, offset: int) -> None:
        """At the numbers."""
        self.both("max_position", self._epoch(offset))
        found, expected = (
            self.real.stat(self._epoch(offset)),
            self.model.stat(self._epoch(offset)),
        )
        assert found.code == expected.code
        if not (self._unfreed and isinstance(found.value, Stat)):
            assert found == expected  # else the counts still hold what is trimmed and not freed

    def _remove(self, ahead: int) -> None:
        """The object goes, and comes back empty."""
        epoch = self.model.epoch
        if epoch > 1:
            self.both("remove", epoch - 1)
        self.both("remove", epoch + ahead)
        self.both("seal", epoch + 1, False)
        self.both("write", epoch, self._entries(self._absolute([0]), 1))
        self.both("seal", epoch)
        self._written, self._unfreed, self._indexed = [], False, True

    def teardown(self) -> None:
        """At the end of a history everything is looked at."""
        if self.model is None:
            return
        top = self._place(self.model.highest or 0) + PLACES
        places = self._absolute(range(min(top, 4000)))
        self.both("read", self.model.epoch, places, 1 << 25, True, True, True)
        for reverse in (False, True):
            self._select(self.model.epoch, (0, places[-1]), [b"a", b"c" * 128], False, reverse)
        self.check_the_index(0, False)
        self._trim_to(self.model.epoch, 0, RECORDS_MAX, finish=True)
        self.look(0)


def test_stripe_object_agrees_with_model(store: Store, prefix: str, host: str) -> None:
    run_histories(StripeMachine, store, prefix, STEPS[host])
