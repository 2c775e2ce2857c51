"""The command line: which runs, where, and where the results go."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from console import note
from programs import ProgramFailed

from standard import machine, page
from standard.goals import RUNS
from standard.runs import Outcome, run_on, store_of_kind

STORES = ("memstore", "bluestore", "embedded")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the standard table; returns the exit code."""
    options = _parser().parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    where = machine.describe(options.folder)
    began = time.monotonic()
    try:
        outcomes = [outcome for kind in options.stores for outcome in _measure(kind, options)]
    except ProgramFailed as error:
        note(f"bench: {error}")
        return 1
    where["took"] = f"{time.monotonic() - began:.0f} s"
    if options.json:
        found = {"machine": where, "outcomes": [asdict(outcome) for outcome in outcomes]}
        figures = json.dumps(found, indent=1, ensure_ascii=False)
        # The figures go into the documentation, where folders of this machine say nothing.
        options.json.write_text(figures.replace(str(options.folder.resolve()), "…") + "\n")
    if options.page:
        page.write(options.page, where, outcomes)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--zlog", default=shutil.which("zlog"), help="the command (%(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each load and each limit")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--only", default="", help="only runs whose command line contains this")
    parser.add_argument("--folder", type=Path, required=True, help="to make the stores in")
    parser.add_argument("--json", type=Path, help="the file for all figures")
    parser.add_argument("--page", type=Path, help="the page whose tables are to be replaced")
    return parser


def _measure(kind: str, options: argparse.Namespace) -> list[Outcome]:
    runs = [run for run in RUNS if kind in run.stores and options.only in " ".join(run.words)]
    outcomes = []
    if not runs:
        return []
    with store_of_kind(kind, options.folder.resolve()) as url:
        for run in runs:
            note(f"{kind}: zlog bench {' '.join(run.words)}")
            outcomes.append(run_on(options.zlog, url, kind, run, options.seconds))
    return outcomes
