"""Faults for minutes on a real cluster, and kills on an embedded store."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from ..support.ceph import ClusterSpec, running_cluster
from . import partitions, power
from .faults import CLUSTER_OPTIONS, EVERYWHERE, KINDS, OSD_CUT_OFF
from .kills import run_kills
from .run import (
    ENROLLERS,
    EXCLUSIVE,
    FULL,
    MIXED,
    MONITORS,
    OBJECTS,
    PLAIN,
    WAYS,
    Crowd,
    Outcome,
    run_on_ceph,
)


def main() -> None:
    """Parse the command line, and exit with 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="plans the faults (%(default)s)")
    parser.add_argument("--minutes", type=float, default=10.0, help="of faults (%(default)g)")
    parser.add_argument("--osds", type=int, default=3, help="with BlueStore (%(default)s)")
    parser.add_argument(
        "--kind", action="append", choices=KINDS, metavar="KIND", help="of fault; all if not given"
    )
    parser.add_argument(
        "--clients",
        choices=WAYS,
        default=MIXED,
        help="clients and sequencers use the object class, do without, or either by turns",
    )
    parser.add_argument(
        "--exclusive", action="store_true", help="have three clients contend for writing the log"
    )
    parser.add_argument(
        "--objects", action="store_true", help="have four clients share a space of objects"
    )
    parser.add_argument(
        "--enrolments", action="store_true", help="have ten clients enrol students in courses"
    )
    parser.add_argument(
        "--kills", type=int, default=0, help="kill processes on an embedded store, this often"
    )
    parser.add_argument(
        "--power",
        action="store_true",
        help="with --kills: all at once, and what was not synced is lost",
    )
    parser.add_argument(
        "--partitions",
        action="store_true",
        help="cut OSDs off too, in a network namespace; needs root",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--folder", type=Path, help="make it, and keep journals there")
    options = parser.parse_args()
    if OSD_CUT_OFF in (options.kind or ()) and not options.partitions:
        parser.error(f"{OSD_CUT_OFF!r} needs --partitions")
    if options.partitions:
        partitions.move_into_own_network()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and clean up
    with tempfile.TemporaryDirectory(prefix="zlog-") as temporary:
        folder = options.folder or Path(temporary)
        if options.folder:
            folder.mkdir(parents=True)  # journals of another run would be taken for this one's
        if options.kills:
            outcome = run_kills(folder, options.seed, options.kills, power=options.power)
        else:
            outcome = _on_ceph(options, folder)
    print(json.dumps(asdict(outcome)) if options.json else _render(outcome))
    sys.exit(1 if outcome.wrong else 0)


def _on_ceph(options: argparse.Namespace, folder: Path) -> Outcome:
    own = partitions.options(options.osds) if options.partitions else ()
    kinds = tuple(options.kind or (KINDS if options.partitions else EVERYWHERE))
    with_class = options.clients != PLAIN
    spec = ClusterSpec(
        "bluestore",
        options.osds,
        MONITORS,
        options=(*CLUSTER_OPTIONS, *own),
        with_class=with_class,
    )
    with power.that_may_fail(folder / "power", power.BLUESTORE), running_cluster(spec) as cluster:
        seconds, way = options.minutes * 60, options.clients
        crowd = _crowd(options)
        return run_on_ceph(cluster, folder, options.seed, seconds, crowd, kinds, way=way)


def _crowd(options: argparse.Namespace) -> Crowd:
    chosen = {
        options.exclusive: EXCLUSIVE,
        options.objects: OBJECTS,
        options.enrolments: ENROLLERS,
    }
    return chosen.get(True, FULL)


def _render(outcome: Outcome) -> str:
    lines = list(outcome.wrong)
    lines.append(f"seed {outcome.seed}, {outcome.seconds:.0f} s: {len(outcome.wrong)} wrong")
    done = ", ".join(f"{count} {action}" for action, count in sorted(outcome.operations.items()))
    total = sum(outcome.operations.values())
    lines.append(f"{total} operations ({done}), {outcome.unknown} of unknown outcome")
    if outcome.enrolments:
        lines.append(f"{outcome.enrolments} enrolments")
    if outcome.transactions:
        done = ", ".join(f"{n} {result}" for result, n in sorted(outcome.transactions.items()))
        lines.append(f"{sum(outcome.transactions.values())} transactions ({done})")
    lines.append(f"{'':4} {'longest stall':30} {'of all':>7}   {'of one':>7}")
    for kind, count in sorted(outcome.faults.items()):
        stall = outcome.stalls.get(kind)
        shown = f"{stall.any:7.3f} s {stall.one:7.3f} s" if stall else ""
        lines.append(f"{count:4d} {kind:30} {shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
