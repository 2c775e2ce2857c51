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
    return "\n".join([*_machine(machine), "", *_goals(outcomes)]) + "\n"


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
