"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.goals import Goal, Outcome
from bench.results import cells


def tables(machine: Mapping[str, str], outcomes: Sequence[Outcome]) -> str:
    """Return the tables of a run.

    Raises:
        ValueError: a goal was not measured.
    """
    lines = [*_machine(machine), "", *_goals(outcomes), ""]
    for kind in dict.fromkeys(outcome.store for outcome in outcomes):
        lines += _details(kind, [each for each in outcomes if each.store == kind])
    return "\n".join(lines) + "\n"


def _machine(machine: Mapping[str, str]) -> Iterator[str]:
    yield "### The machine"
    yield ""
    yield from table(("what", "is"), machine.items())


def _goals(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "### Goals"
    yield ""
    rows = []
    for outcome in outcomes:
        for goal in outcome.run.goals:
            report, limit = _find(outcome, goal)
            latency = limit["compare"] == "latency"
            ratio = _ratio(limit["ratio"])
            rows.append(
                (
                    outcome.store,
                    goal.what,
                    limit["name"],
                    _amount(report["result"], latency),
                    _amount(limit, latency),
                    goal.ratio,
                    f"**{ratio}**" if goal.met_by(limit["ratio"]) else ratio,
                )
            )
    head = ("store", "what", "against", "zlog", "limit", "goal", "ratio")
    yield from table(head, rows)


def _find(outcome: Outcome, goal: Goal) -> tuple[dict[str, Any], dict[str, Any]]:
    for report in outcome.reports:
        if report["result"]["name"].startswith(goal.subject):
            for limit in report["limits"]:
                if limit["name"] == goal.limit:
                    return report, limit
    raise ValueError(f"{outcome.run.command} did not measure {goal.what!r}")


def _details(kind: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"### All figures: {kind}"
    yield ""
    for outcome in outcomes:
        yield f"`{outcome.run.command}`"
        yield ""
        for report in outcome.reports:
            yield from _report(report)
            yield ""


def _report(report: Mapping[str, Any]) -> Iterator[str]:
    load, limits = report["result"], report["limits"]
    who = sorted({name for each in (load, *limits) for name in each["cpu_us_per_entry"]})
    head = ("", "entries/s", "MB/s", "p50 ms", "p99 ms", "p99.9 ms")
    rows = [(*cells(load, who), "")]
    rows += [(*cells(limit, who), _ratio(limit["ratio"])) for limit in limits]
    yield from table((*head, *(f"{name} CPU µs" for name in who), "MiB", "ratio"), rows)


def _amount(each: Mapping[str, Any], latency: bool) -> str:
    if latency:
        return f"{each['latency_ms']['p50']:.3f} ms"
    return f"{each['entries_per_second']:,.0f}/s"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def table(head: Sequence[str], rows: Any) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
