"""An offloader that dies or is overtaken between any two of its steps, or overtakes others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import zlog
from zlog import Retention
from zlog._base.io import deadline_of
from zlog._io import BlockingIo, drive
from zlog.view import StripeFile, objects_of

from ..client.faulty import Died, FaultyStore, Recorder, each_moment
from ..client.test_deaths import still_there
from ..client.transfers import exported, varied
from ..support.logs import leave_hole
from .offloading import columns, files_of, offload, watched_files

Call = Callable[[zlog.Store], object]


def opened(store: zlog.Store) -> zlog.Log:
    return zlog.Log.open(store, "orders", hole_timeout=0.0)


def contents(log: zlog.Log) -> tuple[object, ...]:
    return list(log.read_range()), list(log.read_range(tags=["a"])), exported(log)


class Run:
    """An offloader of two stripes that calls something before one of its steps.

    Attributes:
        stale: a reader that has read the log before.
        before: what it has read.
        error: the offloader's error.
        steps: how many calls of the store and of the file system the offloader has made.
    """

    def __init__(self, root: Path, at: int, act: Call) -> None:
        self.root, self.steps = root, 0
        self.store = Recorder(zlog.connect("mem://"))
        log = zlog.Log.create(self.store, "orders", width=2, stripe_unit=1, hole_timeout=0.0)
        log.append_many([b"0", b"1", b"2"], tags=["a"])
        leave_hole(log)
        log.append_many([b"4", b"5"], tags=["a"])
        log.reconfigure(width=1)
        log.append_many([b"6", b"7", b"8", b"9"], tags=["b"])
        log.trim(7)
        log.trim_to(1)
        log.roll()
        log.append_many([b"10", b"11"])
        self.stale, self.before = log, contents(log)
        self.error: BaseException | None = None

        def step(_: object) -> None:
            self.steps += 1
            if self.steps == at + 1:
                act(self.store)

        faulty = FaultyStore(self.store, lambda _, method: step(method))
        with watched_files(step):
            try:
                offload(opened(faulty), root)
            except (Died, zlog.ZlogError) as error:
                self.error = error

    def records(self) -> list[StripeFile]:
        deadline = deadline_of(BlockingIo(self.store), 5)
        log = self.stale._client.layout
        return drive(log.head.offload_list(log.view.log_id, 0, deadline))

    def finish(self) -> None:
        """Let other offloaders run. Then only files and objects of the log remain."""
        log = opened(self.store)
        offload(log, self.root)
        for each in self.root.glob(f"orders-{log.view.log_id:016x}/_incoming/*"):
            os.utime(each, (1, 1))
        files, view = offload(log, self.root), log.view
        assert [each for each in files[:1] for each in (each.parent / "_incoming").iterdir()] == []
        recorded = {each.id: each.url for each in self.records()}
        assert [each.as_uri() for each in files] == [*recorded.values()]
        kept = [s for s in view.stripes if s.end > view.trim_point and s.id not in recorded]
        needed = {ref.name for s in kept for ref in objects_of("orders", view.log_id, s)}
        assert still_there(self.store, self.store.names | needed) == needed
        assert list(log.check()) == []


def each_run(root: Path, act: Call) -> Iterator[Run]:
    """Yield a run for each step of an offloader, at which something is called."""
    number = 0
    while (run := Run(root, number, act)).steps > number:
        yield run
        number += 1
    assert number > 40


def die(_: object) -> None:
    raise Died


def test_a_dead_offloader_loses_nothing(tmp_path: Path) -> None:
    for run in each_run(tmp_path, die):
        assert contents(run.stale) == contents(opened(run.store)) == run.before
        run.finish()
        assert contents(run.stale) == contents(opened(run.store)) == run.before
        assert len(run.records()) == 2
        opened(run.store).trim_to(10)
        run.finish()
        assert run.records() == []
        assert [item.position for item in run.stale.read_range(10)] == [10, 11]


def test_trims_and_removals_follow_a_death(tmp_path: Path) -> None:
    """A file that was lost before it was placed is written again."""
    for run in each_run(tmp_path, die):
        for each in tmp_path.glob(f"orders-{run.stale.view.log_id:016x}/_incoming/*"):
            each.unlink()
        opened(run.store).trim_to(7)
        run.finish()
        zlog.Log.remove(run.store, "orders")
        assert files_of(run.stale, tmp_path) == []
        assert still_there(run.store, run.store.names) == set()


def retain(store: zlog.Store) -> None:
    opened(store).set_retention(Retention(entries=3, compact_after=0))
    opened(store).apply_retention()


def trim_positions(store: zlog.Store) -> None:
    for position in (2, 8):
        with suppress(zlog.ZlogError):
            opened(store).trim(position)


OTHERS: dict[str, Call] = {
    "trims a part": lambda store: opened(store).trim_to(3),
    "trims a stripe": lambda store: opened(store).trim_to(8),
    "trims both": lambda store: opened(store).trim_to(11),
    "trims positions": trim_positions,
    "retains": retain,
    "appends and rolls": lambda store: (opened(store).append(b"12"), opened(store).roll()),
}


@pytest.mark.parametrize("act", OTHERS.values(), ids=OTHERS)
def test_other_clients_do_not_disturb_an_offloader(act: Call, tmp_path: Path) -> None:
    for run in each_run(tmp_path, act):
        assert run.error is None
        found = contents(run.stale)
        assert found == contents(opened(run.store))
        assert "lost" not in repr(found)
        run.finish()


def test_two_offloaders(tmp_path: Path) -> None:
    for run in each_run(tmp_path, lambda store: offload(opened(store), tmp_path)):
        assert run.error is None
        run.finish()
        assert contents(run.stale) == contents(opened(run.store)) == run.before


def test_a_log_is_removed_while_it_is_offloaded(tmp_path: Path) -> None:
    for run in each_run(tmp_path, lambda store: zlog.Log.remove(store, "orders")):
        assert run.error is None or isinstance(run.error, zlog.LogNotFound)
        assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
        assert still_there(run.store, run.store.names) == set()


def test_objects_stay_if_their_file_is_damaged(tmp_path: Path) -> None:
    """A process died after it had placed a file, so the next one removes the objects."""
    for run in each_run(tmp_path, die):
        if [each for each in run.records() if each.state == 2]:
            files_of(run.stale, tmp_path)[-1].write_bytes(b"")
            there = still_there(run.store, run.store.names)
            with pytest.raises(zlog.CorruptEntry, match="missing or damaged"):
                offload(opened(run.store), tmp_path)
            assert still_there(run.store, run.store.names) == there


def refused(call: Callable[..., object], *args: object) -> object:
    try:
        return call(*args)
    except zlog.ZlogError as error:
        return type(error)


WORK: dict[str, Callable[[zlog.Log], object]] = {
    "reads": lambda log: (*contents(log), *log.read_range(tags=["a"], reverse=True), log.last("b")),
    "columns": lambda log: columns(log, indexes=[0, 2], with_tags=True),
    "map": lambda log: [(each.lost, each.unknown) for each in log.position_map(cells=3).cells],
    "counts": lambda log: log.stat(15)[-4:-2],
    "fills": lambda log: [refused(log.fill, position) for position in (16, 45, 47, 119)],
    "writes": lambda log: [refused(log.write, position, b"3") for position in (31, 57, 119)],
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_call_has_the_same_result_while_stripes_are_offloaded(
    work: Callable[[zlog.Log], object], tmp_path: Path
) -> None:
    found: list[object] = []

    def prepare(store: zlog.Store) -> None:
        with varied(store) as log:
            log.roll()
            list(log.read_range())  # fills the holes
            found[:] = [work(log)]

    def work_again(store: zlog.Store) -> None:
        found.append(work(opened(store)))

    for number, _ in each_moment(prepare, work_again, lambda s: offload(opened(s), tmp_path)):
        assert found[1] == found[0], f"offloaded at {number}"
