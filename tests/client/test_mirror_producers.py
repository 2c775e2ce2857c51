"""Exactly-once producers of a log that is lost, and of its mirror, which is promoted."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator

import pytest

import zlog
from zlog import Origin, SequenceDiffers, SequenceSuperseded
from zlog._base.options import PROMOTED_FROM

from ..support.logs import data_of
from .faulty import Died, FaultyStore, Refusing
from .transfers import exported, imported, mirrored

ROWS = [b"%d" % i for i in range(20)]
PRODUCERS = ("a", "b", "c")


@pytest.fixture
def target() -> Iterator[zlog.Store]:
    with zlog.connect("mem://") as store:
        yield store


@pytest.fixture
def source(memory: zlog.Store) -> zlog.Log:
    return zlog.Log.create(memory, "orders", width=3)


def promoted(store: zlog.Store, name: str = "orders") -> zlog.Log:
    log = zlog.Log.open(store, name, hole_timeout=0.01)
    log.promote()
    return log


def test_promoted_mirror_appends_only_what_it_lacks(source: zlog.Log, store: zlog.Store) -> None:
    source.append_once(ROWS, producer="query", sequence=1)
    source.complete_sequences("query", before=2)
    source.append_once(ROWS[:7], producer="query", sequence=2, part=5)
    mirrored(source, store, "orders")
    source.append_once(ROWS[:12], producer="query", sequence=2, part=5)
    first = promoted(store)
    with pytest.raises(SequenceSuperseded):
        first.append_once(ROWS, producer="query", sequence=1)
    assert first.append_once(ROWS, producer="query", sequence=2, part=5) == 13
    assert first.append_once(ROWS[:4], producer="new", sequence=0) == 4
    with zlog.connect("mem://") as another:
        mirrored(first, another, "orders")
        second = promoted(another)
        assert second.append_once(ROWS[::-1], producer="query", sequence=2, part=5) == 0
        assert second.append_once(ROWS[:5], producer="new", sequence=0) == 1
        assert second.view.promoted_from == (
            Origin(source.view.log_id, 27),
            Origin(first.view.log_id, 44),
        )
        assert second.view.common_end(source.view.log_id) == 27
        assert list(second.check()) == []


def test_origin_of_a_mirrored_mirror(source: zlog.Log, memory: zlog.Store) -> None:
    """The mirror in between is promoted while it is copied."""
    source.append_many(ROWS)
    mirrored(source, memory, "between")
    between = zlog.Log.open(memory, "between")
    step = zlog.mirror_log(between, memory, "last", follow=True)
    assert [next(step), next(step)] == [0, 20]
    assert zlog.Log.open(memory, "last").view.common_end(source.view.log_id) is None
    between.promote()
    between.append(b"own")
    assert next(step) == 21
    last = promoted(memory, "last")
    assert last.view.common_end(source.view.log_id) == 20
    assert last.view.common_end(between.view.log_id) == 21
    imported(memory, "file", exported(last))
    assert zlog.Log.open(memory, "file").view.promoted_from == ()
    with pytest.raises(ValueError, match="reserved"):
        last.reconfigure(options={PROMOTED_FROM: None})


@pytest.mark.parametrize("first", ["between", "last"])
def test_promoted_mirror_of_a_mirror_finds_entries(
    first: str, source: zlog.Log, memory: zlog.Store
) -> None:
    source.append_once(ROWS, producer="query", sequence=1)
    mirrored(source, memory, "between")
    mirrored(zlog.Log.open(memory, "between"), memory, "last")
    if first == "between":
        promoted(memory, "between").append(b"own")
        mirrored(zlog.Log.open(memory, "between"), memory, "last")
    last = promoted(memory, "last")
    assert last.append_once(ROWS, producer="query", sequence=1) == 0
    assert last.view.common_end(source.view.log_id) == len(ROWS)
    with pytest.raises(ValueError, match="reserved"):
        zlog.Log.create(memory, "new", options={PROMOTED_FROM: "a@b"})


@pytest.mark.parametrize("method", ["producer_parts", "producer_copy"])
def test_older_class_is_copied_without_records(
    method: str, source: zlog.Log, target: zlog.Store, caplog: pytest.LogCaptureFixture
) -> None:
    source.append_once(ROWS, producer="query", sequence=1)
    store = source.store if method == "producer_parts" else target
    older = Refusing(store, method)
    log = zlog.Log.open(older, "orders") if store is not target else source
    assert mirrored(log, older if store is target else target, "orders") == len(ROWS)
    assert "repeated appends may be in it twice" in caplog.text
    assert promoted(target).append_once(ROWS, producer="query", sequence=1) == len(ROWS)


def test_steps_without_new_writers_read_no_records(source: zlog.Log, target: zlog.Store) -> None:
    source.append_once(ROWS, producer="query", sequence=1)
    called: list[str] = []
    watched = FaultyStore(source.store, lambda _, method: called.append(method))
    step = zlog.mirror_log(zlog.Log.open(watched, "orders"), target, follow=True)
    source.append(b"")
    assert [next(step), next(step)] == [0, 21]
    called.clear()
    for number in range(22, 32):
        source.append(b"")
        assert next(step) == number
    assert not any(method.startswith("delivery_") for method in called)


class Job:
    """What a job's checkpoint knows: its number, its parts, and which numbers are complete."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sequence = 0
        self.complete: list[int] = []

    def rows(self, sequence: int, part: int) -> list[bytes]:
        return [b"%s.%d.%d.%d" % (self.name.encode(), sequence, part, n) for n in range(5)]

    def step(self, store: zlog.Store, chance: random.Random) -> None:
        """Append a part or some of it, or go on to the next number."""
        with zlog.Log.open(store, "orders", hole_timeout=0.01) as log:
            part = chance.randrange(2)
            if chance.random() < 0.8:
                rows = self.rows(self.sequence, part)[: chance.choice((2, 5))]
                with contextlib.suppress(SequenceDiffers):  # all five are there
                    log.append_once(rows, producer=self.name, sequence=self.sequence, part=part)
                return
            self.repeat(log)
            # A job that goes on at the mirror declares complete what was lost, too.
            self.complete = [] if log.view.promoted_from else [*self.complete, self.sequence]
            self.sequence += 1
            log.complete_sequences(self.name, before=self.sequence)
            if chance.random() < 0.3:
                log.forget_producer(self.name)  # its numbers may begin again
                self.complete = []

    def repeat(self, log: zlog.Log) -> None:
        for part in range(2):
            rows = self.rows(self.sequence, part)
            log.append_once(rows, producer=self.name, sequence=self.sequence, part=part)


