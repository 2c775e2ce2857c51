"""Compaction by key: the newest entry of each tag stays, older ones go with their space."""

from __future__ import annotations

import random
from typing import Any

import pytest

import zlog
from zlog import GapKind, Retention
from zlog._trim import compact

from .clocks import set_clocks
from .faulty import Died, FaultyStore, dies_at
from .test_unreadable import make_unreadable
from .transfers import mirrored

AT_ONCE = Retention(compact_after=0.0)

Written = dict[int, tuple[bytes, frozenset[str]]]


def updates(
    log: zlog.Log, count: int, keys: int, seed: int = 0, batch: int = 10, *, several: bool = True
) -> Written:
    """Append updates of keys; some entries have no tag, some two. What was written where."""
    source = random.Random(seed)
    written: Written = {}
    for first in range(0, count, batch):
        counts = [source.choice([0, 1, 1, 1, 2 if several else 1]) for _ in range(batch)]
        tags = [[*{f"k{source.randrange(keys)}" for _ in range(n)}] for n in counts]
        data = [b"%d" % (first + i) for i in range(batch)]
        positions = log.append_many(data, tags_each=tags)
        written.update(
            (p, (d, frozenset(t))) for p, d, t in zip(positions, data, tags, strict=True)
        )
    return written


def kept(written: Written, below: int = 1 << 62) -> Written:
    """What is left of it where all below a position was compacted."""
    newest: dict[str, int] = {}
    for position, (_, tags) in written.items():
        if position < below:
            newest.update((tag, max(position, newest.get(tag, 0))) for tag in tags)
    return {
        position: (data, tags)
        for position, (data, tags) in written.items()
        if position >= below or not tags or any(newest[tag] == position for tag in tags)
    }


def held(log: zlog.Log) -> Written:
    """What the log holds; what is gone is told as trimmed."""
    found: Written = {}
    at = 0
    for item in log.read_range():
        if isinstance(item, zlog.Gap):
            assert (item.position, item.kind) == (at, GapKind.TRIMMED)
        else:
            assert item.position == at
            found[item.position] = (item.data, frozenset(item.tags))
        at = item.end
    assert at == log.tail()
    return found


def check(log: zlog.Log, expected: Written) -> None:
    """All ways of reading find the same; and an audit finds nothing."""
    assert held(log) == expected
    tags = {tag for _, own in expected.values() for tag in own}
    for tag in sorted(tags)[:5]:
        own = [(p, data) for p, (data, t) in sorted(expected.items()) if tag in t]
        assert [(e.position, e.data) for e in log.read_range(tags={tag})] == own
        assert [(e.position, e.data) for e in log.read_range(tags={tag}, reverse=True)] == own[::-1]
        last = log.last(tag)
        assert last is not None
        assert last.position == own[-1][0]
    assert log.stat().entries == len(expected)
    assert list(log.check()) == []


def test_newest_entry_of_each_tag_is_kept(log: zlog.Log) -> None:
    written = updates(log, 400, 12)
    log.set_retention(AT_ONCE)
    assert log.apply_retention() == 0
    assert held(log) == kept(written)
    assert len(kept(written)) < 250
    report = log.retention_report()
    assert (report.compacted, report.compacting) == (log.tail(), False)
    check(log, kept(written))
    assert log.apply_retention() == 0  # nothing to do
    written.update(updates(log, 100, 12, seed=1))
    log.apply_retention()
    check(log, kept(written))


def test_stripes_without_entries_are_removed(log: zlog.Log) -> None:
    for width in (2, 3, 2):
        log.append_many([b"x"] * 40, tags_each=[[f"k{n % 5}"] for n in range(40)])
        log.reconfigure(width=width)
    log.set_retention(AT_ONCE)
    cursor = log.cursor("slow", create=60)
    assert (log.apply_retention(), log.stat().stripes) == (40, 3)
    cursor.remove()
    assert (log.apply_retention(), log.stat().stripes) == (80, 2)
    assert [entry.position for entry in log.read_range(80) if isinstance(entry, zlog.Entry)] == [
        *range(115, 120)
    ]
    assert log.apply_retention() == 80


def test_young_entries_are_kept(log: zlog.Log) -> None:
    log.set_retention(Retention(compact_after=60.0))
    set_clocks(log, 0)
    written = updates(log, 100, 5)
    log.apply_retention()
    end = log.tail()
    set_clocks(log, 50)
    written.update(updates(log, 50, 5, seed=1))
    log.apply_retention()
    assert held(log) == written
    set_clocks(log, 70)
    log.apply_retention()
    assert held(log) == kept(written, end)
    set_clocks(log, 200)
    log.apply_retention()
    assert held(log) == kept(written)


def test_tags_of_pass_are_limited(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "_TAGS_MAX", 10)
    monkeypatch.setattr(compact, "_WINDOW", 8)
    passes: list[int] = []
    note = compact._note

    async def noted(layout: Any, progress: Any, deadline: Any) -> None:
        passes.append(progress.done)
        await note(layout, progress, deadline)

    monkeypatch.setattr(compact, "_note", noted)
    written = updates(log, 400, 60, several=False)
    log.set_retention(AT_ONCE)
    log.apply_retention()
    assert len({*passes}) > 2
    check(log, kept(written))
    written.update(updates(log, 200, 60, seed=1))
    log.apply_retention()
    assert kept(written).items() <= held(log).items() <= written.items()


