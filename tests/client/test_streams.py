"""A stream is the same by its tag as by reading everything, also while writers write.

`ZLOG_STREAM_HISTORIES=200` before pytest runs as many random histories on each host.
"""

from __future__ import annotations

import os
import random
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

import zlog
from zlog import Entry, Gap, GapKind
from zlog._native import messages
from zlog._read.select import Match

from ..support import logs
from ..support.sequencer import SequencerProcess
from ..support.threads import at_once

HISTORIES = int(os.environ.get("ZLOG_STREAM_HISTORIES", "8"))
WRITERS, READERS, FOLLOWERS = 2, 2, 1
MATCHES: tuple[Match, Match] = ("any", "all")

STREAMS = [f"stream.{i}" for i in range(6)]
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
        unit = chance.choice(logs.UNITS)
        zlog.Log.create(store, self._name, width=width, unit=unit, stripe_records=records).close()

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
                    width=chance.randint(1, self._width_max), unit=chance.choice(logs.UNITS)
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


def entries_of(items: Iterable[Entry | Gap]) -> list[Entry]:
    return [item for item in items if isinstance(item, Entry)]


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


def test_streams_that_are_appended_to_at_once(store: zlog.Store, log: zlog.Log) -> None:
    """Each is in order and complete, from any position on, and in a handle that is opened later."""
    chance = random.Random(0)
    names = [f"s{i}" for i in range(400)]
    held: dict[str, list[tuple[int, bytes]]] = defaultdict(list)

    def note(positions: Iterable[int], entries: Sequence[bytes], tags: Sequence[list[str]]) -> None:
        for position, entry, own in zip(positions, entries, tags, strict=True):
            for name in own:
                held[name].append((position, entry))

    for number in range(60):
        count = chance.choice((1, 3, 100))
        entries = [b"%d.%d" % (number, i) for i in range(count)]
        tags = [chance.sample(names, chance.randint(0, 8)) for _ in range(count)]
        if count == 1 and tags[0]:
            first, *others = tags[0]
            note([log.stream(first).append(entries[0], tags=others)], entries, tags)
        else:
            note(log.append_many(entries, tags_each=tags), entries, tags)
        if number in (20, 40):
            log.reconfigure(width=number // 20 + 1)
    tail = log.tail()
    with zlog.Log.open(store, log.name) as again:
        for name in chance.sample(names, 25):
            expected = held[name]
            assert expected
            stream = again.stream(name)
            assert [(e.position, e.data) for e in entries_of(stream.read_range())] == expected
            for start in (expected[0][0] + 1, expected[-1][0], *chance.choices(range(tail), k=3)):
                found = [(e.position, e.data) for e in entries_of(stream.read_range(start))]
                assert found == [each for each in expected if each[0] >= start]
            first, last = stream.first(), stream.last()
            assert first is not None
            assert last is not None
            assert (first.position, last.position) == (expected[0][0], expected[-1][0])
            assert stream.tail() == last.end
        none = again.stream("none")
        assert (none.first(), none.last(), none.tail()) == (None, None, 0)
