"""The verb check: an audit of a log."""

from __future__ import annotations

import click

from zlog import Finding
from zlog.cli.exits import ExitCode
from zlog.cli.output import Output, note
from zlog.cli.parameters import json_option, log_argument
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.verb import Verb


@click.command(
    cls=Verb,
    examples="""
    zlog check orders
    zlog check orders --json | jq 'select(.serious)'
    """,
)
@log_argument
@json_option("Print a JSON object per finding.")
@pass_session
def check(session: Session, log: str, as_json: bool) -> int:
    """Audit a log while it is used.

    Reads every entry and compares every epoch. Prints what is wrong, and nothing if all is well.
    The exit code is 1 if data is lost or a promise broken; holes and layout changes under way are
    told too, and are no failure.
    """
    found = serious = 0
    with session.open_log(log) as opened, Output() as out:
        for finding in opened.check():
            found += 1
            serious += finding.serious
            out.line(to_json(_fields(finding)) if as_json else _line(finding))
            out.flush()
    if not found:
        note("all is well")
    return ExitCode.FAILURE if serious else ExitCode.OK


def _fields(finding: Finding) -> dict[str, object]:
    return {**finding._asdict(), "kind": finding.kind.value, "serious": finding.serious}


def _line(finding: Finding) -> str:
    where = ""
    if finding.position is not None and finding.end is not None:
        last = finding.end - 1
        single = last == finding.position
        where = f" position {last}" if single else f" positions {finding.position} to {last}"
    return f"{finding.kind.value}:{where} in {finding.object}: {finding.detail}"
