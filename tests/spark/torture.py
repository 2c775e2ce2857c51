"""Kill `zlog spark tail` again and again while a log grows: ``python -m tests.spark.torture``.

A log is appended to all the while. The query copies it, and is killed with SIGKILL at random
moments: the driver's Python and JVM, the planner, the workers, all at once. It is started again,
and so on; in the end the table is read by Spark and compared with the log.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import zlog

from ..support.ceph import ClusterSpec, running_cluster
from ..support.programs import ZLOG

LOG = "torture"
EARLY = 0.2
"""How often a run is killed at any moment of its start, rather than at its work."""

_LOOK_SECONDS = 0.02
_START_SECONDS = 240.0
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives for seconds."""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "2",
}


class Load:
    """Appends numbers, from 0 on, each once.

    Attributes:
        acknowledged: entries that were appended.
        error: what ended it before its time.
    """

    def __init__(self, log: zlog.Log, rate: int) -> None:
        self._log = log
        self._rate = rate
        self._stopped = threading.Event()
        self.acknowledged = 0
        self.error: Exception | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Append for the length of a ``with`` block."""
        thread = threading.Thread(target=self._append)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _append(self) -> None:
        step = max(1, self._rate // 20)
        began = time.monotonic()
        try:
            while not self._stopped.is_set():
                first = self.acknowledged
                self._log.append_many([b"%d" % (first + i) for i in range(step)])
                self.acknowledged += step
                due = began + self.acknowledged / self._rate
                self._stopped.wait(max(0.0, due - time.monotonic()))
        except Exception as error:  # noqa: BLE001  # raised at the end
            self.error = error


class Victim:
    """A run of the query, with all processes that come of it.

    Args:
        url: of the store.
        table: the copy of the log.
        entries_max: of a batch.
        words: further arguments of the command.
    """

    def __init__(self, url: str, table: Path, entries_max: int, words: Sequence[str] = ()) -> None:
        self._offsets = table.with_name(f"{table.name}.checkpoint") / "offsets"
        self._batches = self.batches()
        command = [ZLOG, "--store", url, "spark", "tail"]
        command += [LOG, "--to", str(table), "--max-entries", str(entries_max)]
        command += ["--master", "local[2]", "--trigger", "0.2s", *words]
        for key, value in _SETTINGS.items():
            command += ["--spark-conf", f"{key}={value}"]
        self._process = subprocess.Popen(
            command,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )

    def batches(self) -> int:
        """Return how many batches were planned so far, by this run and those before."""
        try:
            return sum(1 for each in self._offsets.iterdir() if each.name.isdecimal())
        except FileNotFoundError:
            return 0

    def wait_for_batch(self) -> None:
        """Wait until this run has planned a batch.

        Raises:
            RuntimeError: it ended before, or takes longer than can be.
        """
        end = time.monotonic() + _START_SECONDS
        while self.batches() == self._batches:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("zlog spark tail does not work here: run it by hand")
            time.sleep(_LOOK_SECONDS)

    def kill(self) -> int:
        """Kill it and all that came of it; returns how many processes that were."""
        killed: set[int] = set()
        while pids := self._processes():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.add(pid)
            self._process.poll()
        self._process.wait()
        return len(killed)

    def wait(self) -> int:
        """Wait for its own end; returns the exit code."""
        return self._process.wait()

    def _processes(self) -> list[int]:
        """Return the processes of its session, which Spark's workers don't leave."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == self._process.pid and fields[0] != "Z":
                found.append(int(entry.name))
        return found


class Found(NamedTuple):
    """What a table holds.

    Attributes:
        rows: of it.
        positions: different ones.
        numbers: different ones in the entries.
        last: the highest position; -1 for an empty table.
    """

    rows: int
    positions: int
    numbers: int
    last: int


def look(table: Path) -> Found:
    """Read the table, as Spark does: files that a killed task left behind are no part of it."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.log.level", "OFF")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        row = spark.read.parquet(str(table)).selectExpr(
            "count(*)",
            "count(distinct position)",
            "count(distinct data)",
            "coalesce(max(position), -1)",
        ).first()  # fmt: skip
        assert row is not None
        return Found(*row)
    finally:
        spark.stop()


def faults(found: Found, tail: int, acknowledged: int) -> list[str]:
    """Return what the table has otherwise than the log, in words; empty: nothing.

    Args:
        found: the table.
        tail: of the log, none of whose positions is a gap.
        acknowledged: different numbers that were appended.
    """
    said = []
    if found.rows != found.positions:
        said.append(f"{found.rows - found.positions} positions too many: some are there twice")
    if found.positions != tail or found.last != tail - 1:
        said.append(f"{found.positions} positions up to {found.last}, and the log's tail is {tail}")
    if found.numbers != acknowledged:
        said.append(f"{acknowledged} entries appended, {found.numbers} different ones in the table")
    return said


def torture(url: str, table: Path, options: argparse.Namespace) -> list[str]:
    """Run and kill the query; returns what is wrong with its table."""
    with (
        zlog.connect(url) as store,
        zlog.Log.create(store, LOG, width=options.width) as log,
    ):
        load = Load(log, options.rate)
        with load.running():
            _kill(url, table, load, options)
        if load.error is not None:
            raise load.error
        last = Victim(url, table, options.rate * 60, ["--trigger", "available-now"])
        found = [] if last.wait() == 0 else ["the last run, which was not killed, failed"]
        seen, tail = look(table), log.tail()
        found += faults(seen, tail, load.acknowledged)
        (cursor,) = log.cursors()
        if cursor.position != tail:
            found.append(f"the cursor is at {cursor.position}, and the log's tail is {tail}")
    print(
        f"{options.kills} kills, {load.acknowledged:,} entries appended, {last.batches()} batches"
        f" planned; the table has {seen.rows:,} rows at {seen.positions:,} positions"
    )
    return found


def _kill(url: str, table: Path, load: Load, options: argparse.Namespace) -> None:
    dice = random.Random(options.seed)
    for number in range(options.kills):
        began = time.monotonic()
        victim = Victim(url, table, options.rate)
        try:
            if number == 0 or dice.random() >= EARLY:
                victim.wait_for_batch()
            time.sleep(dice.uniform(0, options.spread))
        finally:
            killed = victim.kill()
        print(
            f"kill {number + 1:2d} after {time.monotonic() - began:5.1f} s: {killed} processes,"
            f" {victim.batches()} batches planned so far, {load.acknowledged:,} entries appended",
            flush=True,
        )


def main() -> None:
    """Parse the command line; exit with 1 where the table is not exact."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.torture", description=__doc__)
    parser.add_argument("--store", help="URL of an empty store; else a cluster is started")
    parser.add_argument("--kills", type=int, default=10, help="how often (%(default)s)")
    parser.add_argument("--spread", type=float, default=4.0, help="seconds of work before a kill")
    parser.add_argument("--rate", type=int, default=2000, help="entries appended a second")
    parser.add_argument("--width", type=int, default=4, help="stripe objects (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (%(default)s)")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-torture-"))
        url = options.store
        if not url:
            url = stack.enter_context(running_cluster(ClusterSpec("bluestore"))).url()
        found = torture(url, Path(folder) / "table", options)
    sys.exit("\n".join(found) or 0)


if __name__ == "__main__":
    main()
