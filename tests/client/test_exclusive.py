"""Exclusive writers: fenced by each other, confirmed in order, recovered up to the first hole."""

from __future__ import annotations

import itertools
import threading

import pytest

import zlog
from zlog._io import drive
from zlog._read.iterate import Follower, ReadOptions
from zlog.view import ObjectRef

from ..support.logs import data_without_gap
from .faulty import Died, FaultyStore, WithoutSequencer
from .planted import exists, write


def plant(log: zlog.Log, position: int, entry: bytes) -> ObjectRef:
    """Write to an exclusive log what its writer has on its way."""
    view = log.view
    assert view.writer is not None
    write(log, position, bytes.fromhex(view.writer.id), position, entry)
    return view.object_of(position)


def refused(log: zlog.Log, why: str) -> None:
    """No client appends to the log in any way."""
    for attempt in (
        lambda: log.append(b"x"),
        lambda: log.append_many([b"x"]),
        lambda: log.reserve(1),
        lambda: log.append_once([b"x"], producer="source", sequence=1),
    ):
        with pytest.raises(zlog.AppendRefused, match=why) as raised:
            attempt()
        assert raised.value.hint


def test_only_exclusive_writer_appends(log: zlog.Log) -> None:
    shared = [b"shared %d" % i for i in range(5)]
    log.append_many(shared)
    with log.writer("the first") as writer:
        assert writer.start == writer.confirmed == 5
        assert [writer.append(b"%d" % i) for i in range(6)] == [*range(5, 11)]
        assert writer.append_many([b"many"] * 9) == range(11, 20)
        assert writer.append_many([]) == range(0)
        assert writer.confirmed == log.tail() == 20
        other = zlog.Log.open(log.store, "orders", hole_timeout=0.05)
        refused(other, "is exclusive to its writer, the first")
        refused(log, "is exclusive to its writer, the first")
        assert data_without_gap(other) == [*shared, *(b"%d" % i for i in range(6)), *[b"many"] * 9]
    refused(log, "is exclusive")  # a writer that is closed has not given it back
    assert log.view.sequencer == ""
    assert [str(each) for each in log.check() if each.serious] == []


