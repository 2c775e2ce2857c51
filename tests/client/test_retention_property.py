"""Retention, with clocks as they like: nothing that a limit keeps is trimmed, and the rest goes."""

from __future__ import annotations

import contextlib
import itertools
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import zlog
from zlog import Retention
from zlog.offload import Offloader

from ..support.logs import fill_at, leave_hole, new_epoch, raise_tail
from . import planted
from .clocks import set_clocks

YEAR = 365 * 86400.0
SPANS = st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0, 60.0, 1000.0, 7 * 86400.0])
SECONDS = st.sampled_from([0.0, 0.3, 1.0, 5.0, 30.0, 400.0, 86400.0])
CLOCKS = st.one_of(st.just(0.0), st.sampled_from([-57, -1, 1, 10, 200]).map(lambda n: n * YEAR))
"""By how much a wall clock differs from the true time."""
SIZES = st.lists(st.sampled_from([0, 1, 1, 7, 100, 5000]), min_size=1, max_size=30)
MACHINES = st.sampled_from("abc")
BYTES, ENTRIES = st.integers(0, 20_000), st.integers(0, 60)
ANY = st.just((2**40, 2**40))
LIMITS = st.builds(
    Retention, st.none() | SPANS, st.none() | BYTES, st.none() | ENTRIES, st.just(3600.0) | SPANS
)


class OneLog(RuleBasedStateMachine):
    """A log, the true time, and since when its entries are there."""

    EXAMPLES = 30

    def __init__(self) -> None:
        super().__init__()
        self.store = zlog.connect("mem://")
        self.log = zlog.Log.create(self.store, "orders", width=3, stripe_records=20, hole_timeout=0)
        self.folder = TemporaryDirectory()
        self.now = 0.0
        self.entries: dict[int, tuple[float, int]] = {}  # by position: since when, bytes

    def offload(self) -> None:
        """Each entry is a segment, so limits are as exact as in objects."""
        self.log.reconfigure(width=2)
        for _ in Offloader(self.log, self.folder.name).run():
            pass

    def teardown(self) -> None:
        self.folder.cleanup()
        self.log.close()
        self.store.close()


class History(OneLog):
    """Clocks of several machines, which may be wrong, and all that happens to a log."""

    def __init__(self) -> None:
        super().__init__()
        self.holes: list[int] = []
        self.numbers = itertools.count()
        self.lost = dict.fromkeys("abc", 0.0)  # time that each machine slept

    def clocks(self, machine: str, wall: float) -> None:
        """Let the handle be on a machine whose wall clock is wrong by that much."""
        steady = self.now + "abc".index(machine) * 7777.0 - self.lost[machine]
        set_clocks(self.log, steady, wall=self.now + wall, machine=machine)

    @initialize(limits=LIMITS)
    def first_limits(self, limits: Retention) -> None:
        self.other_limits(limits)

    @rule(limits=LIMITS)
    def other_limits(self, limits: Retention) -> None:
        self.limits = limits
        self.log.set_retention(limits)

    @rule(sizes=SIZES, machine=MACHINES, wall=CLOCKS, together=st.booleans(), offload=st.booleans())
    def append(
        self, sizes: list[int], machine: str, wall: float, together: bool, offload: bool
    ) -> None:
        self.clocks(machine, wall)
        batches = [sizes] if together else [[size] for size in sizes]
        for batch in batches:
            positions = self.log.append_many([bytes(size) for size in batch])
            self.entries.update(
                (p, (self.now, size)) for p, size in zip(positions, batch, strict=True)
            )
        if offload:
            self.offload()

    @rule(seconds=SECONDS)
    def time_goes_on(self, seconds: float) -> None:
        self.now += seconds

    @rule(seconds=SECONDS, machine=MACHINES)
    def a_machine_sleeps(self, seconds: float, machine: str) -> None:
        self.now += seconds
        self.lost[machine] += seconds

    @rule(count=st.integers(1, 20))
    def a_writer_stalls(self, count: int) -> None:
        first = leave_hole(self.log, count)
        self.holes += range(first, first + count)

    @precondition(lambda self: self.holes)
    @rule(data=st.data())
    def it_goes_on(self, data: st.DataObject) -> None:
        """It writes where it may still."""
        position = self.holes.pop(data.draw(st.integers(0, len(self.holes) - 1)))
        if position < self.log.earliest():
            return
        stripe = next(s for s in self.log.stripes() if s.start <= position < s.end)
        ref = self.log.view.object_at(stripe, position % stripe.width)
        number = next(self.numbers)
        request = planted.entry(self.log, ref, position, b"w" * 16, number, b"late")
        if self.store.execute(ref.name, "write", request)[0] == 0:
            self.entries[position] = (self.now, 4)

    @rule(wall=CLOCKS)
    def a_reader_fills(self, wall: float) -> None:
        self.clocks("a", wall)
        for _ in self.log.read_range(self.log.earliest(), self.log.tail()):
            pass

    @rule()
    def the_tail_is_raised(self) -> None:
        raise_tail(self.log, self.log.tail() + 1000)

    @rule(far=st.sampled_from([50, 3000]))
    def a_far_position_is_filled(self, far: int) -> None:
        fill_at(self.log, [self.log.tail() + far])

    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        if self.entries:
            position = data.draw(st.sampled_from(sorted(self.entries)))
            with contextlib.suppress(zlog.ZlogError):  # its stripe is in a file
                self.log.trim(position)
                del self.entries[position]

    @rule(width=st.integers(1, 5), new_stripe=st.booleans())
    def the_layout_changes(self, width: int, new_stripe: bool) -> None:
        if new_stripe:
            self.log.reconfigure(width=width)
        else:
            new_epoch(self.log)

    @rule(data=st.data(), there=st.booleans())
    def a_cursor_holds(self, data: st.DataObject, there: bool) -> None:
        for each in self.log.cursors():
            self.log.cursor(each.name).remove()
        earliest, tail = self.log.earliest(), self.log.tail()
        if there and earliest <= tail:  # else all was filled and trimmed to a far position
            held = data.draw(st.integers(earliest, tail))
            self.log.cursor("slow", create=held)

    @rule(machine=MACHINES, wall=CLOCKS)
    def enforce(self, machine: str, wall: float) -> None:
        """What goes is beyond a limit, and below all cursors."""
        self.clocks(machine, wall)
        before = self.log.earliest()
        held = [each.position for each in self.log.cursors()]
        point = self.log.apply_retention()
        assert point == before or point <= min(held, default=point)
        above = size_above = 0
        for position, (since, size) in sorted(self.entries.items(), reverse=True):
            if position < point:
                assert (
                    (self.limits.age is not None and self.now - since >= self.limits.age)
                    or (self.limits.entries is not None and above >= self.limits.entries)
                    or (self.limits.bytes is not None and size_above >= self.limits.bytes)
                ), f"position {position} of {before}..{point}"
                del self.entries[position]
            above, size_above = above + 1, size_above + size

    @invariant()
    def what_is_kept_is_there(self) -> None:
        assert self.log.stat().entries >= len(self.entries)


