"""How slices become rates and ratios."""

from __future__ import annotations

from array import array

import pytest

from bench.measure import (
    Candidate,
    Slice,
    in_turns,
)
from bench.writers import Traffic


def constant(calls: int, latency: float, entries_per_call: float = 1) -> Slice:
    cpu = {"client": 0.001}
    return Slice(calls, calls * entries_per_call, 1.0, array("d", [latency] * calls), cpu)


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
