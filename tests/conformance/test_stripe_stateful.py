"""A stripe object against the model, over random histories: hypothesis looks for one that differs.

Every step asks the host and `model.StripeModel` the same and compares the whole answers. Positions
are few, so that histories collide; writes come back as retries, whole, in part and mixed with new
entries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count, zip_longest
from typing import Any

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from zlog._native.local import MemoryStore

from .damage import flip
from .model import POSITION_MAX, StripeModel
from .objects import Store, Stripe
from .replies import Answer, Code, Read, Selected, Stat, State
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
MANY_TAGS = tuple(b"%d" % i for i in range(64))
CHUNKS_UNTIL = 2 * 256  # entries
CHUNK_ENTRIES = 256  # with so many tags each, as many as a chunk of the index has
EVERYTHING = POSITION_MAX + 1
NOTE_CHARS_MAX = 400
STEPS = {"mem": (150, 50), "file": (20, 40), "ceph": (15, 40)}


def difference(found: Answer, expected: Answer) -> str:
    """The first slot of two reads that differs; whole answers are too long to look at."""
    if isinstance(found.value, Read) and isinstance(expected.value, Read):
        pairs = zip(found.value.slots, expected.value.slots, strict=False)
        for i, (ours, theirs) in enumerate(pairs):
            if ours != theirs:
                return f"slot {i}: {ours} instead of {theirs}"
    return f"{found} instead of {expected}"[:NOTE_CHARS_MAX]


class StripeMachine(RuleBasedStateMachine):
    """One history of one stripe object."""

    store: Store
    prefix: str

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
        self.stripe = Stripe(self.store, f"{self.prefix}.{next(_numbers)}", *geometry)
        self.model = StripeModel(*geometry)
        self.both("write", epoch, self._entries([0], 1))
        self.both("seal", epoch)

    def both(self, method: str, *arguments: Any) -> Answer:
        """Ask the host and the model; they must say the same."""
        found: Answer = getattr(self.stripe, method)(*arguments)
        note(f"{method}{arguments}"[:NOTE_CHARS_MAX] + f" -> {found}"[:NOTE_CHARS_MAX])
        if method == "write":
            crcs, *rest = arguments[4:] or (None,)
            assert crcs is None
            expected = self.model.write_as_host(found, *arguments[:4], *rest)
        else:
            expected = getattr(self.model, method)(*arguments)
        assert found == expected, difference(found, expected)
        return found

    def _positions(self, places: Any) -> list[int]:
        """The positions of places that count from the window's start."""
        if isinstance(places, tuple):
            places = range(places[0], places[0] + places[1])
        start = max(self._place(self.model.trim_point) - BELOW, 0)
        return self._absolute([start + place for place in sorted(places)])

    def _place(self, position: int) -> int:
        """About how many of the object's positions lie below one."""
        turn, stripe_unit = self.stripe.stride * self.stripe.stripe_unit, self.stripe.stripe_unit
        return position // turn * stripe_unit + position % stripe_unit

    def _absolute(self, places: Sequence[int]) -> list[int]:
        stripe_unit = self.stripe.stripe_unit
        turns = [
            place // stripe_unit * self.stripe.stride + self.stripe.residue for place in places
        ]
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
        answer = self._write(self._epoch(offset), entries, writer, time, blocks)
        if answer.code == Code.OK or time == 0:  # a refused one may come back too
            self._written.append((writer, entries, blocks))

    def _write(
        self, epoch: int, entries: list[Entry], writer: bytes, time: int, blocks: int
    ) -> Answer:
        return self.both("write", epoch, entries, writer, time, None, blocks)

    @precondition(lambda self: self._written)
    @rule(which=st.integers(0, 10**6), offset=st.sampled_from([0, -1, 1]))
    def retry(self, which: int, offset: int) -> None:
        """A write once more, as after a lost reply; often in an epoch that is over."""
        writer, entries, blocks = self._written[which % len(self._written)]
        self._write(self._epoch(offset), entries, writer, TIME, blocks)

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
            turn = self.stripe.stride * self.stripe.stripe_unit
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
        self._write(self._epoch(offset), entries, writer, TIME, blocks)

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
        self._write(self._epoch(offset), entries, writer_id("a"), TIME, blocks)
        self._written.append((writer_id("a"), entries, blocks))

    @precondition(lambda self: self._tagged and self._number < CHUNKS_UNTIL)
    @rule(above=st.integers(1, 4), behind=st.integers(0, 2))
    def end_a_chunk(self, above: int, behind: int) -> None:
        """By as many tags as it has, and what is written behind them."""
        start = self._place(self.model.highest or 0) + above
        positions = self._absolute(range(start, start + CHUNK_ENTRIES))
        entries = [Entry(p, self._number + i, b"", MANY_TAGS) for i, p in enumerate(positions)]
        self._number += CHUNK_ENTRIES
        self._write(self.model.epoch, entries, writer_id("a"), TIME, 0)
        for place in range(start + CHUNK_ENTRIES, start + CHUNK_ENTRIES + behind):
            self._write(
                self.model.epoch, self._entries(self._absolute([place]), 3), writer_id("a"), TIME, 0
            )

    @precondition(lambda self: self._tagged and isinstance(self.store, MemoryStore))
    @rule(which=st.integers(0, 10**6), bit=st.integers(0, 10**6), gone=st.booleans())
    def damage_the_index(self, which: int, bit: int, gone: bool) -> None:
        """Records tell what its values can't, from then on."""
        door = MemoryDoor(self.store)
        content = door.load(self.stripe.name)
        keys = [key for key in content.omap if key.startswith((b"c.", b"t."))]
        if keys:
            key = keys[which % len(keys)]
            value = content.omap[key]
            omap = dict(content.omap)
            omap[key] = flip(value, bit % len(value), bit % 8)
            if gone:
                del omap[key]
            door.save(self.stripe.name, replace(content, omap=omap))
            self._indexed = False
            note(f"{key!r} is {'gone' if gone else 'damaged'}")

    @rule(
        offset=EPOCH_OFFSET,
        places=PLACES_SET,
        beside=st.integers(0, 7),
        tags=WANTED,
        every=st.booleans(),
        reverse=st.booleans(),
        entries_max=st.sampled_from([1, 2, 5, 1000]),
        bytes_max=BYTES_MAX,
        ids=st.booleans(),
        without_data=st.booleans(),
    )
    def select(
        self,
        offset: int,
        places: Any,
        beside: int,
        tags: Collection[bytes],
        every: bool,
        reverse: bool,
        entries_max: int,
        bytes_max: int,
        ids: bool,
        without_data: bool,
    ) -> None:
        positions = self._positions(places)
        bounds = max(positions[0] - beside, 0), positions[-1] + beside
        rest = entries_max, bytes_max, ids, without_data
        self._select(self._epoch(offset), bounds, tags, every, reverse, *rest)

    def _select(
        self,
        epoch: int,
        bounds: tuple[int, int],
        tags: Collection[bytes],
        every: bool,
        reverse: bool,
        entries_max: int = 1000,
        bytes_max: int = 1 << 20,
        ids: bool = False,
        without_data: bool = False,
    ) -> None:
        """All pages together are what the model finds."""
        expected = self.model.select(epoch, *bounds, tags, every, ids, without_data)
        found: list[Any] = []
        gaps: list[Any] = []
        (start, end), wanted = bounds, sorted(tags)
        while True:
            more = reverse, entries_max, bytes_max, ids, without_data
            answer = self.stripe.select(epoch, start, end, wanted, every, *more)
            note(f"select{(epoch, start, end, wanted, every, *more)} -> {answer}"[:NOTE_CHARS_MAX])
            page = answer.value
            if not isinstance(page, Selected):
                assert answer == expected
                return
            assert page.highest == expected.value.highest
            assert len(page.found) <= entries_max
            for position, slot in page.found:
                if slot.state == State.TRIMMED:  # the index knew it from before
                    assert self.model.cell(position).state == State.TRIMMED
                else:
                    found.append((position, slot))
            gaps += [(p, p, g[2]) for g in page.gaps for p in filter(self._has, range(*_run(g)))]
            done = page.end == (start if reverse else end)
            assert done or start < page.end < end
            start, end = (start, page.end) if reverse else (page.end, end)
            if done:
                break
        found = found[::-1] if reverse else found
        assert found == [*expected.value.found], _first_difference(found, expected.value.found)
        assert sorted(gaps) == [*expected.value.gaps]

    def _has(self, position: int) -> bool:
        stride, stripe_unit = self.stripe.stride, self.stripe.stripe_unit
        return position // stripe_unit % stride == self.stripe.residue

    @rule(offset=EPOCH_OFFSET, rebuild=st.booleans())
    def check_the_index(self, offset: int, rebuild: bool) -> None:
        """It fits the records, unless it was damaged; and does again once it was made anew."""
        epoch = self._epoch(offset)
        if refusal := self.model.max_position(epoch).code:
            assert self.stripe.tags_check(epoch).code == refusal
            assert self.stripe.tags_rebuild(epoch).code == refusal
            return
        start = 0
        while rebuild and start < EVERYTHING:
            reached = self.stripe.tags_rebuild(epoch, start, EVERYTHING).value
            assert start < reached
            start = reached
        self._indexed |= rebuild
        checked = self.stripe.tags_check(epoch, 0, EVERYTHING).value
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
        stride = self.stripe.stride
        point = (
            self.model.trim_point + places * stride + beside % (stride * self.stripe.stripe_unit)
        )
        self._trim_to(self._epoch(offset), max(point, 0), records_max, finish)

    def _trim_to(self, epoch: int, point: int, records_max: int, finish: bool) -> None:
        for _ in range(1000):
            expected = self.model.trim_to(epoch, point, records_max)
            found = self.stripe.trim_to(epoch, point, records_max)
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
        answers = [each.verify(epoch, positions, bytes_max) for each in (self.stripe, self.model)]
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
            answer = getattr(self.stripe, method)(epoch, start, end, *more)
            note(f"{method}{(epoch, start, end, *more)} -> {answer}"[:NOTE_CHARS_MAX])
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
            self.stripe.stat(self._epoch(offset)),
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
        if not hasattr(self, "model"):
            return
        top = self._place(self.model.highest or 0) + PLACES
        places = self._absolute(range(min(top, 4000)))
        self.both("read", self.model.epoch, places, 1 << 25, True, True, True)
        for reverse in (False, True):
            self._select(self.model.epoch, (0, places[-1]), [b"a", b"c" * 128], False, reverse)
        self.check_the_index(0, False)
        self._trim_to(self.model.epoch, 0, RECORDS_MAX, finish=True)
        self.look(0)


def _first_difference(found: Sequence[Any], expected: Sequence[Any]) -> str:
    pairs = zip_longest(found, expected)
    return next((f"{ours} instead of {theirs}" for ours, theirs in pairs if ours != theirs), "")


def _run(gap: tuple[int, int, int]) -> tuple[int, int]:
    return gap[0], gap[1] + 1


_numbers = count()


def test_histories_of_a_stripe_object(store: Store, prefix: str, host: str) -> None:
    examples, steps = STEPS[host]
    run_state_machine_as_test(
        type("StripeHistory", (StripeMachine,), {"store": store, "prefix": prefix}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
