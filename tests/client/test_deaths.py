"""A client that dies at any operation leaves a state that the next one finishes, and no objects."""

from __future__ import annotations

import pytest

import zlog
from zlog import FindingKind
from zlog._base.io import deadline_of
from zlog._catalog.head import Head
from zlog._io import BlockingIo, drive
from zlog._native.local import MemoryStore
from zlog.view import objects_of

from ..support.logs import data_of, new_epoch
from .faulty import Recorder, at_method, each_death

WIDTH = 3


def create(store: zlog.Store) -> zlog.Log:
    return zlog.Log.create(store, "orders", width=WIDTH)


def create_with_an_entry(store: zlog.Store) -> None:
    create(store).append(b"old")


def remove(store: zlog.Store) -> None:
    zlog.Log.remove(store, "orders")


def append(store: zlog.Store) -> list[int]:
    return zlog.Log.open(store, "orders").append_many([b"%d" % i for i in range(7)])


def test_next_creator_finishes_creation() -> None:
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


def test_next_creator_finishes_removal() -> None:
    for number, store in each_death(create_with_an_entry, remove):
        try:
            log = create(store)
        except zlog.LogExists:  # it died before the log was marked
            remove(store)
            log = create(store)
        assert log.append(b"new") == 0, f"died at {number}"
        assert [item.data for item in log.read_range()] == [b"new"]  # type: ignore[union-attr]
        assert zlog.Log.list(store) == ["orders"]


def test_dead_appender_leaves_only_holes() -> None:
    for number, store in each_death(create, append):
        log = zlog.Log.open(store, "orders")
        position = log.append(b"next")
        items = list(log.read_range(hole_timeout=0.01))
        entries = [item for item in items if isinstance(item, zlog.Entry)]
        assert entries[-1] == log.read(position)
        assert len({entry.data for entry in entries}) == len(entries)
        assert list(log.check()) == [], f"died at {number}"


def assert_no_orphans(store: Recorder) -> None:
    """Of all objects that were ever made there are those of the log's stripes, and no others."""
    io = BlockingIo(store)
    deadline = deadline_of(io, 5)
    head = Head(io, "orders")
    state = drive(head.read(deadline))
    assert state.view is not None
    assert drive(head.pending_stripes(state.log_id, deadline))[1] == []
    archived = drive(head.stripes(state.log_id, 0, deadline))
    needed = {
        ref.name
        for stripe in (*archived, *state.view.stripes)
        if stripe.end > state.trim_point
        for ref in objects_of("orders", state.log_id, stripe)
    }
    assert still_there(store, store.names | needed) == needed


def still_there(store: Recorder, names: set[str]) -> set[str]:
    """Which of these objects the store has."""
    plain = store.inner
    assert isinstance(plain, MemoryStore)
    return {name for name in names if plain.peek(name) is not None}


def written(store: zlog.Store) -> None:
    zlog.Log.create(store, "orders", width=WIDTH).append_many([b"a", b"b", b"c", b"d"])


def reconfigure(store: zlog.Store) -> None:
    zlog.Log.open(store, "orders").reconfigure(width=WIDTH + 2)


def test_reconfiguration_is_finished_or_dropped() -> None:
    for number, store in each_death(written, reconfigure):
        log = zlog.Log.open(store, "orders")
        assert log.append(b"e") == 4, f"died at {number}"
        reconfigure(store)
        assert log.append(b"f") == 5
        assert log.view.live_stripe.width == WIDTH + 2
        zlog.Log.open(store, "orders").reconfigure(width=1)
        assert data_of(log.read_range()) == [b"a", b"b", b"c", b"d", b"e", b"f"]
        assert list(log.check()) == []
        assert_no_orphans(store)
    assert number > 2 * WIDTH + 1


def full(store: zlog.Store) -> None:
    """A log whose live stripe is full by far."""
    log = zlog.Log.create(store, "orders", width=WIDTH, stripe_records=1)
    log.append_many([b"a", b"b", b"c"])
    log.append_many([b"d", b"e", b"f"])


def roll(store: zlog.Store) -> None:
    """Two appends: the first one hears that the stripe is full, the second one ends it."""
    log = zlog.Log.open(store, "orders")
    log.append(b"g")
    log.append(b"h")
    assert log.view.live_stripe.start == 7


@pytest.mark.usefixtures("eager")
def test_a_full_stripe_is_ended_after_a_crash() -> None:
    for number, store in each_death(full, roll):
        log = zlog.Log.open(store, "orders")
        for each in (b"x", b"y", b"z"):
            log.append(each)
        found = data_of(log.read_range())
        assert found[:6] == [b"a", b"b", b"c", b"d", b"e", b"f"], f"died at {number}"
        assert found[-3:] == [b"x", b"y", b"z"]
        assert log.view.live_stripe.start > 0
        zlog.Log.open(store, "orders").reconfigure(width=1)
        assert_no_orphans(store)
    assert number > 2 * WIDTH + 3


def long(store: zlog.Store) -> None:
    """A log with an archived stripe, closed ones, and a loose one."""
    log = zlog.Log.create(store, "orders", width=WIDTH)
    for width in (*range(1, 34), 2):
        log.append_many([b"%d" % i for i in range(5)])
        log.reconfigure(width=width)
    log.append_many([b"%d" % i for i in range(5)])
    io = BlockingIo(store)
    deadline = deadline_of(io, 5)
    drive(Head(io, "orders").epoch_next(deadline, width=2))
    new_epoch(log)


def trim(store: zlog.Store) -> None:
    zlog.Log.open(store, "orders").trim_to(5 * 33 + 2)


def test_next_trim_finishes_trim() -> None:
    for number, store in each_death(long, trim, step=17):
        trim(store)
        log = zlog.Log.open(store, "orders")
        assert len(data_of(log.read_range())) == 8
        log.reconfigure(width=5)
        assert_no_orphans(store)
        assert list(log.check()) == [], f"died at {number}"


def test_removal_covers_archived_and_pending_stripes() -> None:
    for number, store in each_death(long, remove, step=17):
        remove(store)
        assert still_there(store, {*store.names, "zlog.orders.head"}) == set(), f"died at {number}"


def test_a_client_removes_its_own_reclaimed_stripe(memory: zlog.Store) -> None:
    """It was stopped between its epoch and its objects, for so long that all has gone on."""
    written(memory)

    def overtake() -> None:
        other = zlog.Log.open(memory, "orders")
        other.reconfigure(width=7)
        other.reconfigure(width=2)

    slow = Recorder(memory, at_method("seal", overtake))
    log = zlog.Log.open(slow, "orders")
    log.reconfigure(width=WIDTH + 2)
    assert log.append(b"e") == 4
    assert log.view.live_stripe.width == WIDTH + 2
    assert_no_orphans(slow)


def test_objects_created_after_removal_are_removed(memory: zlog.Store) -> None:
    written(memory)
    slow = Recorder(memory, at_method("seal", lambda: zlog.Log.remove(memory, "orders")))
    log = zlog.Log.open(slow, "orders")
    with pytest.raises(zlog.LogNotFound):
        log.reconfigure(width=WIDTH + 2)
    assert len(slow.names) == 2 * WIDTH + 2
    assert still_there(slow, slow.names) == set()
