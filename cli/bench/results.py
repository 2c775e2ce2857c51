"""Printing what a benchmark measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from zlog.cli.bench.workload import Rate, Workload
from zlog.cli.output import Output
from zlog.cli.render import to_json
from zlog.cli.tables import human_bytes, table


def print_json(out: Output, load: Workload, done: Rate, limits: Sequence[Rate]) -> None:
    """Print one object: the load, its rate, and each limit with the ratio to it."""
    fields: dict[str, object] = {
        "workload": asdict(load),
        "result": _fields(done),
        "limits": [{**_fields(limit), "ratio": _ratio(done, limit)} for limit in limits],
    }
    out.line(to_json(fields))


def print_table(out: Output, load: Workload, done: Rate, limits: Sequence[Rate]) -> None:
    """Print a line for the load and one for each limit."""
    out.line(
        f"{human_bytes(load.size)} × {load.batch} entries per append, {load.writers} writers ×"
        f" {load.depth} in flight, width {load.width}, {load.seconds:g} s on {load.url}"
    )
    head = ("", "ENTRIES/S", "MB/S", "P50 MS", "P99 MS", "P99.9 MS", "RATIO")
    rows = [_row(done, "")]
    rows += [_row(limit, f"{_ratio(done, limit):.2f}") for limit in limits]
    table(out, head, rows, head_always=True)
    for limit in limits:
        out.line(f"{limit.name}: {limit.how}")


def _row(rate: Rate, ratio: str) -> tuple[str, ...]:
    quantiles = (f"{rate.latencies[each]:.2f}" for each in ("p50", "p99", "p99.9"))
    return (rate.name, f"{rate.entries:,.0f}", f"{rate.bytes / 1e6:,.2f}", *quantiles, ratio)


def _ratio(done: Rate, limit: Rate) -> float:
    """Return which part of the limit was reached."""
    return round(done.entries / limit.entries, 3)


def _fields(rate: Rate) -> dict[str, object]:
    return {
        "name": rate.name,
        "how": rate.how,
        "entries_per_second": round(rate.entries, 1),
        "bytes_per_second": round(rate.bytes),
        "calls_per_second": round(rate.calls, 1),
        "latency_ms": {key: round(value, 3) for key, value in rate.latencies.items()},
    }
