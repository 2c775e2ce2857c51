"""Positions that are reserved now and written later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import zlog
from zlog import GapKind

from ..support.local_sequencer import LocalSequencer
from ..support.logs import by_position, new_epoch
from .faulty import FaultyStore, at_method


def contents(log: zlog.Log) -> list[bytes | GapKind]:
    """What stands at each position."""
    return [*by_position(log.read_range(hole_timeout=None)).values()]


def test_reserved_positions_are_written_later_in_any_order(sequenced: zlog.Log) -> None:
    assert sequenced.append(b"before") == 0
    first, second, third = sequenced.reserve(3)
    assert sequenced.append(b"after") == 4
    assert contents(sequenced) == [b"before", *[GapKind.UNWRITTEN] * 3, b"after"]
    for position in (third, first, second):
        sequenced.write(position, b"at %d" % position)
    assert contents(sequenced) == [b"before", b"at 1", b"at 2", b"at 3", b"after"]
    assert list(sequenced.check()) == []


def test_reader_fills_unused_reservation(
    sequenced: zlog.Log,
) -> None:
    (position,) = sequenced.reserve()
    sequenced.append(b"after")
    gap, _ = sequenced.read_range(hole_timeout=0.01)
    assert isinstance(gap, zlog.Gap)
    assert gap.kind is GapKind.FILLED
    with pytest.raises(zlog.Invalidated, match=r"was filled .*a reader had waited") as told:
        sequenced.write(position, b"late")
    assert told.value.gap == gap


def test_repeated_write_succeeds_and_different_write_fails(sequenced: zlog.Log) -> None:
    (position,) = sequenced.reserve()
    sequenced.write(position, b"data")
    sequenced.write(position, b"data")
    with zlog.Log.open(sequenced.store, "orders") as other:
        other.write(position, b"data")
        with pytest.raises(zlog.AlreadyWritten, match="position 0 of log 'orders' holds another"):
            other.write(position, b"other data")
    assert contents(sequenced) == [b"data"]


def test_trimmed_reservation_is_not_written(sequenced: zlog.Log) -> None:
    first, second, third = sequenced.reserve(3)
    sequenced.trim(third)
    sequenced.trim_to(second)
    for position in (first, third):
        with pytest.raises(zlog.Invalidated, match="was trimmed"):
            sequenced.write(position, b"late")
    sequenced.write(second, b"in time")


def test_unreserved_position_is_not_written(sequenced: zlog.Log) -> None:
    (position,) = sequenced.reserve()
    with pytest.raises(
        zlog.BeyondTail,
        match="can't write at 1, which has not been granted yet: the tail of log 'orders' is 1",
    ):
        sequenced.write(position + 1, b"data")
    with zlog.Log.open(sequenced.store, "orders", entry_bytes_max=4) as small:
        with pytest.raises(zlog.EntryTooLarge):
            small.write(position, b"too large")
        with pytest.raises(TypeError):
            small.write(position, "text")  # type: ignore[arg-type]
        small.write(position, b"data")


@pytest.mark.parametrize("wrong", [0, -1, 65537])
def test_reservation_size_is_limited(memory: zlog.Store, wrong: int) -> None:
    with zlog.Log.create(memory, "orders") as log:
        with pytest.raises(ValueError, match=f"positions must be 1 to 65536, not {wrong}"):
            log.reserve(wrong)
        with pytest.raises(TypeError):
            log.reserve("many")  # type: ignore[arg-type]
        assert log.reserve(65536) == range(65536)


def test_reserve_needs_sequencer(plain: zlog.Store) -> None:
    with (
        zlog.Log.create(plain, "orders") as log,
        pytest.raises(zlog.SequencerUnavailable, match="only a sequencer can reserve") as told,
    ):
        log.reserve()
    assert "zlog seqr" in told.value.hint


CHANGES: dict[str, Callable[[zlog.Log], object]] = {
    "epoch": new_epoch,  # the successor knows of nothing that was not written
    "width": lambda log: log.reconfigure(width=7),
    "stripe": lambda log: log.roll(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_reservation_survives_layout_change(sequenced: zlog.Log, change: str) -> None:
    sequenced.append(b"before")
    reserved = sequenced.reserve(6)
    with zlog.Log.open(sequenced.store, "orders") as other:
        CHANGES[change](other)
        assert other.append(b"after") == 7
        CHANGES[change](other)
        for position in reserved:
            sequenced.write(position, b"reserved")
        assert contents(other) == [b"before", *[b"reserved"] * 6, b"after"]
        assert list(other.check()) == []


def test_reservation_survives_loss_of_sequencer(plain: zlog.Store) -> None:
    sequencer = LocalSequencer(plain)
    with zlog.Log.create(plain, "orders", width=2, sequencer_timeout=0.1) as log:
        sequencer.announce()
        assert log.append(b"before") == 0
        reserved = log.reserve(3)
        sequencer.stop()
        assert log.append(b"after") == 4
        assert log.view.sequencer == ""
        for position in reserved:
            log.write(position, b"reserved")
        assert contents(log) == [b"before", *[b"reserved"] * 3, b"after"]


@pytest.mark.parametrize("change", CHANGES)
def test_reserve_retries_after_layout_change(memory: zlog.Store, change: str) -> None:
    """Between the grant and its mark in the head: others may get the positions of the grant."""
    other = zlog.Log.create(memory, "orders", width=2)

    def meanwhile() -> None:
        CHANGES[change](other)
        other.append(b"other's")

    with zlog.Log.open(FaultyStore(memory, at_method("tail_raise", meanwhile)), "orders") as log:
        for position in log.reserve(2):
            log.write(position, b"reserved")
    assert contents(other) == [b"other's", b"reserved", b"reserved"]


@pytest.mark.parametrize("fault", ["lose", "twice"])
def test_write_with_lost_reply_can_be_repeated(memory: zlog.Store, fault: str) -> None:
    zlog.Log.create(memory, "orders")
    store = FaultyStore(memory, at_method("write", lambda: None, verdict=fault))
    with zlog.Log.open(store, "orders", timeout=0.2) as log:
        (position,) = log.reserve()
        if fault == "lose":
            with pytest.raises(zlog.StoreTimeout):
                log.write(position, b"data")
        log.write(position, b"data")
        assert contents(log) == [b"data"]


@pytest.mark.usefixtures("eager")
def test_reserved_writes_end_full_stripe(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=1, stripe_records=4) as log:
        for _ in range(20):
            (position,) = log.reserve()
            log.write(position, b"data")
        assert len(log.stripes()) > 3
        assert contents(log) == [b"data"] * 20