def test_the_newest_entry_survives_a_crash_at_any_operation() -> None:
    """At any operation; the next one finishes, and nothing else is gone."""

    def prepare(store: zlog.Store) -> Written:
        with zlog.Log.create(store, "log", width=2, stripe_unit=4) as log:
            written = updates(log, 60, 6)
            log.reconfigure(width=1)
            written.update(updates(log, 60, 6, seed=1))
            log.set_retention(AT_ONCE)
        return written

    def work(store: zlog.Store) -> None:
        with zlog.Log.open(store, "log") as log:
            log.apply_retention()

    with zlog.connect("mem://") as probe:
        written = prepare(probe)
        counting = FaultyStore(probe, lambda *_: None)
        work(counting)
        assert counting.operations > 10
    for fault in ("die", "twice"):
        for number in range(counting.operations):
            with zlog.connect("mem://") as store:
                prepare(store)
                if fault == "die":
                    with pytest.raises(Died):
                        work(FaultyStore(store, dies_at(number)))
                else:
                    work(FaultyStore(store, lambda at, _, n=number: "twice" if at == n else None))
                with zlog.Log.open(store, "log") as log:
                    found = held(log)
                    assert kept(written).items() <= found.items() <= written.items()
                    log.apply_retention()
                    check(log, kept(written))


def test_concurrent_compactions_agree(store: zlog.Store, log: zlog.Log) -> None:
    """Another one does it all before each step of the first, and more is appended."""
    log.set_retention(AT_ONCE)
    written = updates(log, 60, 5)
    seed = 0

    def fault(_: int, method: str) -> None:
        nonlocal seed
        if method in ("tags_list", "compact", "tags_rebuild") and seed < 8:
            seed += 1
            written.update(updates(log, 10, 5, seed))
            log.apply_retention()

    with zlog.Log.open(FaultyStore(store, fault), "orders") as slow:
        slow.apply_retention()
    assert seed > 2
    log.apply_retention()
    check(log, kept(written))


def test_exclusive_log_is_compacted_while_written(log: zlog.Log) -> None:
    written: Written = {}
    log.set_retention(AT_ONCE)
    with log.writer() as writer:
        for i in range(60):
            tags = frozenset({f"k{i % 7}"})
            written[writer.append(b"%d" % i, tags=tags)] = (b"%d" % i, tags)
            if i % 20 == 19:
                log.apply_retention()
                assert held(log) == kept(written)


def test_mirror_is_not_compacted(log: zlog.Log, target: zlog.Store) -> None:
    written = updates(log, 60, 3)
    log.set_retention(AT_ONCE)
    mirrored(log, target, "orders")
    with zlog.Log.open(target, "orders") as copy:
        assert copy.retention == AT_ONCE
        copy.apply_retention()
        assert held(copy) == written


def test_large_superseded_batches_are_compacted(memory: zlog.Store) -> None:
    """More of them than one call of an object takes."""
    with zlog.Log.create(memory, "orders", width=1) as log:
        for _ in range(3):
            log.append_many([b""] * 30_000, tags_each=[[f"k{i % 5}"] for i in range(30_000)])
        log.set_retention(AT_ONCE)
        log.apply_retention()
        assert [p for p, _ in sorted(held(log).items())] == [*range(89_995, 90_000)]


def test_unreadable_entry_keeps_its_stripe(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=1) as log:
        for _ in range(4):
            log.append(b"x", tags=("k",))
        make_unreadable(log, 2)
        log.reconfigure(width=2)
        log.append(b"newest", tags=("k",))
        log.set_retention(AT_ONCE)
        assert log.apply_retention() == 0
        kinds = [item.kind for item in log.read_range(0, 4) if isinstance(item, zlog.Gap)]
        assert kinds == [GapKind.TRIMMED, GapKind.UNREADABLE, GapKind.TRIMMED]


class _Clock:
    """Steps on with each look at it."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize("step", [0.2, 0.7, 3.0])
def test_the_next_call_continues_after_a_time_out(
    memory: zlog.Store, step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "_WINDOW", 8)
    monkeypatch.setattr(compact, "_OBJECTS_AT_ONCE", 1)
    with zlog.Log.create(memory, "log", width=3, stripe_unit=4) as log:
        written = updates(log, 300, 20, several=False)
        log.reconfigure(width=2)
        written.update(updates(log, 100, 20, seed=1, several=False))
        log.set_retention(AT_ONCE)
        io = log._client.io
        calls = 0
        while log.retention_report().compacted < log.tail():
            monkeypatch.setattr(io, "monotonic", _Clock(step))
            log.apply_retention(timeout=60.0)
            monkeypatch.undo()
            monkeypatch.setattr(compact, "_WINDOW", 8)
            monkeypatch.setattr(compact, "_OBJECTS_AT_ONCE", 1)
            now = held(log)
            assert kept(written).items() <= now.items() <= written.items()
            calls += 1
            assert calls < 300
        assert held(log) == kept(written)
        assert not log.retention_report().compacting
        assert calls > 1 or step < 1


def test_the_next_call_continues_after_a_time_out_between_passes(
    memory: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also to entries with several tags whose newer ones were found by different passes."""
    monkeypatch.setattr(compact, "_WINDOW", 8)
    with zlog.Log.create(memory, "log", width=3, stripe_unit=4) as log:
        log.set_retention(AT_ONCE)
        written = updates(log, 200, 40)
        log.apply_retention()
        written.update(updates(log, 50, 40, seed=1))
        with monkeypatch.context() as patch:
            patch.setattr(compact, "_OBJECTS_AT_ONCE", 1)
            patch.setattr(log._client.io, "monotonic", _Clock(0.6))
            log.apply_retention(timeout=60.0)
        assert log.retention_report().compacting
        log.apply_retention()
        assert held(log) == kept(written)
