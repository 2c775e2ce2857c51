"""Measure zlog and other systems, and print the tables in Markdown.

`make bench-peers` runs this. Systems that are not installed are left out and listed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import page
from bench.machine import describe
from bench.measure import Candidate, Figures, Ratio, Slice, in_turns, repeat
from bench.peers.known import Kafka, Nats, Redis, Sqlite
from bench.peers.peer import STEP, Missing, Peer
from bench.read import Reader, ReadLoad
from bench.stores import running_store
from bench.testbed import Testbed, new_testbed, watched
from bench.writers import Workload, Writers
from zlog import Log
from zlog.cli.session import Session
from zlog.cli.signals import terminable
from zlog.groups import Groups, Queue
from zlog.limits import STRIPE_UNIT_DEFAULT

WIDTH = 8
READ_ENTRIES = 65536

QUEUED = 8000
"""The number of entries that a queue has at the beginning of a turn. A turn may end earlier."""

GROUPS: dict[str, tuple[str, tuple[type[Peer], ...]]] = {
    "libraries": ("embedded", (Sqlite,)),
    "servers": ("bluestore", (Redis, Nats, Kafka)),
}
"""The comparisons, by name: the kind of zlog's store, and the peers."""


@dataclass(frozen=True)
class Load:
    """A row of the table: appends, or reads of entries that were appended in such batches."""

    name: str
    size: int = 100
    batch: int = 1
    depth: int = 1
    reads: bool = False
    through: str = "tasks"

    @property
    def compare(self) -> Ratio:
        """The compared quantity: the rate, or the latency if only one entry is in flight."""
        return Ratio.LATENCY if self.at_once == 1 else Ratio.RATE

    @property
    def at_once(self) -> int:
        """The number of entries in flight."""
        return self.batch * self.depth

    def of_zlog(self, testbed: Testbed) -> Candidate:
        """Return this load for a log."""
        if self.reads:
            reads = ReadLoad(self.size, READ_ENTRIES, self.batch, WIDTH, STRIPE_UNIT_DEFAULT)
            reader = Reader(testbed, testbed.enter(testbed.new_log(WIDTH)), reads)
            return testbed.load("zlog", reader.how, reader.run)
        size, batch, depth = self.size, self.batch, self.depth
        load = Workload(size, batch, 1, depth, WIDTH, STRIPE_UNIT_DEFAULT, through=self.through)
        return testbed.load("zlog", "", testbed.enter(Writers(testbed, load)).run)

    def of_lmdb(self, testbed: Testbed) -> Candidate:
        """Return this load for LMDB alone, in the testbed's store."""
        if self.reads:
            log: dict[str, Any] = {"size": self.size, "entries": READ_ENTRIES}
            return testbed.limit("LMDB", "", "lmdb_scans", STEP, window=STEP, **log)
        puts: dict[str, Any] = {"keys": self.at_once, "size": self.size}
        return testbed.limit("LMDB", "", "lmdb_puts", self.at_once, self.compare, **puts)

    def of_peer(self, peer: Peer) -> Candidate:
        """Return this load for a peer. Each turn of appends has a new log."""
        entries = [os.urandom(self.size) for _ in range(self.at_once)]

        def append() -> int:
            peer.append(entries)
            return len(entries)

        if self.reads:
            peer.empty()
            for _ in range(0, READ_ENTRIES, len(entries)):
                append()
        run = watched({"server": peer.server}, peer.read if self.reads else partial(repeat, append))

        def turn(seconds: float) -> Slice:
            if not self.reads:
                peer.empty()
                append()  # one-time work is not measured
            return run(seconds)

        return Candidate(peer.name, peer.how, turn, self.compare)


@contextmanager
def _removed(log: Log, group: str) -> Iterator[None]:
    """Remove a group at the end of a ``with`` block."""
    yield
    Groups(log).remove(group)


