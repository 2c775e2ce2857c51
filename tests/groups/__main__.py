"""Repeat a seed of the simulation, or let processes work on a store for longer."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from ..support.ceph import ClusterSpec, running_cluster
from .run import Outcome, run
from .simulation import simulate


def main() -> None:
    """Parse the command line, and exit with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.groups", description=__doc__)
    parser.add_argument("mode", choices=("queue", "ordered"))
    parser.add_argument("--simulate", type=int, metavar="SEED", help="a seed, in virtual time")
    parser.add_argument("--seconds", type=float, default=60.0, help="of faults (%(default)g)")
    parser.add_argument("--entries", type=int, default=0, help="appended before (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (%(default)s)")
    parser.add_argument("--ceph", action="store_true", help="on a cluster, not in a directory")
    options = parser.parse_args()
    if options.simulate is not None:
        wrong = simulate(options.simulate, options.mode).wrong
    else:
        outcome = _run(options)
        wrong = outcome.wrong
        print(outcome)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


def _run(options: argparse.Namespace) -> Outcome:
    given = {"seconds": options.seconds, "entries": options.entries, "seed": options.seed}
    with tempfile.TemporaryDirectory(prefix="zlog-") as temporary:
        folder = Path(temporary)
        if not options.ceph:
            return run((folder / "store").as_uri(), folder, options.mode, **given)
        with running_cluster(ClusterSpec("bluestore", 3)) as cluster:
            return run(cluster.url(), folder, options.mode, **given)


if __name__ == "__main__":
    main()
