"""`zlog table tail` is killed while a log grows: its table still has each entry once."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import zlog

from ..cli.conftest import Cli
from .conftest import Table, entries_of

KILLS = 10


@contextlib.contextmanager
def appending(log: zlog.Log) -> Iterator[None]:
    """Append numbers, and change the layout, for the length of a ``with`` block."""
    numbers, stopped = itertools.count(), threading.Event()

    def append() -> None:
        while not stopped.wait(0.02):
            log.append_many([b"%d" % next(numbers) for _ in range(20)])
            if next(numbers) % 50 == 0:
                log.reconfigure(width=random.randint(1, 4))

    with ThreadPoolExecutor(1) as pool:
        appended = pool.submit(append)
        try:
            yield
        finally:
            stopped.set()
            appended.result()


@pytest.mark.long
def test_killed_copy_has_each_entry_once(log: zlog.Log, table: Table) -> None:
    words = ["table", "tail", "orders", "--to", str(table.path), "--format", table.format]
    words += ["--partition-by", "stripe,date"]
    small = ["--trigger", "0.01s", "--json", "--max-entries", "30"]
    cli, chance = Cli(log.store.url), random.Random(3)
    with appending(log):
        for _ in range(KILLS):
            with cli.start(*words, *small) as process:
                assert process.stdout.readline(), process.stderr.read()
                time.sleep(chance.uniform(0, 0.2))
                process.kill()
    cli.ok(*words, "--trigger", "available-now")
    assert table.entries() == entries_of(log)
    assert [cursor.position for cursor in log.cursors()] == [log.tail()]
