"""Measure the tables that docs/performance.md summarises. `make bench` runs this."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bench import REPOSITORY, page
from bench.goals import RUNS, STORES, Outcome, Run
from bench.machine import describe
from bench.stores import running_store


def main() -> None:
    """Run the table. Exits with 1 if a benchmark fails."""
    options = _parser().parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    where = describe(options.folder)
    began = time.monotonic()
    try:
        outcomes = [outcome for kind in options.stores for outcome in _measure(kind, options)]
    except subprocess.CalledProcessError as error:
        sys.exit(f"bench: {' '.join(error.cmd)}: exit code {error.returncode}")
    where["took"] = f"{time.monotonic() - began:.0f} s"
    if options.json:
        found = {"machine": where, "outcomes": [asdict(outcome) for outcome in outcomes]}
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    if options.page:
        options.page.write_text(page.tables(where, outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.table", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="time per load and per limit")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--only", default="", help="select runs by a part of the command")
    parser.add_argument("--folder", type=Path, required=True, help="folder for the stores")
    parser.add_argument("--json", type=Path, help="the file for all figures")
    parser.add_argument("--page", type=Path, help="the file for the tables, in Markdown")
    return parser


def _measure(kind: str, options: argparse.Namespace) -> Iterator[Outcome]:
    runs = [run for run in RUNS if kind in run.stores and options.only in run.command]
    if not runs:
        return
    with running_store(kind, options.folder.resolve()) as url:
        for run in runs:
            sys.stderr.write(f"{kind}: {run.command}\n")
            yield Outcome(kind, run, _reports(run, url, options.seconds))


def _reports(run: Run, url: str, seconds: float) -> list[dict[str, object]]:
    """Run one benchmark on a store. Returns the JSON objects that it prints."""
    words = run.command.split()[1:]
    command = [sys.executable, *words, "--store", url, "--seconds", str(seconds), "--json"]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
