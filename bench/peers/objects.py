"""Measure `zlog.objects` next to etcd and ZooKeeper and print the table, in Markdown.

`make bench-peers` runs this. A peer that is not installed is left out, and a line says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench import page
from bench.machine import describe, memory
from bench.peers.peer import Missing, free_port, program, server
from bench.servers import start_sequencer
from bench.stores import running_cluster
from zlog.cli.signals import terminable

ROUNDS = 3
PROCESSES = 4

CASES = {
    "put:1": "puts/s, 1 client",
    "put:16": "puts/s, 16 clients",
    "put:256": "puts/s, 256 clients",
    "play": "updates/s applied by a client",
    "transact:1": "transactions/s, 1 client",
    "transact:16": "transactions/s, 16 clients",
    "transact:256": "transactions/s, 256 clients",
    "read:256": "linearizable reads/s, 256 clients",
    "local:256": "local reads/s, 256 clients",
    "watch": "a watcher sees a put",
    f"put:256:{PROCESSES}": f"puts/s, 256 clients of {PROCESSES} processes",
    f"transact:256:{PROCESSES}": f"transactions/s, 256 clients of {PROCESSES} processes",
}
OF_ZLOG = [case for case in CASES if case == "play" or case.count(":") == 2]

Figures = Mapping[str, Mapping[str, float]]


class Contender(ABC):
    """One that is measured.

    Attributes:
        name: what the tables call it.
        how: its version and settings.
        client: begins the command line of the loads.
    """

    name: str
    how: str
    client: Sequence[str]
    cases: Sequence[str] = tuple(case for case in CASES if case not in OF_ZLOG)

    @abstractmethod
    def start(self) -> tuple[float, str]:
        """Start it with all keys; returns the seconds until a key was read, and its memory."""

    def turn(self, seconds: int) -> Figures:
        """Run all cases once."""
        found = self.run(*(timed(case, seconds) for case in self.cases))
        for each in found:
            del each["case"]
        return dict(zip(self.cases, found, strict=True))

    def run(self, *cases: str) -> list[Any]:
        """Run cases; returns what was found of each."""
        done = subprocess.run([*self.client, *cases], stdout=subprocess.PIPE, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


def timed(case: str, seconds: int) -> str:
    """Return a case with its length, as the loads take it."""
    name, *counts = case.split(":")
    return ":".join((name, *counts[:1], *([str(seconds)] if counts else []), *counts[1:]))


class Zlog(Contender):
    """A space on a store, which has a client's process to it."""

    cases = tuple(CASES)

    def __init__(
        self, name: str, how: str, url: str, keys: int, servers: Mapping[str, int]
    ) -> None:
        self.name, self.how = name, how
        self.client = (sys.executable, "-m", f"{__package__}.objects_load", url, str(keys))
        self._servers = servers
        self.run("fill")

    def start(self) -> tuple[float, str]:
        began = time.monotonic()
        words = [*self.client, "first"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            found = json.loads(process.stdout.readline())
            took = time.monotonic() - began
        rest = (f"; {name} {mib(memory(pid))}" for name, pid in self._servers.items())
        return took, mib(found) + "".join(rest)


class Server(Contender):
    """A peer: a server, with the load generator in Go.

    Raises:
        Missing: it can't be run here.
    """

    def __init__(self, folder: Path, tools: Path, keys: int, stack: ExitStack) -> None:
        self.port = free_port()
        self._load = program("load", tools)
        self._folder = folder
        self._words = self.words(folder, tools)
        self._running = stack.enter_context(ExitStack())
        self.client = (self._load, self.name.lower(), str(self.port), str(keys))
        self._begin()
        self.run("fill")

    @abstractmethod
    def words(self, folder: Path, tools: Path) -> Sequence[str]:
        """Return the server's command line."""

    def _begin(self) -> int:
        self._running.close()
        return self._running.enter_context(server(self._folder, self.port, *self._words)).pids[0]

    def start(self) -> tuple[float, str]:
        self._running.close()
        began = time.monotonic()
        pid = self._begin()
        self.run("first")
        return time.monotonic() - began, mib(memory(pid))


class Etcd(Server):
    """One etcd."""

    name = "etcd"

    def words(self, folder: Path, tools: Path) -> Sequence[str]:
        settings = "--quota-backend-bytes=8589934592"
        version = "3.6.6"
        self.how = f"{version}, `{settings}`, one member, by its client for Go"
        at, peers = (f"http://127.0.0.1:{port}" for port in (self.port, free_port()))
        return [
            *(
                self._load,
                "serve",
                "--data-dir",
                str(folder / "data"),
                settings,
                "--log-level=error",
            ),
            *("--listen-client-urls", at, "--advertise-client-urls", at),
            *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
            *("--initial-cluster", f"default={peers}"),
        ]


class ZooKeeper(Server):
    """One ZooKeeper."""

    name = "ZooKeeper"

    def words(self, folder: Path, tools: Path) -> Sequence[str]:
        java, jars = program("java", tools), tools / "zookeeper"
        found = [jar.stem for jar in jars.glob("zookeeper-[0-9]*.jar")]
        if not found:
            raise Missing(f"{jars} has no jars of it")
        self.how = (
            f"{found[0].partition('-')[2]}, standalone, 4 GiB of heap at most, its defaults else"
            " (`forceSync=yes`), by go-zookeeper/zk"
        )
        conf = folder / "conf"
        conf.write_text(
            f"dataDir={folder / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "maxClientCnxns=0\nadmin.enableServer=false\n"
        )
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        return [java, "-Xmx4g", "-cp", f"{jars}/*", main, str(conf)]


def mib(sizes: Mapping[str, float]) -> str:
    """Say how much memory a process has."""
    own, mapped = (f"{sizes[what] / (1 << 20):,.0f}" for what in ("own", "mapped"))
    return f"{own} + {mapped}"


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--seconds", type=int, default=2, help="for each case in each round")
    parser.add_argument("--keys", type=int, default=1_000_000, help="that are there")
    parser.add_argument("--folder", type=Path, required=True, help="to keep data in for a while")
    parser.add_argument("--tools", type=Path, default=Path(), help="has the servers")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="zlog-", dir=options.folder) as folder, terminable():
        lines = list(_measure(Path(folder).resolve(), options))
    print("\n".join(["## Objects", "", *lines]))


