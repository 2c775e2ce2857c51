"""Fuzz the sequencer's connections: many inputs, or those of one seed again."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from .connections import INPUTS_PER_WORLD, Outcome, run
from .transport import Broken


def _run(world: tuple[int, int]) -> Outcome | str:
    try:
        return run(*world)
    except Broken as error:
        return str(error)


def _worlds(seed: int, inputs: int) -> Iterator[tuple[int, int]]:
    """Divide inputs among seeds, each of which is a server of its own."""
    while inputs > 0:
        yield seed, min(inputs, INPUTS_PER_WORLD)
        inputs -= INPUTS_PER_WORLD
        seed += 1


def main() -> None:
    """Parse the command line, and exit with 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first one (%(default)s)")
    parser.add_argument(
        "--inputs",
        type=int,
        default=INPUTS_PER_WORLD,
        help="streams on connections; each %(default)s have a server and a seed of their own",
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes to run in (%(default)s)")
    options = parser.parse_args()
    began = time.monotonic()
    worlds = list(_worlds(options.seed, options.inputs))
    failed = frames = answers = resident = 0
    closed: Counter[str] = Counter()
    with ProcessPoolExecutor(options.jobs) as pool:
        for (seed, inputs), outcome in zip(worlds, pool.map(_run, worlds), strict=True):
            if isinstance(outcome, str):
                failed += 1
                print(f"seed {seed} FAILED: {outcome}")
                print(f"again: python -m tests.fuzz --seed {seed} --inputs {inputs}", flush=True)
                continue
            frames += outcome.frames
            answers += outcome.answers
            closed.update(outcome.closed)
            resident = max(resident, outcome.resident_kib)
    took = time.monotonic() - began
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(closed.items()))
    print(
        f"{options.inputs} inputs, {frames} frames, {answers} answers in {took:.0f} s:"
        f" {options.inputs / took:.0f} inputs/s; closed: {reasons}; at most {resident / 1024:.0f}"
        f" MiB in a process; {failed} of {len(worlds)} seeds failed"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
