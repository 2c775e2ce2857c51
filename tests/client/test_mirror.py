"""Mirrors: copies that are kept up to date, whatever dies, and what becomes of them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog import AppendRefused, CopyDiffers, Gap, GapKind, aio
from zlog._base.codes import Code
from zlog._base.options import MIRROR_OF
from zlog._native import messages

from ..support.logs import data_of, fill_at, leave_hole, write_at
from .faulty import Died, FaultyStore, dies_in
from .planted import append_at, make_lost
from .transfers import exported, mirrored

ENTRIES = [b"%d" % number for number in range(100)]


@pytest.fixture
def source(memory: zlog.Store) -> Iterator[zlog.Log]:
    """A log with some entries."""
    with zlog.Log.create(memory, "orders", width=3, options={"team": "a"}) as log:
        log.append_many(ENTRIES)
        yield log


def test_mirror_refuses_appends_and_serves_reads(source: zlog.Log, target: zlog.Store) -> None:
    mirrored(source, target, "copy")
    copy = zlog.Log.open(target, "copy")
    assert copy.view.options == {"team": "a", MIRROR_OF: f"{source.view.log_id:016x}"}
    for append in (
        lambda: copy.append(b"x"),
        lambda: copy.append_many([b"x"]),
        lambda: copy.append_once([b"x"], producer="s", sequence=0),
        lambda: asyncio.run(append_in_a_loop(target)),
    ):
        with pytest.raises(AppendRefused, match="'copy' is a mirror"):
            append()
    assert copy.producers() == []
    assert data_of(copy.read_range()) == ENTRIES
    assert copy.tail() == 100
    copy.cursor("reader", create="earliest").commit(50)
    copy.trim_to(50)
    assert copy.stat().entries == 50
    assert list(copy.check()) == []


async def append_in_a_loop(store: zlog.Store) -> None:
    async with aio.Log.open(store, "copy") as log:
        await log.append(b"x")


def test_following_mirror_yields_while_waiting(source: zlog.Log, target: zlog.Store) -> None:
    """It yields within some seconds, so that its caller can stop it."""
    mirroring = zlog.mirror_log(source, target, "copy", follow=True)
    began = time.monotonic()
    assert [*itertools.islice(mirroring, 3)] == [0, 100, 100]
    assert time.monotonic() - began < 10


def test_readers_see_only_complete_mirror_rounds(source: zlog.Log, target: zlog.Store) -> None:
    """A round that died half-way left entries above the tail, which no reader sees or fills."""
    mirrored(source, target, "copy")
    source.append_many([b"later"] * 30)
    with pytest.raises(Died):
        mirrored(source, FaultyStore(target, dies_in("write", 3)), "copy")
    copy = zlog.Log.open(target, "copy", hole_timeout=0.01)
    epoch = messages.max_position(copy.view.epoch)
    refs = copy.view.objects()
    highest = [target.execute(ref.name, "max_position", epoch)[1] for ref in refs]
    assert len({*highest}) > 1, "some objects have more of the round than others"
    assert copy.tail() == 100
    assert data_of(copy.read_range()) == ENTRIES
    assert list(copy.check()) == []
    with pytest.raises(zlog.BeyondTail):
        copy.fill(101)
    with pytest.raises(zlog.NotWritten):
        zlog.Log.open(target, "copy").read(120)
    assert mirrored(source, target, "copy") == 130
    assert exported(copy) == exported(source)


def test_mirror_survives_layout_change(source: zlog.Log, target: zlog.Store) -> None:
    """Also in the middle of a round: the new stripe begins above what of it is written."""
    mirrored(source, target, "copy")
    copy = zlog.Log.open(target, "copy")
    source.append_many(ENTRIES)
    with pytest.raises(Died):
        mirrored(source, FaultyStore(target, dies_in("write", 2)), "copy")
    copy.reconfigure(width=2)
    assert copy.tail() == 100
    assert copy.view.live_stripe.start > 101
    source.append_many(ENTRIES)
    mirrored(source, target, "copy")
    assert data_of(copy.read_range()) == ENTRIES * 3
    assert list(copy.check()) == []


def test_later_source_trim_keeps_copied_entries(source: zlog.Log, target: zlog.Store) -> None:
    mirrored(source, target, "copy", cursors=True)
    source.trim_to(50)
    source.append(b"last")
    mirrored(source, target, "copy")
    assert data_of(zlog.Log.open(target, "copy").read_range()) == [*ENTRIES, b"last"]


def test_earlier_source_trim_becomes_gap(source: zlog.Log, target: zlog.Store) -> None:
    mirrored(source, target, "copy")
    source.append_many(ENTRIES)
    source.trim_to(150)
    mirrored(source, target, "copy")
    copy = zlog.Log.open(target, "copy")
    assert data_of(copy.read_range()) == ENTRIES + ENTRIES[50:]
    assert Gap(100, 150, GapKind.TRIMMED) in [*copy.read_range()]


def test_cursors_are_copied_up_to_copied_entries(source: zlog.Log, target: zlog.Store) -> None:
    source.cursor("reader", create=40)
    mirroring = zlog.mirror_log(source, target, "copy", follow=True, cursors=True)
    assert [*itertools.islice(mirroring, 2)] == [0, 100]
    copy = zlog.Log.open(target, "copy")
    assert [(each.name, each.position) for each in copy.cursors()] == [("reader", 40)]
    source.cursor("reader").commit(100)
    source.cursor("late", create="latest")
    source.append(b"more")
    assert next(mirroring) == 101
    assert {each.name: each.position for each in copy.cursors()} == {"reader": 100, "late": 100}


@pytest.mark.parametrize("name", ["other", "promoted", "own"])
def test_mirror_refuses_other_target_log(source: zlog.Log, target: zlog.Store, name: str) -> None:
    if name == "own":
        zlog.Log.create(target, name)
    else:
        other = zlog.Log.create(source.store, "other", width=2)
        other.append_many(ENTRIES)
        mirrored(source if name == "promoted" else other, target, name)
    if name == "promoted":
        zlog.Log.open(target, name).promote()
    before = zlog.Log.open(target, name).tail()
    with pytest.raises(CopyDiffers):
        mirrored(source, target, name)
    assert zlog.Log.open(target, name).tail() == before


def test_mirror_detects_restored_source(tmp_path: Path, target: zlog.Store) -> None:
    """Restored from an earlier moment, it has fewer positions, or others in their place."""
    with zlog.connect(tmp_path) as store, zlog.Log.create(store, "orders") as log:
        log.append_many(ENTRIES)
        earlier = (tmp_path / "data.mdb").read_bytes()
        log.append_many(ENTRIES)
        mirrored(log, target, "copy")
    (tmp_path / "data.mdb").write_bytes(earlier)
    (tmp_path / "sequencer").unlink()
    with zlog.connect(tmp_path) as store, zlog.Log.open(store, "orders") as log:
        with pytest.raises(CopyDiffers, match="is a mirror, but not of log 'orders'"):
            mirrored(log, target, "copy")
        log.append_many(ENTRIES * 2)
        with pytest.raises(CopyDiffers, match="differ at position 199"):
            mirrored(log, target, "copy")


def test_promotion_trims_incomplete_round(source: zlog.Log, target: zlog.Store) -> None:
    """What of a round was written already is trimmed, whether readers could pass it or not."""
    source.append_many(ENTRIES)
    for number in range(1, 7):
        name = f"copy{number}"
        mirrored(source, target, name)
        source.append_many(ENTRIES)
        with pytest.raises(Died):
            mirrored(source, FaultyStore(target, dies_in("write", number % 3 + 1)), name)
        copy = zlog.Log.open(target, name, hole_timeout=0.01)
        tail = copy.tail()
        copy.promote()
        position = copy.append(b"own")
        assert data_of(copy.read_range()) == [*data_of(source.read_range())[:tail], b"own"]
        if number % 3:
            assert Gap(tail, position, GapKind.TRIMMED) in [*copy.read_range()]
        else:
            assert position == tail
        assert list(copy.check()) == []


def test_mirror_option_cannot_be_set_manually(source: zlog.Log, target: zlog.Store) -> None:
    mirrored(source, target, "copy")
    with pytest.raises(ValueError, match="to end a mirror, use `zlog access promote`"):
        zlog.Log.open(target, "copy").reconfigure(options={MIRROR_OF: None})
    with pytest.raises(ValueError, match="to end a mirror, use `zlog access promote`"):
        source.reconfigure(options={MIRROR_OF: "file"})


@pytest.mark.parametrize("piece", ["entry", "fill"])
def test_mirror_reports_lost_entry_as_lost(
    source: zlog.Log, target: zlog.Store, piece: str
) -> None:
    """A round died above the tail, and the object lost what it had written."""
    mirrored(source, target, "copy")
    with zlog.Log.open(target, "copy") as copy:
        assert write_at(copy, 100) == Code.OK
        make_lost(copy, 100)
    if piece == "entry":
        source.append(b"more")
    else:
        assert fill_at(source, [leave_hole(source)]) == Code.OK
    source.append(b"and more")
    with pytest.raises(zlog.CorruptEntry, match=r"position 100 of log 'copy' .* is lost") as raised:
        mirrored(source, target, "copy")
    assert "zlog check MIRROR --repair" in raised.value.hint


def test_large_batch_keeps_its_ids(source: zlog.Log, target: zlog.Store) -> None:
    source.append_many([bytes(1 << 20)] * 9)
    mirrored(source, target, "copy")
    copy = zlog.Log.open(target, "copy")
    for position in range(100, 109):
        assert append_at(copy, position) == append_at(source, position)
