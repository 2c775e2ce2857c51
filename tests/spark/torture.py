"""Kill a Spark query again and again while a log grows: ``python -m tests.spark.torture``.

A log is appended to all the while, entries of all sizes, and its layout changes. `zlog spark tail`
copies it to a table and is killed with SIGKILL at random moments: the driver's Python and JVM, the
planner, the workers, all at once. Then it is started again. Often Spark's record of its last batch
is removed before, so that the batch is repeated. In the end the table is compared with the log.
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
_START_SECONDS = 600.0
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives for seconds."""

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "2",
}


_REPLAYED = 0.5
"""How often a run has to repeat a batch that was done."""

_PADDING = (0, 0, 0, 0, 100, 1000, 16_000)
"""Bytes that are added to the numbers of one append."""

_WIDTH_CHANGED = 0.01
"""How often an append is followed by a change of the width."""


class Load:
    """Appends numbers, from 0 on, each once.

    Attributes:
        acknowledged: entries that were appended.
        error: what ended it before its time.
    """

    def __init__(self, log: zlog.Log, rate: int, seed: int) -> None:
        self._log = log
        self._rate = rate
        self._width = log.view.live_stripe.width
        self._dice = random.Random(seed)
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
                padding = bytes(self._dice.choice(_PADDING))
                self._log.append_many([b"%d:%b" % (first + i, padding) for i in range(step)])
                self.acknowledged += step
                if self._dice.random() < _WIDTH_CHANGED:
                    self._log.reconfigure(width=self._dice.randint(1, 2 * self._width))
                due = began + self.acknowledged / self._rate
                self._stopped.wait(max(0.0, due - time.monotonic()))
        except Exception as error:  # noqa: BLE001  # raised at the end
            self.error = error


class Victim:
    """A run of the query, with all processes that come of it.

    Args:
        command: that runs it.
        checkpoint: of the query.
    """

    def __init__(self, command: Sequence[str], checkpoint: Path) -> None:
        self._offsets = checkpoint / "offsets"
        self._batches = self.batches()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
        self._process = subprocess.Popen(
            command,
            stderr=self._output,
            start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )

    def batches(self) -> int:
        """Return how many batches were planned so far, by this run and those before."""
        return len(_numbers(self._offsets))

    def wait_for_batch(self) -> None:
        """Wait until this run has planned a batch.

        Raises:
            RuntimeError: it ended before, or takes longer than can be.
        """
        end = time.monotonic() + _START_SECONDS
        while self.batches() == self._batches:
            if self._process.poll() is not None or time.monotonic() > end:
                self._output.seek(0)
                said = self._output.read().decode(errors="replace")[-10_000:]
                raise RuntimeError(f"the query does not work here, and says:\n{said}")
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
    """What a copy holds.

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


class Table:
    """A table that `zlog spark tail` copies the log to."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._table = folder / "table"
        self.checkpoint = folder / "table.checkpoint"

    def command(self, options: argparse.Namespace, *, once: bool) -> list[str]:
        """Return the command of a run."""
        command = [ZLOG, "--store", self._url, "spark", "tail", LOG, "--to", str(self._table)]
        command += [
            "--master",
            "local[2]",
            "--max-entries",
            str(options.rate * (60 if once else 1)),
        ]
        command += ["--trigger", "available-now" if once else "0.2s"]
        return command + [f"--spark-conf={key}={value}" for key, value in _SETTINGS.items()]

    def look(self) -> Found:
        """Read the table as Spark does: files that a killed task left behind do not count."""
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").config("spark.log.level", "OFF")
        for key, value in _SETTINGS.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        try:
            row = spark.read.parquet(str(self._table)).selectExpr(
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
    """Return how the copy differs from the log, in words; empty: not at all.

    Args:
        found: the copy.
        tail: of the log, none of whose positions is a gap.
        acknowledged: different numbers that were appended.
    """
    said = []
    if found.rows != found.positions:
        said.append(f"{found.rows - found.positions} positions too many: some are there twice")
    if found.positions != tail or found.last != tail - 1:
        said.append(f"{found.positions} positions up to {found.last}, and the log's tail is {tail}")
    if found.numbers != acknowledged:
        said.append(f"{acknowledged} entries appended, {found.numbers} different ones in the copy")
    return said


def torture(url: str, folder: Path, options: argparse.Namespace) -> list[str]:
    """Run and kill the query; returns what is wrong with its copy."""
    with (
        zlog.connect(url) as store,
        zlog.Log.create(store, LOG, width=options.width) as log,
    ):
        copy = Table(url, folder)
        load = Load(log, options.rate, options.seed)
        with load.running():
            replayed = _kill(copy, load, options)
        if load.error is not None:
            raise load.error
        last = Victim(copy.command(options, once=True), copy.checkpoint)
        found = [] if last.wait() == 0 else ["the last run, which was not killed, failed"]
        seen, tail = copy.look(), log.tail()
        found += faults(seen, tail, load.acknowledged)
        (cursor,) = log.cursors()
        if cursor.position != tail:
            found.append(f"the cursor is at {cursor.position}, and the log's tail is {tail}")
    print(
        f"{options.kills} kills, {load.acknowledged:,} entries appended, {last.batches()} batches"
        f" planned, {replayed} repeated; the copy has {seen.rows:,} rows of {seen.positions:,}"
    )
    return found


def _kill(copy: Table, load: Load, options: argparse.Namespace) -> int:
    """Start and kill the query; returns how many batches it has to repeat that were done."""
    dice = random.Random(options.seed)
    replayed = 0
    for number in range(options.kills):
        began = time.monotonic()
        victim = Victim(copy.command(options, once=False), copy.checkpoint)
        try:
            if number == 0 or dice.random() >= EARLY:
                victim.wait_for_batch()
            time.sleep(dice.uniform(0, options.spread))
        finally:
            killed = victim.kill()
        if dice.random() < _REPLAYED:
            replayed += forget_commit(copy.checkpoint)
        print(
            f"kill {number + 1:2d} after {time.monotonic() - began:5.1f} s: {killed} processes,"
            f" {victim.batches()} batches planned so far, {load.acknowledged:,} entries appended",
            flush=True,
        )
    return replayed


def forget_commit(checkpoint: Path) -> bool:
    """Remove Spark's record that the last batch is done, if it is; returns whether."""
    newest = max(map(int, _numbers(checkpoint / "offsets")), default=0)
    commit = checkpoint / "commits" / str(newest)
    if not commit.exists():
        return False
    commit.unlink()
    commit.with_name(f".{newest}.crc").unlink(missing_ok=True)
    return True


def _numbers(folder: Path) -> list[str]:
    return [each.name for each in folder.glob("*") if each.name.isdecimal()]


def main() -> None:
    """Parse the command line; exit with 1 if the copy is not exact."""
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
        found = torture(url, Path(folder), options)
    sys.exit("\n".join(found) or 0)


if __name__ == "__main__":
    main()