def _measure(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    where = describe(options.folder)
    notes: dict[str, str] = {}
    with ExitStack() as stack:
        contenders: list[Contender] = list(_zlogs(folder, options.keys, stack))
        for peer in (Etcd, ZooKeeper):
            own = folder / peer.name
            own.mkdir()
            try:
                contenders.append(peer(own, options.tools.resolve(), options.keys, stack))
            except Missing as missing:
                notes[peer.name] = f"left out: {missing}"
                sys.stderr.write(f"{peer.name} is left out: {missing}\n")
        starts = [each.start() for each in contenders]
        turns: list[list[Figures]] = [[] for _ in contenders]
        for number in range(ROUNDS):
            for each, found in zip(contenders, turns, strict=True):
                sys.stderr.write(f"round {number + 1}: {each.name}\n")
                found.append(each.turn(options.seconds))
    stated = ("measured", "processor", "memory", "disk", "system", "Python", "Ceph", "zlog")
    yield "; ".join(f"{what} {where[what]}" for what in stated) + f"; {options.seconds} s each."
    yield ""
    yield from (f"- **{each.name}**: {each.how}" for each in contenders)
    yield from (f"- **{name}**: {note}" for name, note in notes.items())
    yield ""
    yield from page.table(("", *(each.name for each in contenders)), _rows(starts, turns))
    yield ""


def _rows(
    starts: Sequence[tuple[float, str]], turns: Sequence[Sequence[Figures]]
) -> Iterator[tuple[str, ...]]:
    for case, what in CASES.items():
        yield (
            what,
            *(_cell(case, [each[case] for each in found if case in each]) for found in turns),
        )
    yield ("s from the start to the first read", *(f"{seconds:.2f}" for seconds, _ in starts))
    yield ("memory, MiB: own + of files", *(sizes for _, sizes in starts))


def _cell(case: str, found: Sequence[Mapping[str, float]]) -> str:
    if not found:
        return "–"
    rate, p50, p99 = (median(each[what] for each in found) for what in found[0])
    if case == "play":
        return f"{rate:,.0f}"
    if case.startswith("local") and p50 < 0.01:
        return f"{rate:,.0f} ({p50 * 1e6:.0f} ns)"
    latencies = f"{p50:.2f} / {p99:.2f} ms"
    return latencies if case == "watch" else f"{rate:,.0f} ({latencies})"


def _zlogs(folder: Path, keys: int, stack: ExitStack) -> Iterator[Zlog]:
    """Make a space on each kind of store."""
    clients = "clients are tasks of one process in Python, unless it says so"
    yield Zlog(
        "zlog, embedded", f"the embedded store; {clients}", (folder / "embedded").as_uri(), keys, {}
    )
    cluster = stack.enter_context(running_cluster("bluestore", folder))
    sequencer = stack.enter_context(start_sequencer(cluster["url"]))
    pids = {daemon["name"]: daemon["pid"] for daemon in cluster["daemons"]}
    servers = {"OSD": pids["osd.0"], "sequencer": sequencer.pid}
    how = "one OSD on BlueStore, a pool of size 1, and a sequencer; the same clients"
    yield Zlog("zlog, one OSD", how, cluster["url"], keys, servers)


if __name__ == "__main__":
    main()
