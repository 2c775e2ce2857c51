"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.goals import Goal, Outcome


def tables(machine: Mapping[str, str], outcomes: Sequence[Outcome]) -> str:
    """Return the tables of a run.

    Raises:
        ValueError: a goal was not measured.
    """
    head = ("store", "what", "against", "zlog", "limit", "goal", "ratio")
    rows = [_row(outcome, goal) for outcome in outcomes for goal in outcome.run.goals]
    lines = ["### The machine", "", *table(("what", "is"), machine.items())]
    return "\n".join([*lines, "", "### Goals", "", *table(head, rows)]) + "\n"


def _row(outcome: Outcome, goal: Goal) -> tuple[str, ...]:
    report, limit = _find(outcome, goal)
    latency = limit["compare"] == "latency"
    ratio = _ratio(limit["ratio"])
    return (
        outcome.store,
        goal.what,
        limit["name"],
        _amount(report["result"], latency),
        _amount(limit, latency),
        goal.ratio,
        f"**{ratio}**" if goal.met_by(limit["ratio"]) else ratio,
    )


def _find(outcome: Outcome, goal: Goal) -> tuple[dict[str, Any], dict[str, Any]]:
    for report in outcome.reports:
        if report["result"]["name"].startswith(goal.subject):
            for limit in report["limits"]:
                if limit["name"] == goal.limit:
                    return report, limit
    raise ValueError(f"{outcome.run.command} did not measure {goal.what!r}")


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
