"""What the library's own test cases do not catch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.dcb.api import DCBAppendCondition, DCBEvent, DCBQuery, DCBQueryItem
from eventsourcing.dcb.popo import InMemoryDCBRecorder
from eventsourcing.persistence import (
    DatabaseError,
    DataError,
    IntegrityError,
    OperationalError,
    ProgrammingError,
    StoredEvent,
)
from eventsourcing.popo import POPOApplicationRecorder
from hypothesis import given, settings
from hypothesis import strategies as st

import zlog
from zlog.eventsourcing import ZlogApplicationRecorder, ZlogDCBRecorder, ZlogFactory

from ..client.faulty import FaultyStore
from ..docs.pages import DOCS
from ..docs.test_docs import python_blocks, run

LONG = "ü" * 200
MANY = [f"type {i}" for i in range(40)]


@contextmanager
def new_log() -> Iterator[zlog.Log]:
    with zlog.connect("mem://") as store, zlog.Log.create(store, "l", ordering="object") as opened:
        yield opened


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except IntegrityError:
        return IntegrityError


TYPES = st.sampled_from(["a", "b", "tag:a", LONG, LONG + "2"])
ITEMS = st.builds(
    DCBQueryItem,
    st.lists(TYPES, max_size=2) | st.just([*MANY, "a"]),
    st.lists(TYPES, max_size=2),
)
QUERIES = st.builds(DCBQuery, st.lists(ITEMS, max_size=3))
EVENTS = st.builds(DCBEvent, TYPES, st.binary(max_size=3), st.lists(TYPES, max_size=3))


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_dcb_recorder_equals_the_librarys_own(data: st.DataObject) -> None:
    other = InMemoryDCBRecorder()
    with new_log() as log:
        recorder = ZlogDCBRecorder(log)
        for _ in range(data.draw(st.integers(1, 8))):
            after = data.draw(st.none() | st.integers(0, len(other.events)))
            query = data.draw(QUERIES)
            events = data.draw(st.lists(EVENTS, min_size=1, max_size=3))
            condition = data.draw(st.none() | st.just(DCBAppendCondition(query, after)))
            new = outcome(recorder.append, events, condition)
            assert new == outcome(other.append, events, condition)
            options = {"after": after, "limit": data.draw(st.none() | st.integers(0, 3))}
            mine, others = (each.read(query, **options) for each in (recorder, other))
            assert ([*mine], mine.head) == ([*others], others.head)


IDS = st.sampled_from([UUID(int=7), UUID(int=8), "x", "x 1", LONG, LONG + "2"])
BOUNDS = (None, 0, 1, 2)


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_application_recorder_equals_the_librarys_own(data: st.DataObject) -> None:
    other = POPOApplicationRecorder()
    with new_log() as log:
        recorder = ZlogApplicationRecorder(log)
        versions: dict[object, int] = {}
        for _ in range(data.draw(st.integers(1, 6))):
            events = []
            for id_ in data.draw(st.lists(IDS, max_size=4)):
                version = versions.get(id_, 0) + data.draw(st.sampled_from([1, 1, 1, 1, 0]))
                versions[id_] = version
                state = data.draw(st.sampled_from([b"", b"\n[]", b"\xff"]))
                events.append(StoredEvent(id_, version, data.draw(TYPES), state))
            new = outcome(recorder.insert_events, events)
            assert new == outcome(other.insert_events, events)
            noted = other.select_notifications(None, 100)
            versions = {each.originator_id: each.originator_version for each in noted}
        assert recorder.max_notification_id() == other.max_notification_id()
        for id_, gt, lte, desc, limit in product(
            versions, BOUNDS, BOUNDS, (False, True), (None, 1)
        ):
            selected = {"gt": gt, "lte": lte, "desc": desc, "limit": limit}
            assert recorder.select_events(id_, **selected) == other.select_events(id_, **selected)
        wanted = {
            "start": data.draw(st.none() | st.integers(-1, 6)),
            "limit": data.draw(st.integers(1, 6)),
            "stop": data.draw(st.none() | st.integers(-1, 6)),
            "topics": data.draw(st.lists(TYPES, max_size=2)),
            "inclusive_of_start": data.draw(st.booleans()),
        }
        assert recorder.select_notifications(**wanted) == other.select_notifications(**wanted)


def event(version: int, id_: str = "x") -> StoredEvent:
    return StoredEvent(id_, version, "topic", b"")


@pytest.mark.parametrize("id_", ["x", "x {}"], ids=["of an aggregate", "of many aggregates"])
def test_many_events_are_unique_despite_a_race(log: zlog.Log, id_: str) -> None:
    """One condition cannot name the events, and another client inserts one of them meanwhile."""
    recorder, other = ZlogApplicationRecorder(log), ZlogApplicationRecorder(log)
    events = [event(version, id_.format(version)) for version in range(50)]
    tail = log.tail

    def overtaken() -> int:
        found = tail()
        if found < 3:
            other.insert_events([event(found, "unrelated"), events[found + 40]])
        return found

    log.tail = overtaken  # type: ignore[method-assign]
    other.insert_events([event(0, "old")])
    with pytest.raises(IntegrityError, match="position 3"):
        recorder.insert_events(events)
    assert tail() == 3
    assert recorder.insert_events(events[:41]) == [*range(4, 45)]


def test_history_is_not_read_past_a_lost_event(log: zlog.Log, monkeypatch: Any) -> None:
    recorder = ZlogApplicationRecorder(log)
    recorder.insert_events([event(1), event(2)])
    lost = zlog.Gap(0, 1, zlog.GapKind.LOST)
    monkeypatch.setattr(log, "read_range", lambda *_, **__: iter([lost]))
    with pytest.raises(DatabaseError, match="position 0"):
        recorder.select_events("x")


def test_notifications_continue_after_trimmed_events(log: zlog.Log) -> None:
    recorder = ZlogApplicationRecorder(log)
    recorder.insert_events([event(version) for version in range(1, 21)])
    log.trim_to(15)
    assert [each.id for each in recorder.select_notifications(1, 3)] == [16, 17, 18]
    assert recorder.insert_events([event(1, "y")]) == [21]
    log.trim_to(21)
    assert recorder.insert_events([event(21)]) == [22]


def test_next_event_of_a_known_aggregate_is_one_request() -> None:
    """Ended stripes are not searched, as they are for the first event."""
    methods: list[str] = []
    with zlog.connect("mem://") as store:
        counting = FaultyStore(store, lambda _, method: methods.append(method))  # type: ignore[func-returns-value]
        options = {"ordering": "object", "stripe_records": 10}
        with zlog.Log.create(counting, "l", **options) as log:  # type: ignore[arg-type]
            writer = ZlogApplicationRecorder(log)
            for version in range(40):
                writer.insert_events([event(version)])
            assert len(log.stripes()) > 2
            reader = ZlogApplicationRecorder(log)
            assert len(reader.select_events("x", gt=38)) == 1
            for recorder, version in ((writer, 40), (reader, 41)):
                methods.clear()
                recorder.insert_events([event(version)])
                assert {*methods} <= {"append", "notify"}
                with pytest.raises(IntegrityError):
                    recorder.insert_events([event(3)])


def test_foreign_entries_and_bad_events_are_reported(log: zlog.Log) -> None:
    log.append(b"hello")
    ZlogDCBRecorder(log).append([DCBEvent("type", b"", [])])
    for start in (1, 2):
        with pytest.raises(DataError, match=f"position {start - 1} was not appended by"):
            ZlogApplicationRecorder(log).select_notifications(start, 1)
    with pytest.raises(DatabaseError, match="up to 64 to an entry"):
        ZlogDCBRecorder(log).append([DCBEvent("type", b"", [str(i) for i in range(64)])])
    condition = DCBAppendCondition(DCBQuery([DCBQueryItem(["type"])]), after=9)
    with pytest.raises(DatabaseError, match="tail is 2"):
        ZlogDCBRecorder(log).append([DCBEvent("type", b"")], condition)


def test_log_with_a_sequencer_is_refused(store: zlog.Store) -> None:
    with (
        zlog.Log.create(store, "shared") as shared,
        pytest.raises(ProgrammingError, match="zlog reconfigure shared --ordering object"),
    ):
        ZlogDCBRecorder(shared)


def test_unknown_outcome_is_an_operational_error(log: zlog.Log, monkeypatch: Any) -> None:
    def times_out(*_: object, **__: object) -> None:
        raise zlog.StoreTimeout("no reply")

    monkeypatch.setattr(log, "append_many", times_out)
    with pytest.raises(OperationalError, match="no reply"):
        ZlogApplicationRecorder(log).insert_events([event(1)])


def test_stopped_subscription_wakes_its_reader(log: zlog.Log) -> None:
    recorder = ZlogApplicationRecorder(log)
    recorder.insert_events([event(1)])
    subscription = recorder.subscribe(topics=["topic"])
    assert next(subscription).id == 1
    reader = threading.Thread(target=lambda: [*subscription])
    reader.start()
    subscription.stop()
    reader.join(60)
    assert not reader.is_alive()


def test_each_application_has_its_log(tmp_path: Path) -> None:
    env = {"ZLOG_STORE": (tmp_path / "store").as_uri()}
    with pytest.raises(OSError, match="set ZLOG_LOG"):
        ZlogFactory(env)
    env |= {"ZLOG_LOG": "school", "CREATE_TABLE": "no"}
    factory = ZlogFactory(env)
    with pytest.raises(DatabaseError, match="school"):
        factory.dcb_recorder()
    factory.close()
    for _ in range(2):  # as after a restart
        factory = ZlogFactory({**env, "CREATE_TABLE": ""})
        found = factory.dcb_recorder().append([DCBEvent("type", b"", [])])
        factory.aggregate_recorder("snapshots").insert_events([event(found)])
        assert zlog.Log.list(factory._store) == ["school", "school.snapshots"]
        factory.close()
    assert found == 2


def test_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZLOG_STORE", (tmp_path / "store").as_uri())
    names: dict[str, Any] = {}
    for block in python_blocks(DOCS / "event-sourcing.md", ceph=False):
        run(block, names)