def test_append_fails_when_log_becomes_exclusive(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders", width=2)
    taken: list[zlog.Writer] = []

    def take(number: int, _: str) -> None:
        if armed and number == armed[0] and not taken:
            taken.append(zlog.Log.open(memory, "orders").writer("ann"))

    for step in range(3):
        armed: list[int] = []
        store = WithoutSequencer(memory, take)
        other = zlog.Log.open(store, "orders")
        armed.append(store.operations + step)
        with pytest.raises(zlog.AppendRefused, match="ann"):
            other.append(b"not hers")
        assert taken.pop().append(b"hers") == step
        other.fence()
    assert data_without_gap(other) == [b"hers"] * 3


def test_former_writer_is_fenced(log: zlog.Log) -> None:
    former = log.writer("former")
    former.append(b"confirmed")
    other = zlog.Log.open(log.store, "orders")
    with other.writer("latter") as latter:
        assert latter.start == 1
        waiting = former.submit(b"too late")
        for attempt in (
            lambda: waiting.result(30),
            former.flush,
            lambda: former.append(b"x"),
            lambda: former.submit(b"x"),
            lambda: former.append_many([b"x"]),
        ):
            with pytest.raises(zlog.Fenced, match="latter"):
                attempt()
        assert former.fenced is not None
        former.release()  # it has nothing to give back
        assert latter.append(b"goes on") == 1
    former.close()
    assert data_without_gap(log) == [b"confirmed", b"goes on"]


def test_closed_writer_releases_log(sequenced: zlog.Log) -> None:
    log = sequenced
    log.append(b"0")
    with log.writer() as writer:
        writer.append(b"1")
        writer.release()
        writer.release()
        with pytest.raises(zlog.Fenced, match="any client may append"):
            writer.append(b"x")
    assert log.view.writer is None
    assert log.append(b"2") == 2
    assert zlog.Log.open(log.store, "orders").append(b"3") == 3
    with log.writer():
        pass
    log.fence()
    log.fence()
    assert log.append(b"4") == 4
    assert data_without_gap(log) == [b"%d" % i for i in range(5)]


@pytest.mark.usefixtures("sequencer")
def test_exclusive_log_has_no_sequencer(plain: zlog.Store) -> None:
    log = zlog.Log.create(plain, "orders", width=2)
    log.append(b"0")
    assert log.view.sequencer
    stale = zlog.Log.open(plain, "orders")
    with log.writer() as writer:
        assert log.view.sequencer == ""
        refused(stale, "exclusive")
        refused(zlog.Log.open(plain, "orders"), "exclusive")
        assert writer.append(b"1") == 1
        assert zlog.Log.open(plain, "orders").view.writer == log.view.writer
        writer.release()
    assert stale.append(b"2") == 2
    assert stale.view.sequencer


def test_readers_see_only_confirmed_prefix(log: zlog.Log) -> None:
    """Whatever lies above a hole: its writer may be about to fill it, or dead."""
    with log.writer() as writer:
        writer.append_many([b"%d" % i for i in range(10)])
        reader = zlog.Log.open(log.store, "orders", hole_timeout=0.0)
        followed = reader.follow(8)
        assert [next(followed).position, next(followed).position] == [8, 9]
        for position in (13, 11, 14, 30):
            plant(log, position, b"%d" % position)
            assert reader.tail() == 10
            assert [item.position for item in reader.read_range(8)] == [8, 9]
            with pytest.raises(zlog.NotWritten):
                reader.read(position)
        with pytest.raises(zlog.BeyondTail):
            reader.trim_to(11)
        plant(log, 10, b"10")
        assert reader.tail() == 12
        assert [next(followed).position, next(followed).position] == [10, 11]
        plant(log, 12, b"12")
        assert data_without_gap(reader) == [b"%d" % i for i in range(15)]
        assert reader.read(14).data == b"14"


def test_follower_does_not_trust_replaced_sequencer(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2)
    log.append(b"shared")
    follower = Follower(log._client.reader, 0, ReadOptions())
    assert [*drive(follower.next())] == [log.read(0)]
    with zlog.Log.open(memory, "orders") as other, other.writer():
        plant(other, 2, b"unconfirmed")
    shared = memory.sequencer()
    assert shared is not None
    assert shared.next(log.view.log_id, log.view.epoch, 2) == 1
    assert drive(follower.next()) == ()
    with zlog.Log.open(memory, "orders").writer() as writer:
        assert writer.append_many([b"new 1", b"new 2"]) == range(1, 3)
    while not (items := drive(follower.next())):
        pass
    assert [item.data for item in items] == [b"new 1", b"new 2"]


def test_recovery_ends_at_first_hole(log: zlog.Log) -> None:
    log.append(b"0")
    log.writer("dead").append_many([b"%d" % i for i in range(1, 10)])
    above = [plant(log, position, b"lost") for position in (11, 12, 17)]
    reader = zlog.Log.open(log.store, "orders")
    with zlog.Log.open(log.store, "orders").writer("next") as writer:
        assert writer.start == 10
        assert [entry.data for entry in writer.recover()] == [b"%d" % i for i in range(10)]
        assert writer.append_many([b"%d" % i for i in range(10, 20)]) == range(10, 20)
        assert data_without_gap(reader) == [b"%d" % i for i in range(20)]
        assert [(s.start, s.end) for s in reader.stripes()][1:-1] == [(1, 10)]
        assert [str(each) for each in reader.check() if each.serious] == []
    assert all(exists(log.store, ref.name) for ref in above)


def test_unconfirmed_stripe_is_replaced(log: zlog.Log) -> None:
    log.writer("dead")
    ref = plant(log, 1, b"never confirmed")
    with zlog.Log.open(log.store, "orders").writer("next") as writer:
        assert writer.start == 0
        assert not exists(log.store, ref.name)
        writer.append(b"0")
        assert data_without_gap(log) == [b"0"]


def test_late_writes_close_holes(memory: zlog.Store) -> None:
    """More runs of holes than an object's header keeps apart; most of them are written then."""
    log = zlog.Log.create(memory, "orders", width=1)
    with log.writer() as writer:
        writer.append(b"x")
        for position in range(2, 200, 2):
            plant(log, position, b"even")
        for position in range(1, 150, 2):
            assert log.tail() == position
            plant(log, position, b"odd")
        assert log.tail() == 151
    with log.writer() as writer:
        assert writer.start == 151


def test_writer_ends_full_stripes(store: zlog.Store) -> None:
    log = zlog.Log.create(store, "orders", width=2, stripe_records=20)
    expected = [b"%d" % i for i in range(300)]
    with log.writer() as writer:
        futures = []
        for i, entry in enumerate(expected):
            futures.append(writer.submit(entry))
            if i % 3 == 0:
                writer.flush()
        writer.flush()
        assert [future.result() for future in futures] == [*range(300)]
    assert len(log.stripes()) > 3
    assert data_without_gap(log) == expected


def test_a_time_out_fails_all_submitted_entries(memory: zlog.Store) -> None:
    """What comes behind an entry must not be confirmed without it."""
    lost = threading.Event()
    faulty = FaultyStore(
        memory, lambda _, method: "lose" if method == "write" and lost.is_set() else None
    )
    log = zlog.Log.create(faulty, "orders", width=4, timeout=0.3)
    with log.writer() as writer:
        writer.append(b"0")
        lost.set()
        futures = []

        def submit_some() -> None:
            for i in range(1, 20):
                futures.append(writer.submit(b"%d" % i))
            reason = "not all submitted entries were confirmed in time"
            with pytest.raises(zlog.StoreTimeout, match=reason):
                writer.flush(timeout=0.01)
            writer.flush(timeout=10)

        with pytest.raises(zlog.StoreTimeout):
            submit_some()
        for future in futures:
            with pytest.raises(zlog.StoreTimeout):
                future.result()
        lost.clear()
        epoch = log.view.epoch
        position = writer.append(b"last")
        assert log.view.epoch > epoch  # in which writes that come late are refused
        found = data_without_gap(log)
        assert found == [b"%d" % i for i in range(position)] + [b"last"]


@pytest.mark.parametrize("others", [False, True], ids=["alone", "with entries above a hole"])
def test_interrupted_takeover_keeps_confirmed_entries(memory: zlog.Store, others: bool) -> None:
    """The next one finishes what is left, and nothing confirmed is lost."""
    for death in itertools.count():
        name = f"orders-{death}"
        log = zlog.Log.create(memory, name, width=2)
        log.append(b"0")
        log.writer("former").append(b"1")
        if others:
            plant(log, 3, b"above")
        dying = WithoutSequencer(
            memory, lambda number, _, death=death: "die" if number == death else None
        )
        dead = False
        try:
            zlog.Log.open(dying, name).writer("dies").append(b"2")
        except Died:
            dead = True
        with zlog.Log.open(memory, name).writer("next") as writer:
            assert writer.start in (2, 3)
            writer.append(b"next")
        found = data_without_gap(zlog.Log.open(memory, name))
        assert found in ([b"0", b"1", b"next"], [b"0", b"1", b"2", b"next"])
        assert [str(each) for each in log.check() if each.serious] == []
        if not dead:
            assert found[2] == b"2"
            assert death > 5
            return


def test_read_only_log_refuses_appends(log: zlog.Log) -> None:
    log.append_many([b"0", b"1"])
    with zlog.connect("mem://") as memory, zlog.Log.create(memory, "other") as other:
        (reserved,) = other.reserve(1)
        other.read_only()
        with pytest.raises(zlog.AppendRefused):
            other.write(reserved, b"late")
    writer = log.writer()
    writer.append(b"2")
    assert log.read_only().read_only
    assert log.read_only().read_only
    with pytest.raises(zlog.Fenced, match="read-only"):
        writer.append(b"x")
    writer.close()
    other = zlog.Log.open(log.store, "orders")
    refused(other, "read-only")
    with pytest.raises(zlog.AppendRefused, match="read-only"):
        other.writer()
    assert data_without_gap(other) == [b"0", b"1", b"2"]
    assert other.tail() == 3
    other.trim_to(1)
    assert not log.writable().read_only
    assert log.append(b"3") == 3
    assert other.append(b"4") == 4
    assert data_without_gap(other, 1) == [b"1", b"2", b"3", b"4"]


def test_retention_counts_only_confirmed_entries(log: zlog.Log) -> None:
    """It counts no entry that no reader sees, and trims none that is on its way."""
    log.set_retention(zlog.Retention(entries=4))
    log.writer("dead").append_many([b"%d" % i for i in range(10)])
    for position in (11, 12, 13):
        plant(log, position, b"%d" % position)
    assert log.apply_retention() == 6
    assert data_without_gap(log, 6) == [b"6", b"7", b"8", b"9"]
    with zlog.Log.open(log.store, "orders").writer("next") as writer:
        assert log.apply_retention() == 6  # nor what lies beyond the end of a stripe
        writer.append(b"10")
        assert log.apply_retention() == 7
        log.set_retention(zlog.Retention(entries=0))
        plant(log, 12, b"12")
        assert log.apply_retention() == 11
        plant(log, 11, b"11")
        assert data_without_gap(log, 11) == [b"11", b"12"]
