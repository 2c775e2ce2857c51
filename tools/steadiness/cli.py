"""The command line: where, for how long, how much."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from console import say, verdict
from stores import empty_store, store_parser

import zlog
from steadiness.gauge import Gauge, Taken, gauge_of
from steadiness.load import CURSOR, Load
from steadiness.verdict import unbounded

_LOG = "steady"
_HEAD = "   s   appended     objects       keys  allocated   RocksDB      held"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load, print what the store takes, and tell whether it stayed bounded."""
    options = _parser().parse_args(arguments)
    with (
        empty_store(options) as url,
        gauge_of(url) as gauge,
        zlog.connect(url) as store,
        _new_log(store, options) as log,
    ):
        log.set_retention(zlog.Retention(bytes=options.keep << 20))
        log.cursor(CURSOR, create="earliest")
        load = Load(url, _LOG, options.rate * 1e6 / options.writers, options.entry_bytes)
        with load.running(options.writers):
            samples = _watch(gauge, log, load, options)
        epoch = log.views()[-1].epoch
    found = [*load.complaints, *unbounded(samples)]
    say(
        f"{load.appended >> 20} MiB appended, {load.read:,} entries read, {load.filled} positions"
        f" filled, epoch {epoch}"
    )
    return verdict("steady", found)


def _parser() -> argparse.ArgumentParser:
    parser = store_parser("steady")
    parser.add_argument("--minutes", type=float, default=10.0, help="to run")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between two looks")
    parser.add_argument("--keep", type=int, default=64, help="MiB of data that retention leaves")
    parser.add_argument("--rate", type=float, default=4.0, help="MB appended a second, together")
    parser.add_argument("--writers", type=int, default=2, help="threads that append")
    parser.add_argument("--entry-bytes", type=int, default=10_000, help="of entries in batches")
    parser.add_argument("--width", type=int, default=4, help="stripe objects")
    parser.add_argument(
        "--stripe-bytes", type=int, default=8 << 20, help="after which objects roll"
    )
    parser.add_argument("--stripe-records", type=int, default=5000, help="after which objects roll")
    parser.add_argument("--json", type=Path, help="the file for all samples, a line each")
    return parser


def _new_log(store: zlog.Store, options: argparse.Namespace) -> zlog.Log:
    return zlog.Log.create(
        store,
        _LOG,
        width=options.width,
        stripe_bytes=options.stripe_bytes,
        stripe_records=options.stripe_records,
    )


def _watch(gauge: Gauge, log: zlog.Log, load: Load, options: argparse.Namespace) -> list[Taken]:
    """Look at the store again and again; returns what was seen."""
    samples: list[Taken] = []
    began = time.monotonic()
    say(_HEAD)
    while (passed := time.monotonic() - began) < options.minutes * 60 and not load.complaints:
        seen, stat = gauge.look(), log.stat()
        samples.append(seen)
        say(
            f"{passed:4.0f} {load.appended >> 20:6d} MiB {seen.objects:11d} {seen.keys:10d}"
            f" {seen.bytes >> 20:6d} MiB {seen.database >> 20:5d} MiB {stat.bytes >> 20:5d} MiB"
        )
        if options.json:
            line = {"second": passed, "appended": load.appended, **seen._asdict()}
            with options.json.open("a") as file:
                file.write(json.dumps({**line, "held": stat.bytes, "tail": stat.tail}) + "\n")
        time.sleep(max(0.0, began + len(samples) * options.interval - time.monotonic()))
    return samples
