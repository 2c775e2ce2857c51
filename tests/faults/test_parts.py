"""What the runs are made of: journals, plans, and power that fails."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import zlog
import zlog.aio
from tests.history import Action, Result, check

from .client import ROLES
from .faults import KINDS, plan
from .journal import Journal, merge
from .power import fail, that_may_fail
from .run import EXCLUSIVE, OBJECTS, SMALL
from .test_faults import HURRY, SECONDS
from .test_faults import KINDS as KINDS_OF_SHORT_RUN

BIG = b"big" * 1000


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """What a process kept that appended, read and trimmed."""

    async def work() -> None:
        with zlog.connect("mem://") as store, contextlib.closing(Journal(path)) as journal:
            log = journal.watch(await zlog.aio.Log.create(store, "orders", width=2), "one")
            await log.append_many([b"a", BIG, b"c"])
            await log.append(b"d")
            await log.trim(2)
            with pytest.raises(zlog.AlreadyWritten):
                await log.fill(3)
            async for _ in log.read_range():
                pass
            await log.tail()

    path = tmp_path / "one.journal"
    asyncio.run(work())
    return path


def test_journal_records_all_operations(journal: Path) -> None:
    history = merge([journal])
    assert check(history) == []
    found = [(each.action, each.result, each.position) for each in history.operations]
    appended = [(Action.APPEND, Result.OK, position) for position in range(4)]
    read = [(Action.READ, Result.OK, position) for position in range(4)]
    assert found[:4] == appended
    assert found[4:6] == [(Action.TRIM, Result.OK, 2), (Action.FILL, Result.WRITTEN, 3)]
    assert sorted(found[6:10], key=lambda each: each[2]) == read
    assert found[10:] == [(Action.TAIL, Result.OK, 4)]
    assert all(each.returned > each.invoked for each in history.operations)


def test_journal_stores_digest_of_long_entries(journal: Path) -> None:
    _, big, *_ = merge([journal]).operations
    assert big.entry is not None
    assert len(big.entry) < 100
    assert b"3000" in big.entry


def test_operation_of_killed_process_is_pending(tmp_path: Path) -> None:
    path = tmp_path / "killed.journal"
    with contextlib.closing(Journal(path)) as journal:
        journal.invoke("one", Action.APPEND, entry=b"a")
    with path.open("ab") as file:
        file.write(pickle.dumps("cut off")[:-3])
    (operation,) = merge([path, tmp_path / "killed before it began"]).operations
    assert (operation.result, operation.entry) == (Result.PENDING, b"a")


def test_short_run_plans_every_requested_fault() -> None:
    assert set(KINDS_OF_SHORT_RUN) < set(KINDS)
    crowds = (SMALL, EXCLUSIVE, OBJECTS)
    assert {role for crowd in crowds for role in crowd.roles.values()} == set(ROLES)
    planned = plan(random.Random(1), SECONDS, KINDS_OF_SHORT_RUN, HURRY)
    assert {each.kind for each in planned} == set(KINDS_OF_SHORT_RUN)


WRITE = """
    import os, sys
    file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
    os.write(file, b"a" * 10000)
    os.fsync(file)
    os.pwrite(file, b"b" * 5000, 1000)
    os.pwrite(file, b"c" * 100, 9950)
"""


@pytest.mark.long
def test_power_failure_loses_unsynced_pages(tmp_path: Path) -> None:
    file = tmp_path / "file"
    pages = set()
    for seed in range(40):
        with that_may_fail(tmp_path / str(seed), "/file"):
            subprocess.run([sys.executable, "-c", textwrap.dedent(WRITE), file], check=True)
            fail(random.Random(seed))
        held = file.read_bytes().ljust(12288, b"\0")
        pages.add((held[4000:4096], held[4096:4100], held[9945:9960], held[10050:10051]))
        file.unlink()
    firsts, seconds, thirds, beyond = map(set, zip(*pages, strict=True))
    assert firsts == {b"a" * 96, b"b" * 96}
    assert seconds == {b"a" * 4, b"b" * 4}
    assert thirds == {b"a" * 15, b"a" * 5 + b"c" * 10}
    assert beyond == {b"\0"}
    assert (b"a" * 96, b"b" * 4) in {page[:2] for page in pages}, "the disk keeps what it likes"
