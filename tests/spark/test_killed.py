"""`zlog spark tail` is killed while a log grows: its table still gets each entry once.

The driver's Python and JVM, the planner and the workers are killed at once, at random moments, and
the query is started again. In half of the cases Spark's record of its last batch is removed before,
so that the batch is repeated. ``ZLOG_SPARK_KILLS=10`` has the query killed ten times, and runs on
Ceph too.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import zlog

from .conftest import SECONDS
from .test_tail import QUICK, cli_of

KILLS = int(os.environ.get("ZLOG_SPARK_KILLS", "1"))
STORES = ["embedded"] if KILLS == 1 else ["embedded", "ceph-bluestore"]

EARLY = 0.2
"""How often a run is killed at any moment of its start, and not while it copies."""

_PADDING = (0, 0, 0, 0, 100, 1000, 16_000)
"""Bytes that are added to the numbers of one append."""


@contextlib.contextmanager
def appending(log: zlog.Log, chance: random.Random) -> Iterator[None]:
    """Append numbers of all sizes, and change the layout, for the length of a ``with`` block."""
    numbers, stopped = itertools.count(), threading.Event()

    def append() -> None:
        while not stopped.wait(0.05):
            padding = bytes(chance.choice(_PADDING))
            log.append_many([b"%d:%b" % (next(numbers), padding) for _ in range(20)])
            if chance.random() < 0.01:
                log.reconfigure(width=chance.randint(1, 8))

    with ThreadPoolExecutor(1) as pool:
        appended = pool.submit(append)
        try:
            yield
        finally:
            stopped.set()
            appended.result()


def processes_of(session: int) -> list[int]:
    """Return the processes of a session, which Spark's workers don't leave."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, and all of its session."""
    while pids := processes_of(process.pid):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.poll()
    process.wait()


def numbers_in(folder: Path) -> list[int]:
    return [int(each.name) for each in folder.glob("[0-9]*")]


def forget_commit(checkpoint: Path) -> None:
    """Remove Spark's record that the last batch is done, if it is."""
    newest = max(numbers_in(checkpoint / "offsets"), default=0)
    for name in (f"{newest}", f".{newest}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)


@pytest.mark.long
@pytest.mark.parametrize("store_url", STORES, indirect=True)
def test_killed_query_copies_each_entry_once(
    spark: SparkSession, tmp_path: Path, store_url: str
) -> None:
    chance = random.Random(7)
    table, offsets = tmp_path / "table", tmp_path / "table.checkpoint" / "offsets"
    words = ("spark", "tail", "orders", "--to", str(table), *QUICK)
    with zlog.connect(store_url) as store, zlog.Log.create(store, "orders", width=4) as log:
        cli = cli_of(store)
        with appending(log, random.Random(8)):
            for number in range(KILLS):
                planned = len(numbers_in(offsets))
                with cli.start(*words, "--trigger", "0.2s", start_new_session=True) as process:
                    if number == 0 or chance.random() >= EARLY:
                        while len(numbers_in(offsets)) == planned:
                            assert process.poll() is None, process.stderr.read()
                            time.sleep(0.02)
                    time.sleep(chance.uniform(0, 4))
                    kill(process)
                if number == 0 or chance.random() < 0.5:
                    forget_commit(offsets.parent)
        with cli.start(*words, "--trigger", "available-now") as last:
            assert last.wait(3 * SECONDS) == 0, last.stderr.read()
        rows = spark.read.parquet(str(table)).selectExpr("position", "md5(data)").collect()
        assert sorted(map(tuple, rows)) == [
            (item.position, hashlib.md5(item.data).hexdigest())
            for item in log.read_range()
            if isinstance(item, zlog.Entry)
        ]
        assert [cursor.position for cursor in log.cursors()] == [log.tail()]
