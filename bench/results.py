"""Prints the results of benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bench.measure import Figures, Ratio
from zlog.cli.output import Output
from zlog.cli.render import to_json
from zlog.cli.tables import table


@dataclass(frozen=True)
class Report:
    """The result of one benchmark.

    Attributes:
        benchmark: its name.
        title: a one-line description of what was measured.
        workload: its options.
        measured: the load and its limits, in this order.
    """

    benchmark: str
    title: str
    workload: Mapping[str, object]
    measured: Sequence[Figures]


def show(reports: Sequence[Report], *, as_json: bool) -> None:
    """Print reports as tables, or as JSON objects, one per line."""
    with Output() as out:
        for report in reports:
            if as_json:
                fields = asdict(report)
                result, *limits = fields.pop("measured")
                out.line(to_json({**fields, "result": result, "limits": limits}))
            else:
                _table(out, report)


_CPU = {"client": "CLIENT", "osd": "OSD", "sequencer": "SEQR"}


def _table(out: Output, report: Report) -> None:
    """Print a line for the load and each limit, then a description of each."""
    out.line(report.title)
    used = {name for each in report.measured for name in each["cpu_us_per_entry"]}
    who = [name for name in _CPU if name in used]
    rates = ("", "ENTRIES/S", "MB/S", "P50 MS", "P99 MS", "P99.9 MS")
    head = (*rates, *(f"{_CPU[name]} US" for name in who), "MIB", "RATIO")
    rows = [(*cells(each, who), _ratio_of(each)) for each in report.measured]
    table(out, head, rows, head_always=True)
    for each in report.measured:
        out.line(f"{each['name']}: {each['how']}")


def cells(each: Figures, who: Sequence[str]) -> tuple[str, ...]:
    """Return a candidate's name, rates, latencies, CPU times and memory."""
    times, cpu, memory = each["latency_ms"], each["cpu_us_per_entry"], each["memory_peak_bytes"]
    return (
        each["name"],
        f"{each['entries_per_second']:,.0f}",
        f"{each['bytes_per_second'] / 1e6:,.2f}",
        *(f"{times[name]:.3f}" for name in ("p50", "p99", "p99.9")),
        *(f"{cpu[name]:.2f}" if name in cpu else "" for name in who),
        f"{memory / (1 << 20):.0f}" if memory else "",
    )


def _ratio_of(each: Figures) -> str:
    """Return how the load compares with a limit, in the words of the table."""
    if each.get("ratio") is None:
        return ""
    rate = each["compare"] == Ratio.RATE.value
    return f"{each['ratio']:.2f}" if rate else f"{each['ratio']:.1f} x as long"
