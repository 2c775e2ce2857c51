"""Readers of tags find what readers of everything find: entries, gaps, both directions, streams.

`ZLOG_STREAM_HISTORIES=200` before pytest runs as many random histories on each host.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

import pytest

import zlog
from zlog import Entry, Gap, GapKind
from zlog._native import messages
from zlog._read.select import Match

from ..support import logs
from ..support.logs import leave_hole
from ..support.sequencer import SequencerProcess
from ..support.threads import at_once

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
def test_readers_of_tags_find_what_readers_of_everything_find(
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
    assert list(log.read_range(reverse=True)) == everything[::-1]
    assert log.last() == entries_of(everything)[-1]


@pytest.mark.parametrize("store_url", ["mem", "embedded"], indirect=True)  # with a sequencer
def test_a_hole_may_hide_an_entry_and_is_waited_for(log: zlog.Log) -> None:
    log.append(b"before", tags=("a",))
    (hole,) = log.reserve(1)
    log.append(b"after", tags=("a",))
    followed = log.follow(tags=("a",), hole_timeout=None)
    assert next(followed).data == b"before"
    log.write(hole, b"late")
    assert next(followed).data == b"after"
    leave_hole(log)
    log.append(b"last", tags=("a",))
    found = list(log.read_range(tags=("a",), hole_timeout=0))
    assert [entry.data for entry in entries_of(found)] == [b"before", b"after", b"last"]
    with pytest.raises(zlog.Invalidated):
        log.read(hole + 2)  # a reader of tags has filled it, too


def test_an_object_that_was_trimmed_further_than_the_log(memory: zlog.Store) -> None:
    """As a hostile client may do: readers end, and find what is there."""
    with zlog.Log.create(memory, "orders", width=1) as log:
        log.append_many([b"%d" % i for i in range(4)], tags=("a",))
        request = messages.trim_to(log.view.epoch, 2, 10)
        assert memory.execute(log.view.object_of(0).name, "trim_to", request)[0] == 0
        found = [entry.data for entry in log.read_range(tags=("a",)) if isinstance(entry, Entry)]
        assert found == [b"2", b"3"]
        back = log.read_range(tags=("a",), reverse=True)
        assert [entry.data for entry in back if isinstance(entry, Entry)] == [b"3", b"2"]


def test_a_stream_reads_as_a_log_of_its_own(log: zlog.Log) -> None:
    cart, audit = log.stream("cart.17"), log.stream("audit")
    assert (cart.first(), cart.last(), cart.tail()) == (None, None, 0)
    first = cart.append(b"add apples")
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
    with pytest.raises(TypeError, match="not one"):
        log.stream("cart").append(b"x", tags="eu")
    with pytest.raises(TypeError, match="not one"):
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
def test_asking_wrongly_is_told(log: zlog.Log, arguments: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        log.read_range(**arguments)


HISTORIES = int(os.environ.get("ZLOG_STREAM_HISTORIES", "8"))
WRITERS, READERS, FOLLOWERS = 2, 2, 1
MATCHES: tuple[Match, Match] = ("any", "all")

COMMON = [f"common.{i}" for i in range(60)]
"""Tags of all entries of a history: with so many, 274 entries make a chunk of the index."""

LAST = "last"
"""The tag of the last entry of a history."""


@dataclass
class Question:
    """What a reader asked for while writers wrote, and which entries it was told of."""

    tags: Sequence[str]
    match: Match
    start: int
    end: int
    told: list[Entry] = field(default_factory=list)

    def fits(self, entry: Entry) -> bool:
        """Whether a reader of everything that finds this entry keeps it."""
        test = all if self.match == "all" else any
        wanted = test(tag in entry.tags for tag in self.tags)
        return wanted and self.start <= entry.position < self.end

    def check(self, everything: Sequence[Entry | Gap]) -> None:
        """Compare with what a reader of everything finds in the end."""
        expected = [entry for entry in entries_of(everything) if self.fits(entry)]
        left = {entry.position for entry in expected}
        assert [entry for entry in self.told if entry.position in left] == expected
        assert all(map(self.fits, self.told))
        gone = {entry.position for entry in self.told} - left
        gaps = [item for item in everything if isinstance(item, Gap)]
        trimmed = [gap for gap in gaps if gap.kind is GapKind.TRIMMED]
        assert all(any(gap.position <= at < gap.end for gap in trimmed) for at in gone)


class StreamHistory:
    """Writers, readers by tags and changes of the width, at random, at the same time."""

    def __init__(self, store: zlog.Store, seed: int) -> None:
        chance = random.Random(seed)
        self._seed = seed
        self._store = store
        self._name = f"history-{seed}"
        self._common = COMMON if chance.random() < 0.5 else []
        self._width_max = 2 if self._common else 5
        self._writing = WRITERS
        self._lock = threading.Lock()
        self._questions: list[Question] = []
        records = None if self._common else chance.choice((None, 40))
        width = chance.randint(1, self._width_max)
        stripe_unit = chance.choice(logs.UNITS)
        zlog.Log.create(
            store, self._name, width=width, stripe_unit=stripe_unit, stripe_records=records
        ).close()

    def run(self) -> int:
        """Run it, and compare; returns how many tags the indexes have in the end."""
        at_once(self._work, WRITERS + READERS + FOLLOWERS)
        with zlog.Log.open(self._store, self._name, hole_timeout=0.0) as log:
            everything = list(log.read_range())
            for _ in range(10):
                self._ask(log, random.Random(self._seed))
            for question in self._questions:
                question.check(everything)
            for tag in STREAMS:
                with_it = [entry for entry in entries_of(everything) if tag in entry.tags]
                assert log.last(tag) == (with_it[-1] if with_it else None)
            return indexed(log)

    def _work(self, number: int) -> None:
        chance = random.Random(f"{self._seed}.{number}")
        with zlog.Log.open(self._store, self._name, hole_timeout=0.02) as log:
            if number < WRITERS:
                try:
                    self._write(log, chance)
                finally:
                    self._end(log)
            elif number < WRITERS + READERS:
                while self._writing:
                    self._ask(log, chance)
            else:
                self._follow(log, chance)

    def _write(self, log: zlog.Log, chance: random.Random) -> None:
        for _ in range(14):
            count = chance.choice((1, 5, 50, 150 if self._common else 1))
            entries = [chance.randbytes(chance.choice((0, 20, 3_000))) for _ in range(count)]
            tags = [self._tags(chance) for _ in range(count)]
            if count > 1:
                log.append_many(entries, tags_each=tags)
            else:
                log.append(entries[0], tags=tags[0])
            act = chance.randrange(16)
            if act < 2:
                log.reconfigure(
                    width=chance.randint(1, self._width_max), stripe_unit=chance.choice(logs.UNITS)
                )
            elif act < 5:
                logs.leave_hole(log, chance.randint(1, 5))
            elif act < 7:
                self._write_late(log, chance)
            elif act == 7:
                log.trim(chance.randrange(log.tail()))
            elif act == 8:
                log.trim_to(chance.randrange(log.tail()) // 2)

    def _write_late(self, log: zlog.Log, chance: random.Random) -> None:
        """Write to reserved positions in any order, unless a reader was faster."""
        try:
            reserved = [*log.reserve(4)]
        except zlog.SequencerUnavailable:
            return
        log.append(b"behind them", tags=self._tags(chance))
        for position in chance.sample(reserved, 3):
            with suppress(zlog.Invalidated):
                log.write(position, b"late", tags=self._tags(chance))

    def _tags(self, chance: random.Random) -> list[str]:
        return [*chance.sample(STREAMS, chance.choice((0, 1, 1, 3))), *self._common]

    def _end(self, log: zlog.Log) -> None:
        with self._lock:
            self._writing -= 1
        if not self._writing:
            log.append(b"", tags=(LAST,))

    def _ask(self, log: zlog.Log, chance: random.Random) -> None:
        tail = log.tail()
        start = chance.choice((0, chance.randrange(tail + 1)))
        question = Question(
            chance.sample(STREAMS, chance.choice((1, 1, 2))), chance.choice(MATCHES), start, tail
        )
        reverse = chance.random() < 0.4
        items = log.read_range(
            start, tail, tags=question.tags, match=question.match, reverse=reverse
        )
        question.told = entries_of(items)[:: -1 if reverse else 1]
        self._questions.append(question)

    def _follow(self, log: zlog.Log, chance: random.Random) -> None:
        question = Question([*chance.sample(STREAMS, 2), LAST], "any", 0, 0)
        for item in log.follow(tags=question.tags):
            if isinstance(item, Entry):
                question.told.append(item)
                if LAST in item.tags:
                    question.end = item.end
                    break
        self._questions.append(question)


def indexed(log: zlog.Log) -> int:
    """How many tags the indexes of the log's objects have, which an audit finds right."""
    assert [finding for finding in log.check() if finding.serious] == []
    count = 0
    for stripe in log.view.stripes:
        for ref in log.view.objects(stripe):
            request = messages.tags_check(log.view.epoch, 0, log.tail())
            code, reply = log.store.execute(ref.name, "tags_check", request)
            if code == 0:
                count += messages.tags_check_reply(reply).tags
    return count


def test_random_histories(store: zlog.Store, host: str) -> None:
    """What a reader by tags is told is what a reader of everything finds of them.

    On Ceph a fourth of the histories have no sequencer.
    """
    alone = HISTORIES // 4 if host == "ceph" else 0
    tags = [StreamHistory(store, seed).run() for seed in range(alone)]
    with SequencerProcess(store.url) if host == "ceph" else nullcontext():
        tags += [StreamHistory(store, seed).run() for seed in range(alone, HISTORIES)]
    assert any(tags)  # chunks of indexes were there to go by
