"""Run many seeds, or one with its trace: ``python -m tests.sim``, ``make chaos``."""

from __future__ import annotations

import argparse
import functools
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from .run import Kind, Outcome, run


def _run(seed: int, kind: Kind | None) -> Outcome:
    outcome = run(seed, kind=kind)
    if outcome.ok:
        outcome.lines = []  # they would be carried from process to process for nothing
    return outcome


def main() -> None:
    """Parse the command line, and exit with 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this one, and show what happens")
    parser.add_argument("--quiet", action="store_true", help="show no trace, only what is wrong")
    parser.add_argument("--first", type=int, default=0, help="the first of many")
    parser.add_argument("--seeds", type=int, default=5000, help="how many")
    parser.add_argument("--jobs", type=int, default=2, help="processes to run them in")
    parser.add_argument(
        "--kind",
        choices=[kind.value for kind in Kind],
        help="what is special about the log in all runs; else the seed decides",
    )
    options = parser.parse_args()
    kind = Kind(options.kind) if options.kind else None
    if options.seed is not None:
        sys.exit(_replay(options.seed, kind, show=not options.quiet))
    sys.exit(_run_many(options.first, options.seeds, options.jobs, kind))


def _replay(seed: int, kind: Kind | None, *, show: bool) -> int:
    outcome = run(seed, kind=kind, show=show)
    for violation in outcome.violations:
        print(violation)
    print(
        f"seed {seed}: {'as it should be' if outcome.ok else 'FAILED'}; {outcome.operations}"
        f" operations in {outcome.seconds:.1f} s of virtual time, digest {outcome.digest}"
    )
    return 0 if outcome.ok else 1


def _run_many(first: int, count: int, jobs: int, kind: Kind | None) -> int:
    began = time.monotonic()
    failed = operations = calls = 0
    virtual = 0.0
    one = functools.partial(_run, kind=kind)
    with ProcessPoolExecutor(jobs) as pool:
        for outcome in pool.map(one, range(first, first + count), chunksize=10):
            operations += outcome.operations
            calls += outcome.store_calls
            virtual += outcome.seconds
            if not outcome.ok:
                failed += 1
                print("\n".join(outcome.violations))
                print(f"seed {outcome.seed} FAILED; replay it: make chaos SEED={outcome.seed}\n")
    took = time.monotonic() - began
    print(
        f"{count} runs, {operations} operations on the log, {calls} on objects, {virtual:.0f} s of"
        f" virtual time, in {took:.0f} s: {count / took:.1f} runs/s, {operations / took:.0f}"
        f" operations/s; {failed} failed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    main()
