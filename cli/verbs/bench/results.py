"""Printing what a benchmark measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zlog.cli.output import Output
from zlog.cli.render import to_json
from zlog.cli.tables import table
from zlog.cli.verbs.bench.measure import Measured, Ratio


@dataclass(frozen=True)
class Report:
    """One benchmark's outcome.

    Attributes:
        benchmark: its name.
        title: what was measured, in one line.
        workload: its options.
        measured: the load, then its limits.
    """

    benchmark: str
    title: str
    workload: Mapping[str, object]
    measured: Sequence[Measured]


def show(reports: Sequence[Report], *, as_json: bool) -> None:
    """Print reports: tables, or JSON objects, one on a line."""
    with Output() as out:
        for report in reports:
            if as_json:
                out.line(to_json(_fields(report)))
            else:
                _table(out, report)


def _fields(report: Report) -> dict[str, object]:
    load, *limits = report.measured
    return {
        "benchmark": report.benchmark,
        "title": report.title,
        "workload": dict(report.workload),
        "result": _rate(load),
        "limits": [
            {
                **_rate(limit),
                "compare": limit.compare.value,
                "ratio": round(limit.ratio, 4),
                "ratios": [round(ratio, 4) for ratio in limit.ratios],
            }
            for limit in limits
        ],
    }


def _rate(measured: Measured) -> dict[str, object]:
    return {
        "name": measured.name,
        "how": measured.how,
        "entries_per_second": round(measured.entries, 1),
        "bytes_per_second": round(measured.bytes),
        "calls_per_second": round(measured.calls, 1),
        "latency_ms": {key: round(value, 4) for key, value in measured.latencies.items()},
        "cpu_us_per_entry": {who: round(spent, 3) for who, spent in measured.cpu.items()},
        "memory_peak_bytes": measured.memory,
    }


_CPU = {"client": "CLIENT", "osd": "OSD", "sequencer": "SEQR"}


def _table(out: Output, report: Report) -> None:
    """Print a line for the load and one for each limit, then what each of them did."""
    out.line(report.title)
    who = [name for name in _CPU if any(name in each.cpu for each in report.measured)]
    rates = ("", "ENTRIES/S", "MB/S", "P50 MS", "P99 MS", "P99.9 MS")
    head = (*rates, *(f"{_CPU[name]} US" for name in who), "MIB", "RATIO")
    table(out, head, [_row(each, who) for each in report.measured], head_always=True)
    for each in report.measured:
        out.line(f"{each.name}: {each.how}")


def _row(each: Measured, who: Sequence[str]) -> tuple[str, ...]:
    times = (f"{each.latencies[name]:.3f}" for name in ("p50", "p99", "p99.9"))
    cpu = (f"{each.cpu[name]:.2f}" if name in each.cpu else "" for name in who)
    memory = f"{each.memory / (1 << 20):.0f}" if each.memory else ""
    return (
        each.name,
        f"{each.entries:,.0f}",
        f"{each.bytes / 1e6:,.2f}",
        *times,
        *cpu,
        memory,
        _ratio(each),
    )


def _ratio(each: Measured) -> str:
    if not each.ratios:
        return ""
    return f"{each.ratio:.2f}" if each.compare is Ratio.RATE else f"{each.ratio:.1f} x as long"
