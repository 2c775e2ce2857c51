"""Retention: what is beyond an age, a size or a number is trimmed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import zlog
import zlog.aio
from zlog import Retention

from ..conformance.stored import HEADER, MemoryDoor, door_to
from .faulty import FaultyStore, at_method


def test_retention_is_stored_in_log(store: zlog.Store, log: zlog.Log) -> None:
    wanted = Retention(604800.0, 10 << 30, 5_000_000, compact_after=60.0)
    log.set_retention(wanted)
    assert log.retention == wanted
    with zlog.Log.open(store, "orders") as other:
        assert other.retention == wanted
        epoch = other.view.epoch
        other.set_retention(wanted)
        assert other.view.epoch == epoch  # nothing to change
        other.set_retention(Retention(entries=7, compact_after=0.0))
        assert other.view.options == {
            "hole_timeout": "0.05",
            "retention_entries": "7",
            "retention_compact_after_s": "0",
        }
        assert not Retention(compact_after=0.0).unlimited
        other.set_retention(Retention())
        assert other.view.options == {"hole_timeout": "0.05"}
    assert log.append(b"goes on") == 0


def test_set_retention_refuses_other_types(log: zlog.Log) -> None:
    with pytest.raises(TypeError, match="expected a Retention"):
        log.set_retention({"age": 3})  # type: ignore[arg-type]
    assert log.retention.unlimited


@pytest.mark.parametrize("limit", ["age", "bytes", "entries", "skew", "compact_after"])
def test_inexact_limits_are_refused(memory: zlog.Store, limit: str) -> None:
    log = zlog.Log.create(memory, "draft")
    log.set_retention(Retention(**{limit: 2**53}))
    assert getattr(log.retention, limit) == 2**53
    with pytest.raises(ValueError, match=r"up to 2\^53"):
        Retention(**{limit: 2**53 + 2})
    options = {**log.view.options, f"retention_{limit}_s": "6e19", f"retention_{limit}": "6e19"}
    assert Retention.of(options) == Retention()  # an older version stored it


def test_invalid_limits_trim_nothing(store: zlog.Store) -> None:
    options = {"retention_age_s": "-1", "retention_bytes": "10G", "retention_entries": "nan"}
    assert Retention.of(options) == Retention()
    for key, value in options.items():
        with pytest.raises(ValueError, match=f"option '{key}' must be a number"):
            zlog.Log.create(store, "draft", options={key: value})
    for wrong in ({"age": -1.0}, {"age": float("inf")}, {"bytes": -1}, {"entries": 1.5}):
        with pytest.raises(ValueError, match="not"):
            Retention(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("gone", [range(25), range(10, 30), range(60, 80), range(98, 100)])
@pytest.mark.parametrize("limit", [{"entries": 70}, {"bytes": 700}, {"entries": 100}])
def test_lost_entries_do_not_count(memory: zlog.Store, limit: dict[str, int], gone: range) -> None:
    """Nor once the trim has passed it: where some is lost, no more of the rest goes."""
    with zlog.Log.create(memory, "orders", width=2) as log:
        for _ in range(100):
            log.append(bytes(10))
        vanish(log, gone)
        log.set_retention(Retention(**limit))
        for appended in (0, 1, 1, 50):
            before = kept(log)
            if appended:
                log.append_many([bytes(10)] * appended)
            log.apply_retention()
            most = limit.get("entries", 70)
            assert kept(log) == min(before + appended, most)


def test_loss_in_later_stripe_still_counts(memory: zlog.Store) -> None:
    """Until a limit falls below it: objects count what was written, without looking at it."""
    with zlog.Log.create(memory, "orders", width=2) as log:
        for _ in range(2):
            for _ in range(50):
                log.append(bytes(10))
            log.roll()
        vanish(log, range(60, 80))
        log.set_retention(Retention(entries=70))
        assert log.apply_retention() == 30
        assert (log.stat().entries, kept(log)) == (70, 50)
        log.set_retention(Retention(entries=40))
        for appended in (0, 1, 20, 40):
            log.append_many([bytes(10)] * appended)
            log.apply_retention()
            assert kept(log) == 40
        assert log.stat().entries == 40


def vanish(log: zlog.Log, positions: range) -> None:
    """Remove the records of entries that were appended one by one."""
    with door_to(log.store) as door:
        for position in positions:
            name = log.view.object_of(position).name
            door.save(name, door.load(name).without(b"e.%016x.1" % position))


def kept(log: zlog.Log) -> int:
    return sum(isinstance(item, zlog.Entry) for item in log.read_range(log.earliest()))


@pytest.mark.parametrize("limit", [Retention(entries=10), Retention(bytes=100)])
@pytest.mark.parametrize("start", [0, 45])
def test_concurrent_trim_is_not_counted_as_kept(
    memory: zlog.Store, limit: Retention, start: int
) -> None:
    """Between what a round sums up first, and what it counts then."""
    for number in range(1, 30):
        with zlog.Log.create(memory, f"orders{number}", width=2) as log:
            log.append_many([bytes(10)] * 60)
            log.set_retention(limit)

            def trim(log: zlog.Log = log) -> None:
                for position in range(start, 50):
                    log.trim(position)

            store = FaultyStore(memory, at_method("count", trim, number))
            with zlog.Log.open(store, log.name) as other:
                other.apply_retention()
            log.apply_retention()
            kept = [item for item in log.read_range(0) if isinstance(item, zlog.Entry)]
            assert len(kept) == 10, number


@pytest.mark.parametrize("limit", [Retention(entries=5), Retention(bytes=30), Retention(age=0)])
def test_object_without_header_does_not_block_retention(
    memory: zlog.Store, limit: Retention, caplog: pytest.LogCaptureFixture
) -> None:
    """Retention trims as far as the other objects tell, and says what it has not freed."""
    with zlog.Log.create(memory, "orders", width=2) as log:
        log.append_many([b"entry %d" % number for number in range(8)])
        log.reconfigure(width=1)
        log.append_many([b"newer %d" % number for number in range(8)])
        first, second = (ref.name for ref in log.view.objects(log.view.stripes[0]))
        door = MemoryDoor(memory)
        door.save(first, door.load(first).with_attr(HEADER, b"damaged"))
        point = 16 if limit.age is not None else 11
        log.set_retention(limit)
        assert log.apply_retention() == point
        assert first in caplog.text
        assert not door.load(second).attrs


def test_cursor_passed_by_trim_limits_retention(log: zlog.Log) -> None:
    log.append_many([b"x"] * 100)
    log.cursor("slow", create=10)
    log.trim_to(50, past_cursors=True)
    log.set_retention(Retention(entries=10))
    assert log.apply_retention() == 50


def test_trimmed_store_stays_small(tmp_path: Path) -> None:
    with (
        zlog.connect(tmp_path.as_uri()) as store,
        zlog.Log.create(store, "orders", width=4, stripe_bytes=500_000) as log,
    ):
        log.set_retention(Retention(bytes=2 << 20))
        for _ in range(40):
            log.append_many([bytes(10_000)] * 64)
            log.append(b"small")
            log.apply_retention()
        assert 2 << 20 <= log.stat().bytes < (2 << 20) + 10_000
    assert (tmp_path / "data.mdb").stat().st_blocks * 512 < 12 << 20  # of 25 MiB appended


def test_idle_retention_neither_counts_nor_writes(tmp_path: Path) -> None:
    """Nor do those of a log that is at its limit."""
    with (
        zlog.connect(tmp_path.as_uri()) as store,
        zlog.Log.create(store, "orders", width=4) as log,
    ):
        log.append_many([b"x"] * 100)
        log.trim_to(10)
        log.set_retention(Retention(entries=50, bytes=1000))
        assert log.apply_retention() == 50
        before = (tmp_path / "data.mdb").read_bytes()
        calls: list[str] = []
        counting = FaultyStore(store, lambda _, method: calls.append(method))
        with zlog.Log.open(counting, "orders") as other:
            for _ in range(3):
                assert other.apply_retention() == 50
        assert {"count", "tail_raise"}.isdisjoint(calls)
        assert (tmp_path / "data.mdb").read_bytes() == before


def test_whole_stripes_are_counted_and_removed(memory: zlog.Store) -> None:
    """Also those that are archived, and with entries of other sizes in each."""
    with zlog.Log.create(memory, "orders", width=2, stripe_records=5) as log:
        for size in range(1, 61):
            for _ in range(20):
                log.append(bytes(size))
        before = log.stat()
        assert before.stripes > 40
        log.set_retention(Retention(bytes=before.bytes // 4))
        point = log.apply_retention()
        after = log.stat()
        kept = sum(len(item.data) for item in log.read_range(point) if isinstance(item, zlog.Entry))
        assert after.bytes == kept
        assert 0 <= kept - before.bytes // 4 < 60
        assert after.stripes < before.stripes // 2
        assert list(log.check()) == []
