"""How slices become rates and ratios."""

from __future__ import annotations

from array import array

import pytest

from bench.measure import (
    ROUNDS,
    Candidate,
    Slice,
    in_turns,
)
from bench.writers import Traffic


def constant(calls: int, latency: float, entries_per_call: float = 1) -> Slice:
    cpu = {"client": 0.001}
    return Slice(calls, calls * entries_per_call, 1.0, array("d", [latency] * calls), cpu)


def test_quantiles_combine_several_slices() -> None:
    starts = iter([0, 200, 400, 600, 800])

    def run(_: float) -> Slice:
        start = next(starts)
        return Slice(200, 200, 1.0, array("d", (i / 1000 for i in range(start, start + 200))))

    (load,) = in_turns(Candidate("load", "", run), [], 1.0, 1)
    assert load["latency_ms"] == {"p50": 500, "p99": 990, "p99.9": 999, "max": 999}


def test_order_of_turns() -> None:
    turns: list[str] = []

    def candidate(name: str) -> Candidate:
        def run(seconds: float) -> Slice:
            assert seconds == pytest.approx(1.0)
            turns.append(name)
            return constant(10, 0.1)

        return Candidate(name, "", run)

    limits = [candidate(name) for name in "abcd"]
    in_turns(candidate("load"), limits, float(ROUNDS), 1)
    rounds = [turns[i : i + 5] for i in range(0, len(turns), 5)]
    assert len(rounds) == ROUNDS
    assert all(sorted(each) == ["a", "b", "c", "d", "load"] for each in rounds)
    for name in ("load", "a", "b", "c", "d"):
        places = {each.index(name) for each in rounds}
        after = {turns[i - 1] for i, turn in enumerate(turns) if i and turn == name}
        assert len(places) >= 3
        assert len(after) >= 2


def test_ratio_is_median_of_rounds() -> None:
    # The machine is slow in one round, and once while only the limit runs.
    loads = iter([100, 100, 10, 100, 100])
    limits = iter([200, 200, 20, 50, 200])
    load, limit = in_turns(
        Candidate("load", "", lambda _: constant(next(loads), 0.1, 4)),
        [Candidate("limit", "", lambda _: constant(next(limits), 0.1, 4))],
        1.0,
        100,
    )
    rates = ("calls_per_second", "entries_per_second", "bytes_per_second")
    assert [load[rate] for rate in rates] == [100, 400, 40_000]
    assert limit["ratios"] == [0.5, 0.5, 0.5, 2.0, 0.5]
    assert limit["ratio"] == 0.5
    assert "ratio" not in load
    assert load["cpu_us_per_entry"]["client"] == pytest.approx(0.005 / 1640 * 1e6, abs=1e-3)


@pytest.mark.parametrize(
    ("per_operation", "operations", "unit", "together", "batch", "lanes"),
    [
        (1, 1, 1, 1, 1, 1),
        (1, 64, 1, 1, 1, 64),
        (128, 8, 1, 1024, 1024, 1),
        (64, 16, 1, 512, 512, 2),
        (2, 2, 1, 16, 16, 1),
        (256, 4, 256, 256, 256, 4),  # as many as fit into an object, whatever the width
        (256, 8, 256, 1024, 1024, 2),
    ],
)
def test_traffic_is_split_into_batches_and_lanes(
    per_operation: float, operations: int, unit: int, together: int, batch: int, lanes: int
) -> None:
    traffic = Traffic(per_operation, operations, 8, unit, together)
    assert (traffic.batch, traffic.lanes) == (batch, lanes)
