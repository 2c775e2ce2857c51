"""The command check: an audit of a log."""

from __future__ import annotations

from typing import Any

import click

from zlog import CheckSummary, Finding, Log
from zlog.cli.command import Command
from zlog.cli.exit_codes import ExitCode
from zlog.cli.output import Output, labelled, note, say
from zlog.cli.parameters import json_option
from zlog.cli.progress import Progress
from zlog.cli.render import entries_of, to_json
from zlog.cli.several import each_open_log
from zlog.cli.units import human_bytes


@click.command(
    cls=Command,
    examples="""
    zlog check orders
    zlog check orders --json | jq 'select(.serious)'
    zlog check orders --repair --replicas 8
    zlog check orders --rebuild-index
    zlog check --match '*' --json
    """,
)
@each_open_log
@click.option(
    "--no-orphans",
    is_flag=True,
    help="Do not search for objects that belong to no view. On Ceph, this search lists the whole"
    " namespace.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="Repair the damaged replica of an object from an intact one (Ceph).",
)
@click.option(
    "--replicas",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="After the audit, repeat it N times on replicas chosen at random. Without this, only"
    " primary replicas are read.",
)
@click.option(
    "--rebuild-index",
    is_flag=True,
    help="Rebuild the tag index if it differs from the entries.",
)
@json_option("Print a JSON object per finding, and a summary at the end of each log.")
def check(log: Log, no_orphans: bool, as_json: bool, **options: Any) -> int:
    """Audit a log while it is in use.

    The audit verifies the checksum of each entry without transferring its data, except that it
    reads the files of offloaded stripes. It also looks for entries that were appended twice, for
    objects that contradict the log's head, and for errors in the tag index. If the log has MACs and
    you give the key, the audit also reads each entry and verifies its MAC. The command prints
    nothing if it finds no problem.

    The exit code is 1 if data is lost or a guarantee is broken. It is 0 if the audit finds only
    repairs, holes older than the hole timeout, orphaned objects, or unfinished trims and layout
    changes, because clients complete or skip these as they work.
    """
    found = serious = 0
    with Output() as out:
        with Progress(None, "checking") as progress:
            audit = log.check(orphans=not no_orphans, progress=progress.reach, **options)
            for finding in audit:
                found += 1
                serious += finding.serious
                progress.give_way()
                words = f"{finding.kind.value}: {_where(finding)}: {finding.detail}"
                fields = {"log": log.name, **finding_fields(finding)}
                out.line(to_json(fields) if as_json else labelled(words))
                out.flush()
        if as_json:
            out.line(to_json({"log": log.name, "summary": audit.summary._asdict()}))
    if not (no_orphans or audit.summary.listed):
        say("orphaned objects were not searched for: this client is not allowed to list objects")
    if audit.summary.forged is None:
        say("MACs were not checked: give the log's key with --mac-key-file")
    note(f"{_verdict(found, serious)}: {_seen(audit.summary)}")
    return ExitCode.FAILURE if serious else ExitCode.OK


def finding_fields(finding: Finding) -> dict[str, object]:
    """Return a finding for JSON."""
    return {**finding._asdict(), "kind": finding.kind.value, "serious": finding.serious}


def _where(finding: Finding) -> str:
    positions = finding.positions
    if positions is None:
        return finding.object
    if len(positions) == 1:
        return f"position {positions[0]} in {finding.object}"
    every = "" if positions.step == 1 else f", every {_ordinal(positions.step)},"
    return f"positions {positions[0]} to {positions[-1]}{every} in {finding.object}"


def _ordinal(number: int) -> str:
    teen = number % 100 in (11, 12, 13)
    ending = "th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _verdict(found: int, serious: int) -> str:
    if not found:
        return "no problems found"
    findings = "1 finding" if found == 1 else f"{found:,} findings"
    return f"{findings}, {f'{serious:,}' if serious else 'none'} of them serious"


def _seen(summary: CheckSummary) -> str:
    objects = "1 object" if summary.objects == 1 else f"{summary.objects:,} objects"
    if summary.files:
        objects += " and 1 file" if summary.files == 1 else f" and {summary.files:,} files"
    return f"{entries_of(summary.entries)}, {human_bytes(summary.bytes)}, in {objects}"
