"""Copiers and promotions of one mirror at once, whichever of them stands still meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

import zlog
from zlog import CopyDiffers, Entry
from zlog._base.options import MIRROR_OF

from ..support.logs import is_there
from .faulty import Died, FaultyStore, at_method, dies_in, each_death, each_moment
from .transfers import exported, imported, mirrored

ENTRIES = [b"%d" % number for number in range(100)]
LATER = [b"later %d" % number for number in range(50)]
OWN = [b"own %d" % number for number in range(5)]


class Source:
    """A log as it was copied first, with 100 entries, and later, with 150."""

    def __init__(self, log: zlog.Log) -> None:
        self.log = log
        log.append_many(ENTRIES)
        self._first = exported(log)
        log.append_many(LATER)
        self._later = exported(log)

    def copy(self, store: zlog.Store) -> None:
        """Copy what was there first."""
        imported(store, "copy", self._first, promote=False)

    def go_on(self, store: zlog.Store) -> None:
        """Copy what is there later: one round of it, in a write for each object."""
        imported(store, "copy", self._later, promote=False)

    def copy_and_die(self, store: zlog.Store) -> None:
        """Copy what was there first, and a part of the round that follows."""
        self.copy(store)
        with pytest.raises(Died):
            self.go_on(FaultyStore(store, dies_in("write", 2)))


@pytest.fixture
def source(memory: zlog.Store) -> Iterator[Source]:
    with zlog.Log.create(memory, "orders", width=3) as log:
        yield Source(log)


def promote(store: zlog.Store) -> None:
    zlog.Log.open(store, "copy").promote()


def promote_and_append(store: zlog.Store) -> None:
    promote(store)
    zlog.Log.open(store, "copy").append_many(OWN)


def check_promoted(store: zlog.Store, copied: set[int], moment: int) -> int:
    """See that the log is its source up to one position, with its own entries above, and sound.

    Returns how many entries were copied.
    """
    copy = zlog.Log.open(store, "copy", hole_timeout=0.01)
    found = [item.data for item in copy.read_range() if isinstance(item, Entry)]
    count = len(found) - len(OWN)
    assert found == [*(ENTRIES + LATER)[:count], *OWN], f"at operation {moment}"
    assert count in copied, f"at operation {moment}"
    assert list(copy.check()) == [], f"at operation {moment}"
    return count


def test_delayed_promotion_keeps_later_appends(source: Source) -> None:
    """Another one finished it meanwhile, and the application has gone on."""
    for number, store in each_moment(source.copy_and_die, promote, promote_and_append):
        check_promoted(store, {100}, number)


def test_mirror_interrupted_at_start_can_be_promoted(memory: zlog.Store) -> None:
    """Its tail lies above what is trimmed, though the floor was not raised yet."""
    with zlog.Log.create(memory, "orders", width=3) as log:
        log.append_many(ENTRIES)
        log.trim_to(60)
        export = exported(log)
    for number, store in each_death(
        lambda _: None, lambda dying: imported(dying, "copy", export, promote=False)
    ):
        if is_there(store, "copy"):
            promote(store)
            copy = zlog.Log.open(store, "copy")
            copy.append(b"own")
            *_, last = copy.read_range()
            assert isinstance(last, Entry), f"died at {number}"
            assert last.data == b"own"


def test_copier_may_run_at_any_step_of_promotion(source: Source) -> None:
    """It copies all of its round, or is told that the mirror has ended: never half of one."""

    def copier(store: zlog.Store) -> None:
        try:
            source.go_on(store)
        except CopyDiffers:
            return
        assert zlog.Log.open(store, "copy").tail() == 150

    counts = set()
    for number, store in each_moment(source.copy_and_die, promote, copier):
        zlog.Log.open(store, "copy").append_many(OWN)
        counts.add(check_promoted(store, {100, 150}, number))
    assert counts == {100, 150}


def test_promotion_may_run_at_any_step_of_copier(source: Source) -> None:
    """A round that is under way is not copied, and its copier does not take it for copied."""
    copied = 0

    def copier(store: zlog.Store) -> None:
        nonlocal copied
        copied = 100
        try:
            source.go_on(store)
        except CopyDiffers:
            return
        copied = 150

    for number, store in each_moment(source.copy, copier, promote_and_append):
        check_promoted(store, {copied}, number)


def test_promoted_log_keeps_its_cursors(source: Source) -> None:
    """A copier that stood still moves none of them back, and makes none."""
    source.log.cursor("billing", create=40)
    source.log.cursor("nightly", create=120)
    export = exported(source.log, cursors=True)

    def copier(store: zlog.Store) -> None:
        with contextlib.suppress(CopyDiffers):
            imported(store, "copy", export, promote=False)

    def other(store: zlog.Store) -> None:
        promote_and_append(store)
        copy = zlog.Log.open(store, "copy")
        copy.cursor("billing", create="earliest").commit(copy.tail())

    for number, store in each_moment(source.copy, copier, other):
        copy = zlog.Log.open(store, "copy")
        assert copy.cursor("billing").position == copy.tail(), f"at operation {number}"
        assert {each.name for each in copy.cursors()} <= {"billing", "nightly"}


def test_follower_does_not_move_cursor_of_promoted_log(source: Source, target: zlog.Store) -> None:
    cursor = source.log.cursor("billing", create=0)
    following = zlog.mirror_log(source.log, target, "copy", follow=True, cursors=True)
    assert [next(following), next(following)] == [0, 150]
    promote_and_append(target)
    copy = zlog.Log.open(target, "copy")
    copy.cursor("billing").commit(155)
    cursor.commit(60)
    with pytest.raises(CopyDiffers, match="is not a mirror"):
        next(following)
    assert copy.cursor("billing").position == 155


def test_cursor_of_mirror_reader_never_moves_back(source: Source, target: zlog.Store) -> None:
    cursor = source.log.cursor("billing", create=40)
    mirrored(source.log, target, "copy", cursors=True)
    copy = zlog.Log.open(target, "copy")
    copy.cursor("billing").commit(100)
    cursor.commit(50)
    mirrored(source.log, target, "copy", cursors=True)
    assert copy.cursor("billing").position == 100
    copy.trim_to(100)
    copy.cursor("billing").remove()
    mirrored(source.log, target, "copy", cursors=True)
    assert copy.cursor("billing").position == 100


def test_cursor_of_empty_mirror_does_not_block_copy(memory: zlog.Store, target: zlog.Store) -> None:
    """The source is trimmed past that position before anything is copied."""
    with zlog.Log.create(memory, "orders", width=3) as log:
        cursor = log.cursor("billing", create="earliest")
        assert mirrored(log, target, "copy") == 0
        zlog.Log.open(target, "copy").cursor("billing", create="earliest")
        log.append_many(ENTRIES)
        cursor.commit(60)
        log.trim_to(60)
        assert mirrored(log, target, "copy", cursors=True) == 100
        assert zlog.Log.open(target, "copy").cursor("billing").position == 60


def test_starting_mirror_does_not_trim_promoted_log(memory: zlog.Store, target: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=3) as log:
        mirrored(log, target, "copy")
        log.append_many(ENTRIES)
        log.trim_to(60)
        slow = FaultyStore(target, at_method("view_read", lambda: promote_and_append(target), 2))
        with pytest.raises(CopyDiffers, match="is not a mirror"):
            mirrored(log, slow, "copy")
    assert zlog.Log.open(target, "copy").stat().entries == len(OWN)


@pytest.mark.parametrize("begun", [True, False])
def test_overtaken_copier_continues(memory: zlog.Store, begun: bool) -> None:
    """The source is trimmed and another one copies it, at any moment."""
    logs: list[zlog.Log] = []

    def prepare(store: zlog.Store) -> None:
        log = zlog.Log.create(memory, f"orders{len(logs)}", width=3)
        logs.append(log)
        log.append_many(ENTRIES)
        if begun:
            mirrored(log, store, "copy")
        log.append_many(LATER)

    def copier(store: zlog.Store) -> None:
        assert mirrored(logs[-1], store, "copy") == 150

    def other(store: zlog.Store) -> None:
        log = zlog.Log.open(memory, logs[-1].name)
        log.trim(130)
        log.trim_to(120)
        assert mirrored(log, store, "copy") == 150

    for number, store in each_moment(prepare, copier, other):
        copy = zlog.Log.open(store, "copy")
        assert [*copy.read_range(131)] == [*logs[-1].read_range(131)], f"at operation {number}"
        assert list(copy.check()) == []


@pytest.mark.parametrize("method", ["trim_to", "tail_raise"])
def test_copier_continues_above_trim_of_dead_copier(
    source: Source, target: zlog.Store, method: str
) -> None:
    """That one has begun the mirror at what was left of the source by then."""

    def other() -> None:
        log = zlog.Log.open(source.log.store, "orders")
        log.trim_to(60)
        with pytest.raises(Died):
            mirrored(log, FaultyStore(target, dies_in(method, 1)), "copy")

    assert mirrored(source.log, FaultyStore(target, at_method("write", other)), "copy") == 150
    copy = zlog.Log.open(target, "copy")
    assert [*copy.read_range(60)] == [*source.log.read_range(60)]
    assert not [found for found in copy.check() if found.serious]


def test_copier_refuses_foreign_entries_above_tail(source: Source, target: zlog.Store) -> None:
    """A round that died was of a log that had the same entries up to the tail, and others then."""
    with zlog.connect("mem://") as elsewhere:
        source.copy(elsewhere)
        promote(elsewhere)
        other = zlog.Log.open(elsewhere, "copy")
        other.append_many([b"other"] * 50)
        export = exported(other)
    source.copy(target)
    with pytest.raises(Died):
        imported(FaultyStore(target, dies_in("write", 2)), "copy", export, promote=False)
    for copy in (source.go_on, lambda store: mirrored(source.log, store, "copy")):
        with pytest.raises(CopyDiffers, match="differ at position 100"):
            copy(target)
    assert zlog.Log.open(target, "copy").tail() == 100


def test_concurrent_imports_are_not_mixed(source: Source) -> None:
    """Of two imports of different logs, one at least is refused, at any moment of it."""
    with zlog.connect("mem://") as elsewhere:
        other = zlog.Log.create(elsewhere, "other", width=3)
        other.append_many([b"other"] * 120)
        export = exported(other)

    def copier(store: zlog.Store) -> None:
        with contextlib.suppress(CopyDiffers):
            source.go_on(store)

    def first(store: zlog.Store) -> None:
        with contextlib.suppress(CopyDiffers):
            imported(store, "copy", export, promote=False)

    for number, store in each_moment(lambda _: None, copier, first):
        items = [*zlog.Log.open(store, "copy").read_range()]
        found = {item.data for item in items if isinstance(item, Entry)}
        # Where each has a part of its first round above the tail, neither goes on.
        assert found in (set(), {b"other"}, {*ENTRIES, *LATER}), f"at operation {number}"


def test_import_becomes_mirror_of_one_log(source: Source, target: zlog.Store) -> None:
    source.copy(target)
    mirrored(source.log, target, "copy")
    view = zlog.Log.open(target, "copy").view
    assert view.options[MIRROR_OF] == f"{source.log.view.log_id:016x}"
    other = zlog.Log.create(source.log.store, "other", width=3)
    other.append_many([b"other"] * 200)
    other.trim_to(160)
    with pytest.raises(CopyDiffers, match="is a mirror, but not of log 'other'"):
        mirrored(other, target, "copy", adopt=True)


def test_unverifiable_import_needs_adopt_option(source: Source, target: zlog.Store) -> None:
    """What stands just below its tail is trimmed in the log by now, or was in the export."""
    source.copy(target)
    source.log.trim_to(120)
    with pytest.raises(
        CopyDiffers, match="is an import of log 'orders' in mem://, because"
    ) as caught:
        mirrored(source.log, target, "copy")
    assert "--adopt" in caught.value.hint
    assert zlog.Log.open(target, "copy").tail() == 100
    assert mirrored(source.log, target, "copy", adopt=True) == 150
