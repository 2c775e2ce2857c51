"""The command line: where, how often, how hard."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from console import say, verdict
from stores import empty_store, store_parser

import zlog
from torture.load import Load
from torture.verdict import faults, look
from torture.victim import Victim

_LOG = "torture"
_EARLY = 0.2
"""How often a run is killed at any moment of its start, rather than at its work."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and kill the query, and tell whether the table is exact."""
    options = _parser().parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="spark-torture-") as folder,
        empty_store(options) as url,
        zlog.connect(url) as store,
        zlog.Log.create(store, _LOG, width=options.width) as log,
    ):
        say(f"seed {options.seed}, store {url}")
        table = Path(folder) / "table"
        load = Load(log, options.rate)
        with load.running():
            _torture(url, table, load, options)
        if load.error is not None:
            raise load.error
        last = Victim(url, _LOG, table, options.rate * 60, ["--trigger", "available-now"])
        found = [] if last.wait() == 0 else ["the last run, which nobody killed, failed"]
        seen, tail, batches = look(table), log.tail(), last.batches()
        found += faults(seen, tail, load.acknowledged)
        (cursor,) = log.cursors()
        if cursor.position != tail:
            found.append(f"the cursor is at {cursor.position}, and the log's tail is {tail}")
    say(
        f"{options.kills} kills, {load.acknowledged:,} entries appended, {batches} batches"
        f" planned; the table has {seen.rows:,} rows at {seen.positions:,} positions"
    )
    return verdict("spark-torture", found)


def _parser() -> argparse.ArgumentParser:
    parser = store_parser("spark-torture")
    parser.add_argument("--kills", type=int, default=10, help="how often")
    parser.add_argument("--spread", type=float, default=4.0, help="seconds of work before a kill")
    parser.add_argument("--rate", type=int, default=2000, help="entries appended a second")
    parser.add_argument("--width", type=int, default=4, help="stripe objects")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1 << 32), help="of the moments"
    )
    return parser


def _torture(url: str, table: Path, load: Load, options: argparse.Namespace) -> None:
    dice = random.Random(options.seed)
    for number in range(options.kills):
        began = time.monotonic()
        victim = Victim(url, _LOG, table, options.rate)
        try:
            if number == 0 or dice.random() >= _EARLY:
                victim.wait_for_batch()
            time.sleep(dice.uniform(0, options.spread))
        finally:
            killed = victim.kill()
        say(
            f"kill {number + 1:2d} after {time.monotonic() - began:5.1f} s: {killed} processes,"
            f" {victim.batches()} batches planned so far, {load.acknowledged:,} entries appended"
        )
