"""A client that dies at any operation leaves a state that the next one finishes."""

from __future__ import annotations

import pytest

import zlog
from zlog import FindingKind

from ..support.logs import new_epoch
from .faulty import FaultyStore, each_death, loses_first

WIDTH = 3


def create(store: zlog.Store) -> zlog.Log:
    return zlog.Log.create(store, "orders", width=WIDTH)


def create_with_an_entry(store: zlog.Store) -> None:
    create(store).append(b"old")


def remove(store: zlog.Store) -> None:
    zlog.Log.remove(store, "orders")


def append(store: zlog.Store) -> list[int]:
    return zlog.Log.open(store, "orders").append_many([b"%d" % i for i in range(7)])


def test_creation_is_finished_by_the_next_creator() -> None:
    for number, store in each_death(lambda _: None, create):
        try:
            log = create(store)
        except zlog.LogExists:  # it died after the view was in: the log is there
            log = zlog.Log.open(store, "orders")
        assert log.append(b"first") == 0, f"died at {number}"
        assert zlog.Log.list(store) == ["orders"]
        assert {finding.kind for finding in log.check()} <= {FindingKind.LEFTOVER}
        log.trim_to(1)  # which removes what the first creator made
        assert list(log.check()) == [], f"died at {number}"


def test_removal_is_finished_by_the_next_remover() -> None:
    for number, store in each_death(create_with_an_entry, remove):
        remove(store)
        assert zlog.Log.list(store) == []
        assert create(store).append(b"new") == 0, f"died at {number}"


def test_removal_is_finished_by_the_next_creator() -> None:
    for number, store in each_death(create_with_an_entry, remove):
        try:
            log = create(store)
        except zlog.LogExists:  # it died before the log was marked
            remove(store)
            log = create(store)
        assert log.append(b"new") == 0, f"died at {number}"
        assert [item.data for item in log.read_range()] == [b"new"]  # type: ignore[union-attr]
        assert zlog.Log.list(store) == ["orders"]


def test_a_change_of_the_layout_is_finished_by_the_next_writer() -> None:
    logs: list[zlog.Log] = []

    def prepare(store: zlog.Store) -> None:
        logs.append(create(store))
        logs[-1].append_many([b"a", b"b", b"c", b"d"])

    for number, _ in each_death(prepare, lambda dying: new_epoch(zlog.Log.open(dying, "orders"))):
        log = logs[-1]  # a handle that knows the view before
        assert log.append(b"e") == 4, f"died at {number}"
        assert [item.data for item in log.read_range()] == [b"a", b"b", b"c", b"d", b"e"]  # type: ignore[union-attr]
    assert number >= WIDTH


def test_an_appender_that_dies_leaves_at_most_holes() -> None:
    for number, store in each_death(create, append):
        log = zlog.Log.open(store, "orders")
        position = log.append(b"next")
        items = list(log.read_range(hole_timeout=0.01))
        entries = [item for item in items if isinstance(item, zlog.Entry)]
        assert entries[-1] == log.read(position)
        assert len({entry.data for entry in entries}) == len(entries)
        assert list(log.check()) == [], f"died at {number}"


@pytest.mark.parametrize("method", ["write", "view_read"])
def test_a_lost_reply_is_a_time_out_and_leaves_the_entry_once(
    memory: zlog.Store, method: str
) -> None:
    log = create(memory)
    faulty = FaultyStore(memory, lambda *_: None)
    other = zlog.Log.open(faulty, "orders")
    if method == "write":
        faulty.fault = loses_first("write")
        with pytest.raises(zlog.StoreTimeout) as caught:
            other.append(b"indeterminate", timeout=0.2)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.positions == (None,)
        assert [item.data for item in log.read_range()] == [b"indeterminate"]  # type: ignore[union-attr]
    else:
        faulty.fault = loses_first("view_read")
        with pytest.raises(zlog.StoreTimeout):
            zlog.Log.open(faulty, "orders", timeout=0.2)
    assert other.append(b"later") == log.tail() - 1
