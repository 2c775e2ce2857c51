"""Cursors: readers that stop and go on, and what no trim takes from them, on every host."""

from __future__ import annotations

import pytest

import zlog
import zlog.aio

from .faulty import FaultyStore, loses_first


@pytest.fixture
def ten(log: zlog.Log) -> zlog.Log:
    log.append_many([b"%d" % n for n in range(10)])
    return log


def test_reader_resumes_at_cursor(store: zlog.Store, ten: zlog.Log) -> None:
    cursor = ten.cursor("billing", create="earliest")
    assert (cursor.name, cursor.position, cursor.lag()) == ("billing", 0, 10)
    for item in ten.read_range(cursor.position, 4):
        cursor.commit(item.end)
    with zlog.Log.open(store, "orders") as elsewhere:
        again = elsewhere.cursor("billing")
        assert (again.position, again.lag()) == (4, 6)
        assert next(elsewhere.read_range(again.position)) == ten.read(4)


def test_cursor_starts_at_requested_position(ten: zlog.Log) -> None:
    ten.trim_to(3)
    specs = {"a": "earliest", "b": "latest", "c": 5, "d": 10}
    for name, spec in specs.items():
        ten.cursor(name, create=spec)
    found = {cursor.name: cursor.position for cursor in ten.cursors()}
    assert found == {"a": 3, "b": 10, "c": 5, "d": 10}
    assert ten.cursor("c", create="latest").position == 5  # it is there: nothing is made


def test_missing_cursor_needs_create(ten: zlog.Log) -> None:
    with pytest.raises(zlog.CursorNotFound, match="log 'orders' has no cursor 'billing'"):
        ten.cursor("billing")
    for beyond in (11, 10**9):
        with pytest.raises(zlog.BeyondTail):
            ten.cursor("billing", create=beyond)
    ten.trim_to(3)
    with pytest.raises(zlog.Invalidated, match="trimmed below 3"):
        ten.cursor("billing", create=2)
    for wrong, error in (("begin", ValueError), (-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error):
            ten.cursor("billing", create=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is not a valid name for a cursor"):
        ten.cursor("a b", create="latest")
    assert ten.cursors() == []


def test_commit_behind_other_reader_is_refused(ten: zlog.Log) -> None:
    one, other = ten.cursor("billing", create=0), ten.cursor("billing")
    other.commit(6)
    with pytest.raises(zlog.CursorAhead, match="is already at 6") as raised:
        one.commit(5)
    assert raised.value.position == 6
    assert (one.position, one.state().position) == (0, 6)
    one.commit(6)
    one.commit(7)
    assert other.state().position == 7


def test_commit_beyond_tail_is_refused(ten: zlog.Log) -> None:
    cursor = ten.cursor("billing", create="latest")
    with pytest.raises(
        zlog.BeyondTail,
        match="can't commit 11, which has not been granted yet: the tail of log 'orders' is 10",
    ):
        cursor.commit(11)
    ten.append(b"ten")
    cursor.commit(11)
    assert cursor.lag() == 0


def test_reset_moves_cursor_back(ten: zlog.Log) -> None:
    cursor = ten.cursor("billing", create="latest")
    cursor.reset(2)
    assert (cursor.position, cursor.state().position) == (2, 2)
    ten.trim_to(1)
    with pytest.raises(zlog.Invalidated):
        cursor.reset(0)
    cursor.reset("earliest")
    assert cursor.position == 1
    cursor.reset("latest")
    with pytest.raises(zlog.BeyondTail):
        cursor.reset(11)
    assert cursor.position == 10


def test_removed_cursor_raises_not_found(ten: zlog.Log) -> None:
    cursor, other = ten.cursor("billing", create=0), ten.cursor("billing")
    cursor.remove()
    for call in (cursor.remove, cursor.state, cursor.lag, lambda: other.commit(1)):
        with pytest.raises(zlog.CursorNotFound):
            call()
    other.reset(1)
    assert ten.cursor("billing").position == 1


def test_trim_stops_at_cursor_unless_forced(ten: zlog.Log) -> None:
    cursor = ten.cursor("billing", create=4)
    ten.cursor("audit", create=7)
    with pytest.raises(zlog.HeldByCursor, match=r"to 5: a cursor .* is at 4") as raised:
        ten.trim_to(5)
    assert raised.value.position == 4
    assert ten.earliest() == 0
    ten.trim_to(4)
    cursor.commit(6)
    ten.trim_to(6)
    ten.trim_to(9, past_cursors=True)
    assert (ten.earliest(), cursor.state().position) == (9, 6)


def test_new_log_does_not_inherit_cursors(store: zlog.Store) -> None:
    old = zlog.Log.create(store, "orders")
    old.append_many([b"old"] * 5)
    stale = old.cursor("billing", create=3)
    zlog.Log.remove(store, "orders")
    with zlog.Log.create(store, "orders") as new:
        new.append_many([b"new"] * 5)
        assert new.cursors() == []
        cursor = new.cursor("billing", create=0)
        for call in (stale.state, stale.remove, lambda: stale.commit(4), lambda: stale.reset(4)):
            with pytest.raises(zlog.LogNotFound):
                call()
        with pytest.raises(zlog.LogNotFound):
            old.trim_to(5, past_cursors=True)
        assert (cursor.state().position, new.earliest()) == (0, 0)


def test_lost_reply_creates_one_cursor(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders").append_many([b"x"] * 5)
    with zlog.Log.open(FaultyStore(memory, loses_first("cursor_commit")), "orders") as log:
        with pytest.raises(zlog.StoreTimeout):
            log.cursor("billing", create=2)
        assert log.cursor("billing", create="latest").position == 2


def test_cursor_at_earliest_follows_trim(memory: zlog.Store) -> None:
    """A trim that comes between the look and the making of the cursor moves it along."""
    with zlog.Log.create(memory, "orders") as other:
        other.append_many([b"x"] * 20)

        def fault(_number: int, method: str) -> None:
            if method == "cursor_commit" and other.earliest() < 5:
                other.trim_to(other.earliest() + 1)

        with zlog.Log.open(FaultyStore(memory, fault), "orders") as log:
            assert log.cursor("billing", create="earliest").position == 5
            log.cursor("billing").remove()
            cursor = other.cursor("billing", create="earliest")
            other.trim_to(5)
            assert cursor.position == 5