@dataclass(frozen=True)
class QueueLoad:
    """A row of the table: a worker takes and acknowledges entries in batches."""

    name: str
    size: int = 100
    batch: int = 100
    compare: Ratio = Ratio.RATE

    def of_zlog(self, testbed: Testbed) -> Candidate:
        """Return this load for a log and a group, which all turns share."""
        log = testbed.enter(Log.open(testbed.store, testbed.enter(testbed.new_log(WIDTH))))
        testbed.enter(_removed(log, "bench"))
        queue = testbed.enter(Queue(log, "bench"))

        def take() -> int:
            jobs = queue.take(self.batch)
            for job in jobs:
                job.ack()
            queue.flush()
            return len(jobs)

        run = watched(testbed.servers, partial(self._run, take))

        def turn(seconds: float) -> Slice:
            log.append_many(self._entries())
            return run(seconds)

        return Candidate("zlog", "", turn, self.compare)

    def of_peer(self, peer: Peer) -> Candidate:
        """Return this load for a peer. Each turn has a new queue."""

        def turn(seconds: float) -> Slice:
            take = partial(peer.queue(self._entries()), self.batch)
            return watched({"server": peer.server}, partial(self._run, take))(seconds)

        return Candidate(peer.name, peer.how, turn, self.compare)

    def _entries(self) -> list[bytes]:
        return [os.urandom(self.size) for _ in range(QUEUED)]

    def _run(self, take: Callable[[], int], seconds: float) -> Slice:
        return repeat(take, seconds, QUEUED // self.batch)


LOADS = (
    Load("100 B, batches of 1024", batch=1024),
    Load("100 B, 4096 in flight", depth=4096),
    Load("100 B, 4096 submitted", depth=4096, through="submit"),
    Load("100 B, 64 in flight", depth=64),
    Load("100 B, one at a time: p50 ms"),
    Load("1 KiB, batches of 1024", size=1024, batch=1024),
    Load("reading, 100 B", batch=1024, reads=True),
    QueueLoad("queue, 100 B, batches of 100"),
)


def main() -> None:
    """Measure each group, and print its table."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="time per load and peer")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--folder", type=Path, required=True, help="folder for temporary logs")
    parser.add_argument("--tools", type=Path, default=Path(), help="folder with other servers")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    where = describe(options.folder)
    for group in options.groups:
        with TemporaryDirectory(prefix="zlog-", dir=options.folder) as folder, terminable():
            lines = list(_measure(group, where, Path(folder).resolve(), options))
        print("\n".join([f"## {group.capitalize()}", "", *lines]))


def _measure(
    group: str, where: Mapping[str, str], folder: Path, options: argparse.Namespace
) -> Iterator[str]:
    kind, makers = GROUPS[group]
    peers, notes = [], {}
    with ExitStack() as stack:
        url = stack.enter_context(running_store(kind, folder))
        testbed = stack.enter_context(new_testbed(Session(url)))
        for make in makers:
            own = folder / make.name
            own.mkdir()
            try:
                peer = make(own, options.tools.resolve(), stack)
            except Missing as missing:
                notes[make.name] = f"left out: {missing}"
                sys.stderr.write(f"{make.name} is left out: {missing}\n")
            else:
                peers.append(peer)
                notes[make.name] = peer.how
        rows = []
        for load in LOADS:
            is_queue = isinstance(load, QueueLoad)
            if is_queue and not any(peer.has_queue for peer in peers):
                continue
            sys.stderr.write(f"{group}: {load.name}\n")
            others = [load.of_peer(peer) for peer in peers if peer.has_queue or not is_queue]
            if isinstance(load, Load) and testbed.kind == "file":
                others.append(load.of_lmdb(testbed))
                notes["LMDB"] = "in C++; entries in flight or in a batch are one transaction"
            found = in_turns(load.of_zlog(testbed), others, options.seconds, load.size)
            rows.append((load, {figures["name"]: figures for figures in found}))
    stated = ("measured", "processor", "memory", "disk", "system", "Python", "Ceph", "zlog")
    yield "; ".join(f"{what} {where[what]}" for what in stated) + f"; {options.seconds:g} s each."
    yield ""
    yield from (f"- **{name}**: {note}" for name, note in notes.items())
    yield ""
    names = [*rows[0][1]]
    yield from page.table(
        ("", *names),
        (
            (load.name, *(_amount(load, found[name]) if name in found else "" for name in names))
            for load, found in rows
        ),
    )
    yield ""
    yield "CPU time, µs per entry, of the client + of servers:"
    yield ""
    yield from page.table(
        ("", *names),
        (
            (load.name, *(_cpu(found[name]) if name in found else "" for name in names))
            for load, found in rows
        ),
    )
    yield ""


def _amount(load: Load | QueueLoad, figures: Figures) -> str:
    latency = load.compare is Ratio.LATENCY
    amount = figures["latency_ms"]["p50"] if latency else figures["entries_per_second"]
    times = f" ({1 / figures['ratio']:.2f})" if figures.get("ratio") else ""
    return f"{amount:.2f}{times}" if latency else f"{amount:,.0f}{times}"


def _cpu(figures: Figures) -> str:
    cpu = dict(figures["cpu_us_per_entry"])
    client = cpu.pop("client")
    return f"{client:.2f}" + (f" + {sum(cpu.values()):.2f}" if cpu else "")


if __name__ == "__main__":
    main()