class Failover:
    """Copies with interruptions while jobs append. The source is lost at any call."""

    def __init__(self, seed: int, old: zlog.Store, new: zlog.Store) -> None:
        self.chance = random.Random(seed)
        self.jobs = [Job(name) for name in self.chance.sample(PRODUCERS, 3)]
        self.old, self.new = old, new
        self.lost = False
        self.left = -1  # calls until it is lost

    def disturbed(self, store: zlog.Store, depth: int) -> FaultyStore:
        """A store to a process that stands still while others go on, or dies."""
        chance = self.chance

        def fault(*_: object) -> str | None:
            self.left -= 1
            if self.left == 0:
                self.lost = True
                promoted(self.new)
            if depth < 1 and chance.random() < 0.05:
                self.copy(depth + 1)
            for job in self.jobs:
                if chance.random() < 0.03:
                    job.step(self.new if self.lost else self.old, chance)
            return "die" if chance.random() < 0.005 else None

        return FaultyStore(store, fault, share_sequencer=False)

    def copy(self, depth: int = 0) -> None:
        """Copy up to the tail, unless it dies."""
        try:
            old, new = self.disturbed(self.old, depth), self.disturbed(self.new, depth)
            log, source = (
                zlog.Log.open(each, "orders", hole_timeout=0.01) for each in (old, self.old)
            )
            for tail in zlog.mirror_log(log, new, follow=True):
                if tail >= source.tail():
                    break
                if not self.lost:
                    self.chance.choice(self.jobs).step(self.old, self.chance)
        except Died:
            pass
        except zlog.CopyDiffers:
            assert self.lost

    def run(self) -> None:
        mirrored(zlog.Log.create(self.old, "orders", width=2), self.new, "orders")
        for turn in range(3):
            for job in self.jobs:
                job.step(self.old, self.chance)
            if turn == 2:
                self.left = self.chance.randrange(5, 80)
            self.copy()
        mirror = promoted(self.new)
        for job in self.jobs:
            job.repeat(mirror)
        found = Counter(data_of(mirror.read_range()))
        assert max(found.values()) == 1, found
        for job in self.jobs:
            assert all(found[row] for part in range(2) for row in job.rows(job.sequence, part))
            for sequence in job.complete:
                try:
                    mirror.append_once([], producer=job.name, sequence=sequence)
                except SequenceSuperseded:
                    assert all(found[row] for row in job.rows(sequence, 0)), sequence
                except SequenceDiffers:
                    pass  # it is not complete here, and its entries were found
        assert list(mirror.check()) == []


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlog._transfer.pieces._ROUND_POSITIONS", 3)
    monkeypatch.setattr("zlog._transfer.pieces._ROUND_PIECES", 2)


@pytest.mark.usefixtures("small")
def test_no_entry_is_twice_or_missing_after_any_failover() -> None:
    for seed in range(150):
        with zlog.connect("mem://") as old, zlog.connect("mem://") as new:
            try:
                Failover(seed, old, new).run()
            except BaseException as error:
                raise AssertionError(f"seed {seed}") from error
