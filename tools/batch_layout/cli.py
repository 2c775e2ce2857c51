"""The command line: which stores, for how long, and where the figures go."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import product
from pathlib import Path

from console import note, say
from programs import ProgramFailed

from batch_layout.classes import LAYOUTS, build
from batch_layout.figures import Figure, read, written
from batch_layout.osd import running
from batch_layout.tables import tables

SIZES = (100, 1024, 16384)
BATCHES = (1, 16, 256, 1024)
STORES = ("bluestore", "memstore")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and print the tables as Markdown; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        figures = _compare(options)
    except ProgramFailed as error:
        note(f"layouts: {error}")
        return 1
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in figures], indent=1) + "\n")
    for line in tables(figures):
        say(line)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="layouts", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True, help="to build and make stores in")
    parser.add_argument("--seconds", type=float, default=0.4, help="of one turn")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each layout")
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="bytes of an entry")
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES, help="entries of one")
    parser.add_argument("--json", type=Path, help="the file for all figures")
    return parser


def _compare(options: argparse.Namespace) -> list[Figure]:
    folder = options.folder.resolve()
    classes = {layout: build(layout, folder) for layout in LAYOUTS}
    figures: list[Figure] = []
    for store, size, batch in product(options.stores, options.sizes, options.batches):
        note(f"{store}: {size} B × {batch}")
        with ExitStack() as stack:
            osds = [
                stack.enter_context(running(store, layout, library, folder))
                for layout, library in classes.items()
            ]
            for osd in osds * options.rounds:
                figures.append(written(store, osd, size, batch, options.seconds))
                figures.append(read(store, osd, size, batch, options.seconds))
    return figures
