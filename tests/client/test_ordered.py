"""Logs that are ordered by their object: conditions, atomic batches, decisions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

import zlog
from zlog import aio
from zlog.limits import APPEND_ENTRIES_MAX

from .faulty import FaultyStore, loses_first


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    with zlog.Log.create(store, "orders", ordering="object", hole_timeout=0.05) as opened:
        yield opened


def everything(log: zlog.Log) -> list[tuple[bytes, tuple[str, ...]]]:
    return [(item.data, item.tags) for item in log.read_range() if isinstance(item, zlog.Entry)]


def test_append_expects_its_position(log: zlog.Log) -> None:
    assert log.append(b"first", expect=0) == 0
    with pytest.raises(zlog.Conflict, match="is 1, not 0") as refused:
        log.append_many([b"a", b"b"], expect=0)
    assert (refused.value.position, refused.value.tags) == (1, ())
    assert log.append_many([b"a", b"b"], expect=1) == [1, 2]
    with pytest.raises(zlog.Conflict):
        log.append(b"above the tail", expect=4)
    assert [data for data, _ in everything(log)] == [b"first", b"a", b"b"]


def test_entry_with_all_tags_of_a_set_conflicts(log: zlog.Log) -> None:
    log.append(b"0", tags=["course.7", "ann"])
    log.append(b"1", tags=["course.7"])
    log.append(b"2", tags=["bob"], unless=[["course.8"], ["bob"], ["course.7", "bob"]])
    with pytest.raises(zlog.Conflict) as refused:
        log.append(b"no", unless=[["course.8"], ["ann", "course.7"]])
    assert refused.value.position == 0
    assert {*refused.value.tags} == {"course.7", "ann"}
    assert log.append(b"3", unless=[["ann", "course.7"]], after=0) == 3
    with pytest.raises(zlog.Conflict) as refused:
        log.append_many([b"no", b"no"], unless=[["course.7"]], after=0)
    assert refused.value.position == 1
    with pytest.raises(zlog.BeyondTail, match="its tail is 4"):
        log.append(b"no", unless=[["course.7"]], after=4)
    assert len(everything(log)) == 4


def test_condition_reaches_into_ended_stripes(log: zlog.Log) -> None:
    log.append_many([b"0", b"1"], tags_each=[["a"], ["b"]])
    log.roll()
    log.append(b"2", tags=["c"])
    log.roll()
    for tag, position in (("a", 0), ("b", 1), ("c", 2)):
        with pytest.raises(zlog.Conflict) as refused:
            log.append(b"no", unless=[["x"], [tag]])
        assert refused.value.position == position
        assert log.append(b"yes", unless=[[tag]], after=position) == log.tail() - 1
    log.append(b"6", unless=[["x"]], after=0)


def test_trim_above_after_conflicts(log: zlog.Log) -> None:
    log.append_many([b"0", b"1", b"2"], tags=["a"])
    log.roll()
    log.append_many([b"3", b"4"], tags=["a"])
    log.trim_to(4)
    for after in (0, 1, 2):
        with pytest.raises(zlog.Conflict):
            log.append(b"no", unless=[["b"]], after=after)
    assert log.append(b"5", unless=[["b"]], after=3) == 5
    assert log.append(b"6", unless=[["b"]]) == 6
    log.roll()
    log.trim_to(7)
    assert log.append(b"7", unless=[["a"]]) == 7


def test_batch_is_stored_completely_or_not_at_all(log: zlog.Log) -> None:
    count = APPEND_ENTRIES_MAX
    assert log.append_many([b"x"] * count) == [*range(count)]
    with pytest.raises(zlog.EntryTooLarge, match="together"):
        log.append_many([b"x"] * (count + 1))
    with pytest.raises(zlog.EntryTooLarge, match="together"):
        log.append_many([b"x" * (1 << 20)] * 17)
    assert log.tail() == count


def test_condition_is_checked_before_anything_is_sent(log: zlog.Log, store: zlog.Store) -> None:
    with pytest.raises(TypeError, match="list of sets"):
        log.append(b"x", unless=["a"])
    with pytest.raises(ValueError, match="at least one tag"):
        log.append(b"x", unless=[[]])
    with pytest.raises(ValueError, match="up to 32"):
        log.append(b"x", unless=[["a"]] * 33)
    with pytest.raises(ValueError, match="so give both"):
        log.append(b"x", after=3)
    with pytest.raises(zlog.InvalidTag):
        log.append(b"x", unless=[[""]])
    with (
        zlog.Log.create(store, "shared") as shared,
        pytest.raises(zlog.AppendRefused, match="ordered by a sequencer") as refused,
    ):
        shared.append(b"x", expect=0)
    assert "--ordering object" in refused.value.hint
    assert log.tail() == 0


@pytest.mark.usefixtures("eager")
def test_full_stripe_ends_and_conditions_still_hold(store: zlog.Store) -> None:
    settings = {"ordering": "object", "stripe_records": 4}
    with zlog.Log.create(store, "small", **settings) as log:  # type: ignore[arg-type]
        for i in range(40):
            assert log.append(b"%d" % i, tags=[f"n.{i}"], unless=[[f"n.{i}"]], after=None) == i
        assert len(log.stripes()) > 4
        for i in range(40):
            with pytest.raises(zlog.Conflict) as refused:
                log.append(b"again", unless=[[f"n.{i}"]])
            assert refused.value.position == i


def test_mode_can_change_while_threads_append(log: zlog.Log, store: zlog.Store) -> None:
    done: list[int] = []
    failures: list[BaseException] = []
    ready = threading.Barrier(5)

    def append() -> None:
        try:
            with zlog.Log.open(store, "orders") as own:
                ready.wait()
                for i in range(60):
                    if i % 3:
                        done.append(own.append(b"%d" % i))
                    else:
                        done.extend(own.append_many([b"%d" % i] * 3))
        except BaseException as error:  # noqa: BLE001 - the test reports it
            failures.append(error)

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    ready.wait()
    for ordering in ("sequencer", "object", "sequencer"):
        log.reconfigure(ordering=ordering)
    for thread in threads:
        thread.join()
    assert not failures
    entries = [item for item in log.read_range() if isinstance(item, zlog.Entry)]
    assert sorted(done) == [entry.position for entry in entries]
    assert len(done) == 4 * (40 + 20 * 3)
    with pytest.raises(zlog.AppendRefused):
        log.append(b"x", expect=0)


SEATS = 5


def enrol(log: zlog.Log, course: int, student: int) -> bool:
    """Enrol a student in a course with five seats; a student takes two courses at most."""

    def decide(found: list[zlog.Entry]) -> list[tuple[bytes, list[str]]]:
        tags = [f"course.{course}", f"student.{student}"]
        full = sum(tags[0] in entry.tags for entry in found) >= SEATS
        busy = sum(tags[1] in entry.tags for entry in found) >= 2
        return [] if full or busy else [(b"enrolled", tags)]

    return bool(log.decide([[f"course.{course}"], [f"student.{student}"]], decide, attempts=100))


def test_decisions_of_many_threads_respect_limits(log: zlog.Log, store: zlog.Store) -> None:
    enrolled: list[tuple[int, int]] = []

    def work(first: int) -> None:
        with zlog.Log.open(store, "orders") as own:
            for student in range(first, first + 5):
                enrolled.extend(
                    (course, student) for course in range(3) if enrol(own, course, student)
                )

    threads = [threading.Thread(target=work, args=(number * 2,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = [tags for _, tags in everything(log)]
    assert len(stored) == len(enrolled) == 3 * SEATS
    for course in range(3):
        assert sum(f"course.{course}" in tags for tags in stored) == SEATS
    for student in range(11):
        assert sum(f"student.{student}" in tags for tags in stored) <= 2


def test_last_conflict_ends_a_decision(log: zlog.Log) -> None:
    calls = []

    def decide(found: list[zlog.Entry]) -> list[tuple[bytes, list[str]]]:
        calls.append(len(found))
        log.append(b"another", tags=["a"])
        return [(b"decided", ["a"])]

    with pytest.raises(zlog.Conflict) as refused:
        log.decide([["a"]], decide, attempts=3)
    assert calls == [0, 1, 2]
    assert refused.value.position == 2


async def test_tasks_share_operations_with_their_own_conditions(faulty: FaultyStore) -> None:
    async with await aio.Log.create(faulty, "orders", ordering="object", timeout=5) as log:
        await log.append(b"first", tags=["taken"])
        methods: list[str] = []
        faulty.fault = lambda _, method: methods.append(method)  # type: ignore[func-returns-value]
        outcomes = await asyncio.gather(
            *(
                log.append(b"%d" % i, tags=[f"n.{i % 50}"], unless=[[f"n.{i % 50}"], ["x"]])
                for i in range(100)
            ),
            *(log.append(b"no", unless=[["taken"]]) for _ in range(20)),
            *(log.append_many([b"a", b"b"], expect=p) for p in (1, 2)),
            return_exceptions=True,
        )
        assert methods.count("append") <= 8
        stored = [each for each in outcomes if isinstance(each, int)]
        conflicts = [each for each in outcomes if isinstance(each, zlog.Conflict)]
        assert sorted(stored) == [*range(1, 51)]
        assert len(conflicts) == 50 + 20 + 2
        assert await log.tail() == 51


async def test_lost_reply_leaves_the_outcome_unknown(faulty: FaultyStore) -> None:
    async with await aio.Log.create(faulty, "orders", ordering="object", timeout=0.2) as log:
        faulty.fault = loses_first("append")
        with pytest.raises(zlog.StoreTimeout) as lost:
            await log.append(b"x", expect=0)
        assert lost.value.positions == (None,)
        assert await log.tail() == 1


def test_append_once_and_reserved_positions_share_the_log(log: zlog.Log) -> None:
    log.append(b"0")
    assert log.append_once([b"1", b"2"], producer="p", sequence=1, in_order=True) == 2
    assert log.append(b"3", expect=3) == 3
    assert log.append_once([b"1", b"2"], producer="p", sequence=1, in_order=True) == 0
    assert [data for data, _ in everything(log)] == [b"0", b"1", b"2", b"3"]


def test_entries_that_exceed_a_request_are_sent_in_several(log: zlog.Log) -> None:
    futures = [log.submit(b"x" * (1 << 20)) for _ in range(20)]
    log.flush()
    assert [future.result() for future in futures] == [*range(20)]
    tags = [[f"{number}.{tag:0100}" for tag in range(20)] for number in range(600)]
    assert log.append_once([b"y"] * 600, producer="p", sequence=1, tags_each=tags) == 600


def test_idle_writer_appends_after_many_others_and_a_trim(
    memory: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog._append.ordered._KNOWN_SECONDS", 0.0)
    with zlog.Log.create(memory, "orders", ordering="object") as log:
        assert log.append(b"0") == 0
        for number in range(130):  # the object remembers 128 writers
            with zlog.Log.open(memory, "orders") as other:
                other.append(b"%d" % number)
        log.trim_to(131)
        assert log.append(b"again", expect=131) == 131


async def test_cancelled_sender_leaves_a_handle_that_works(faulty: FaultyStore) -> None:
    async with await aio.Log.create(faulty, "orders", ordering="object", timeout=5) as log:
        waiting = asyncio.ensure_future(log.append(b"0", expect=0))
        await asyncio.sleep(0)
        sender = log._shared._parts_sender
        assert sender is not None
        sender.cancel()
        with pytest.raises(zlog.StoreTimeout, match="interrupted"):
            await waiting
        assert await log.append(b"1", unless=[["a"]]) in (0, 1)


def test_interrupted_caller_takes_its_entry_back(
    log: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = log._shared
    shared._sending_parts = True  # as if another thread sent parts
    monkeypatch.setattr(shared, "_change", _Interrupted(shared._change))
    with pytest.raises(KeyboardInterrupt):
        log.append(b"interrupted", expect=0)
    monkeypatch.undo()
    shared._sending_parts = False
    assert log.append(b"later", expect=0) == 0


class _Interrupted:
    """A condition at which each wait is interrupted."""

    def __init__(self, change: threading.Condition) -> None:
        self._change = change

    def __enter__(self) -> None:
        self._change.__enter__()

    def __exit__(self, *_: object) -> None:
        self._change.__exit__(None, None, None)

    def wait(self) -> None:
        raise KeyboardInterrupt
