"""A stripe object, or keys of it, that are gone: the rest can be read, and an audit tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

import zlog
from zlog import GapKind
from zlog._base.io import deadline_of
from zlog._base.names import directory_shard, head_object
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive

from ..conformance.stored import door_to
from .faulty import WithoutSequencer
from .planted import remove

UNITS = (1, 4)
WIDTH = 4
LOST = 1


@pytest.fixture(params=[True, False], ids=["sequenced", "slow"])
def log(request: pytest.FixtureRequest, memory: zlog.Store) -> zlog.Log:
    store = memory if request.param else WithoutSequencer(memory)
    made = zlog.Log.create(store, "orders", width=WIDTH)
    made.append_many([b"%d" % i for i in range(12)])
    remove(made, made.view.object_of(LOST))
    return zlog.Log.open(store, "orders", timeout=5)


def test_entries_of_other_objects_are_readable(log: zlog.Log) -> None:
    ref = log.view.object_of(LOST)
    name, gone = ref.name, ref.positions(0, 12)
    missing = zlog.Loss(zlog.LossReason.MISSING, (name,))
    found = {p: item for item in log.read_range() for p in range(item.position, item.end)}
    assert [*found] == [*range(12)]
    for position, item in found.items():
        if position in gone:
            assert item[2:] == (GapKind.LOST, missing)
        else:
            assert isinstance(item, zlog.Entry)
            assert item.data == b"%d" % position
    with pytest.raises(zlog.CorruptEntry, match=f"position {LOST} .*missing: {name}") as raised:
        log.read(LOST)
    assert raised.value.gap == zlog.Gap(LOST, LOST + 1, GapKind.LOST, missing)
    assert log.stat().entries == 12 - len(gone)


@pytest.mark.parametrize(
    "use",
    [
        lambda log: log.append_many([b"x"] * WIDTH * 4),
        lambda log: log.fill(LOST),
        lambda log: log.trim(LOST),
    ],
    ids=["append", "fill", "trim"],
)
def test_writes_fail_if_object_is_missing(log: zlog.Log, use: Callable[[zlog.Log], object]) -> None:
    """Nor is it "try again": nothing brings the object back."""
    name = log.view.object_of(LOST).name
    told = f"{name}|a stripe object of log 'orders' is missing"  # one of those asked for the tail
    with pytest.raises(zlog.CorruptEntry, match=told) as caught:
        use(log)
    assert not caught.value.retryable


def test_entries_with_missing_keys_stay_lost(
    memory: zlog.Store,
) -> None:
    """As an OSD's copy may be that came back with attributes only. The log goes on above."""
    with zlog.Log.create(memory, "orders", width=WIDTH, hole_timeout=0.01) as log:
        log.append_many([b"%d" % i for i in range(12)])
        ref = log.view.object_of(LOST)
        name, gone = ref.name, [*ref.positions(0, 12)]
        with door_to(memory) as door:
            door.save(name, replace(door.load(name), omap={}))
        for tail in (12, 20):
            found = list(log.read_range())
            assert found[-1].end == tail
            damaged = zlog.Loss(zlog.LossReason.CORRUPT, (name,))
            gaps = [item for item in found if isinstance(item, zlog.Gap)]
            assert {gap[2:] for gap in gaps} == {(GapKind.LOST, damaged)}
            assert [p for gap in gaps for p in range(gap.position, gap.end)] == gone
            with pytest.raises(zlog.CorruptEntry, match=f"position {LOST} .*is lost"):
                log.fill(LOST)
            (finding,) = (each for each in log.check() if each.serious)
            assert (finding.kind, [*finding.positions]) == (zlog.FindingKind.LOST, gone)
            assert log.append_many([b"on"] * 8) == list(range(tail, tail + 8))


def test_log_without_head_is_damaged(memory: zlog.Store, target: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders") as log:
        log.append(b"x")
    with door_to(memory) as door, door_to(target) as other:
        for name in (directory_shard("logs", "orders"), log.view.object_of(0).name):
            other.save(name, door.load(name))
        for use in (zlog.Log.open, zlog.Log.create, partial(zlog.Log.open, create=True)):
            with pytest.raises(zlog.CorruptEntry, match=r"no object zlog\.orders\.head"):
                use(target, "orders")
        other.save(head_object("orders"), door.load(head_object("orders")))
    assert zlog.Log.open(target, "orders").read(0).data == b"x"
    with pytest.raises(zlog.LogNotFound):
        zlog.Log.open(target, "other")


def test_log_without_head_can_be_removed(memory: zlog.Store) -> None:
    io = BlockingIo(memory)
    drive(Directory(io).logs.add_all(["orders"], deadline_of(io, 10), 7))
    with pytest.raises(zlog.CorruptEntry) as told:
        zlog.Log.create(memory, "orders")
    assert "zlog rm orders" in told.value.hint
    zlog.Log.remove(memory, "orders")
    assert drive(Directory(io).logs.names(deadline_of(io, 10))) == []
    with pytest.raises(zlog.LogNotFound):
        zlog.Log.remove(memory, "orders")
    assert zlog.Log.create(memory, "orders").append(b"x") == 0