class TimelyHistory(OneLog):
    """The same machine enforces, regularly, and no clock is wrong."""

    BETWEEN = 5.0
    EXAMPLES = 20  # of up to 300 rounds in each step

    @initialize(age=st.sampled_from([1.0, 60.0, 1000.0]), most=st.tuples(BYTES, ENTRIES) | ANY)
    def limit(self, age: float, most: tuple[int, int]) -> None:
        self.limits = Retention(age, *most)
        self.log.set_retention(self.limits)

    @rule(sizes=SIZES, offload=st.booleans())
    def append(self, sizes: list[int], offload: bool) -> None:
        set_clocks(self.log, self.now)
        positions = self.log.append_many([bytes(size) for size in sizes])
        self.entries.update((p, (self.now, size)) for p, size in zip(positions, sizes, strict=True))
        if offload:
            self.offload()

    @rule(count=st.integers(1, 20))
    def a_writer_dies(self, count: int) -> None:
        leave_hole(self.log, count)

    @rule(width=st.integers(1, 5))
    def the_layout_changes(self, width: int) -> None:
        self.log.reconfigure(width=width)

    @rule(rounds=st.sampled_from([1, 1, 2, 30, 300]))
    def enforce(self, rounds: int) -> None:
        """What stays is within the limits, and what docs/design/trim.md says."""
        age, size, entries = self.limits.age, self.limits.bytes, self.limits.entries
        assert age is not None
        assert size is not None
        late = age * (1 + 1 / 32) + 5 * self.BETWEEN
        for _ in range(rounds):
            self.now += self.BETWEEN
            set_clocks(self.log, self.now)
            point = self.log.apply_retention()
            kept = {p: entry for p, entry in self.entries.items() if p >= point}
            assert all(self.now - since < late for since, _ in kept.values())
            assert len(kept) <= (entries or 0)
            sizes = [size for _, (_, size) in sorted(kept.items())]
            assert sum(sizes[1:]) <= size
            self.entries = kept
        assert self.log.retention_report().doubt == ""


@pytest.mark.parametrize("history", [History, TimelyHistory])
def test_random_retention_histories(history: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlog.offload._parquet.SEGMENT_ROWS", 1)
    monkeypatch.setattr("zlog._base.options.HOLE_TIMEOUT_SECONDS", 0.0)
    run_state_machine_as_test(
        history,
        settings=settings(
            max_examples=history.EXAMPLES,
            stateful_step_count=40,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
