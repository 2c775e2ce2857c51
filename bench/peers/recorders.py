"""Measure zlog's recorders for the library eventsourcing next to the library's own.

`make bench-peers` runs this. One client appends events one by one, each under a condition. SQLite
syncs each event as zlog does. The recorder in memory stores nothing on disk, and reads all events.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from eventsourcing.dcb.api import DCBAppendCondition, DCBEvent, DCBQuery, DCBQueryItem
from eventsourcing.dcb.persistence import DCBInfrastructureFactory
from eventsourcing.persistence import InfrastructureFactory, StoredEvent

from bench import page
from bench.measure import Candidate, in_turns, repeat

DATA = bytes(100)
STUDENTS = 10
"""The number of students in a course."""

Call = Callable[[], int]


def register(factory: DCBInfrastructureFactory[Any]) -> Call:
    """Register a student, unless the student exists."""
    recorder = factory.dcb_recorder()

    def call() -> int:
        student = f"student-{uuid4()}"
        exists = DCBQuery([DCBQueryItem(["StudentRegistered"], [student])])
        event = DCBEvent("StudentRegistered", DATA, [student])
        recorder.append([event], DCBAppendCondition(exists))
        return 1

    return call


def enrol(factory: DCBInfrastructureFactory[Any]) -> Call:
    """Read the events of a course and a student, and enrol the student."""
    recorder, numbers = factory.dcb_recorder(), count()

    def call() -> int:
        number = next(numbers)
        tags = [f"course-{number // STUDENTS}", f"student-{number}"]
        boundary = DCBQuery([DCBQueryItem(["StudentEnrolled"], [tag]) for tag in tags])
        read = recorder.read(boundary)
        assert len([*read]) == number % STUDENTS
        event = DCBEvent("StudentEnrolled", DATA, tags)
        recorder.append([event], DCBAppendCondition(boundary, read.head))
        return 1

    return call


def insert(factory: InfrastructureFactory[Any]) -> Call:
    """Insert the first event of an aggregate."""
    recorder = factory.application_recorder()

    def call() -> int:
        recorder.insert_events([StoredEvent(uuid4(), 1, "school:Course.Offered", DATA)])
        return 1

    return call


DCB, AGGREGATES = DCBInfrastructureFactory.construct, InfrastructureFactory.construct
LOADS: dict[str, tuple[Callable[..., Any], Callable[[Any], Call], str]] = {
    "register a student": (DCB, register, "eventsourcing.dcb.popo"),
    "read and enrol": (DCB, enrol, "eventsourcing.dcb.popo"),
    "insert an aggregate": (AGGREGATES, insert, "eventsourcing.sqlite"),
}


def main() -> None:
    """Measure each load, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.recorders", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="time per load and recorder")
    parser.add_argument("--folder", type=Path, required=True, help="folder for temporary stores")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, (construct, load, peer) in LOADS.items():
        with TemporaryDirectory(prefix="zlog-", dir=options.folder) as own:
            env = {"ZLOG_STORE": Path(own).resolve().as_uri(), "SQLITE_DBNAME": f"{own}/sqlite"}
            env["ZLOG_LOG"] = "school"
            with (
                closing(construct({**env, "PERSISTENCE_MODULE": "zlog.eventsourcing"})) as mine,
                closing(construct({**env, "PERSISTENCE_MODULE": peer})) as its,
            ):
                ours, other = (
                    Candidate("", "", partial(repeat, load(factory))) for factory in (mine, its)
                )
                found = in_turns(ours, [other], options.seconds, len(DATA))
        rows.append((name, *(f"{each['entries_per_second']:,.0f}" for each in found), peer))
    print(f"## Recorders\n\nEvents per second, with eventsourcing {version('eventsourcing')}:\n")
    print("\n".join(page.table(("one client", "zlog", "the library's own", "module"), rows)))


if __name__ == "__main__":
    main()
