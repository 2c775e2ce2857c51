"""`zlog spark tail` is killed while logs grow: its table still gets each entry once.

The driver's Python and JVM, the planner and the workers are killed at once, at random moments, and
the query is started again. In half of the cases Spark's record of its last batch is removed before,
so that the batch is repeated. ``ZLOG_SPARK_KILLS=10`` has the query killed ten times, and runs on
Ceph too.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import zlog

from ..cli.conftest import Cli
from .conftest import SECONDS
from .test_tail import QUICK, cli_of

LOGS, WRITERS = 50, 8

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


def run_killed(cli: Cli, words: Sequence[str], checkpoint: Path) -> None:
    """Run a command until it is killed, several times, and then up to the tail."""
    chance = random.Random(7)
    offsets = checkpoint / "offsets"
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
            forget_commit(checkpoint)


def finish(cli: Cli, words: Sequence[str]) -> None:
    with cli.start(*words, "--trigger", "available-now") as last:
        assert last.wait(3 * SECONDS) == 0, last.stderr.read()


@pytest.mark.long
@pytest.mark.parametrize("store_url", STORES, indirect=True)
def test_killed_query_copies_each_entry_once(
    spark: SparkSession, tmp_path: Path, store_url: str
) -> None:
    table = tmp_path / "table"
    words = ("spark", "tail", "orders", "--to", str(table), *QUICK)
    with zlog.connect(store_url) as store, zlog.Log.create(store, "orders", width=4) as log:
        cli = cli_of(store)
        with appending(log, random.Random(8)):
            run_killed(cli, words, tmp_path / "table.checkpoint")
        finish(cli, words)
        rows = spark.read.parquet(str(table)).selectExpr("position", "md5(data)").collect()
        assert sorted(map(tuple, rows)) == [
            (item.position, hashlib.md5(item.data).hexdigest())
            for item in log.read_range()
            if isinstance(item, zlog.Entry)
        ]
        assert [cursor.position for cursor in log.cursors()] == [log.tail()]


def write_many(url: str, writer: int, stop: Path) -> None:
    """Append to logs, create more of them, and change the layout of one."""
    chance = random.Random(writer)
    with zlog.connect(url) as store:
        for number in itertools.count():
            if stop.exists():
                break
            names = min(LOGS, 2 + number // 10)
            name = f"web-{chance.randrange(names)}"
            with zlog.Log.open(store, name, create=True, width=2) as log:
                log.append_many([b"%d.%d.%d" % (writer, number, each) for each in range(20)])
                if name == "web-1" and chance.random() < 0.1:
                    log.reconfigure(width=chance.randint(1, 4))


@pytest.mark.long
@pytest.mark.parametrize("store_url", STORES, indirect=True)
def test_killed_query_copies_many_logs(spark: SparkSession, tmp_path: Path, store_url: str) -> None:
    table, stop = tmp_path / "table", tmp_path / "stop"
    words = ("spark", "tail", "web-*", "--to", str(table), *QUICK)
    with zlog.connect(store_url) as store:
        zlog.Log.create(store, "web-0").close()
        cli = cli_of(store)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(WRITERS, spawn) as pool:
            done = [pool.submit(write_many, store.url, each, stop) for each in range(WRITERS)]
            try:
                run_killed(cli, words, tmp_path / "table.checkpoint")
            finally:
                stop.touch()
            for each in done:
                each.result()
        finish(cli, words)
        rows = spark.read.parquet(str(table)).selectExpr("log", "position", "md5(data)").collect()
        expected = []
        for name in zlog.Log.list(store):
            with zlog.Log.open(store, name) as log:
                expected += [
                    (name, item.position, hashlib.md5(item.data).hexdigest())
                    for item in log.read_range()
                    if isinstance(item, zlog.Entry)
                ]
        assert sorted(map(tuple, rows)) == sorted(expected)
        assert len({name for name, _, _ in expected}) > 2
