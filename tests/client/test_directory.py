"""The lists of the store's directory: in shards, in pages, and beside names from before these."""

from __future__ import annotations

import asyncio
import random

import pytest

import zlog
from zlog import FindingKind, aio
from zlog._base.deadline import Deadline
from zlog._base.names import DIRECTORY_OBJECT, DIRECTORY_SHARDS, directory_shard
from zlog._catalog.directory import Directory, NameList
from zlog._io import BlockingIo, drive
from zlog._native import messages

from . import planted

COUNT = 300


@pytest.fixture
def names() -> list[str]:
    return sorted(f"log-{number:03}" for number in range(COUNT))


@pytest.fixture
def logs(memory: zlog.Store, names: list[str]) -> NameList:
    found = Directory(BlockingIo(memory)).logs
    drive(found.add_all(random.Random(7).sample(names, COUNT), Deadline(10), 1))
    return found


def test_names_are_spread_over_shards(memory: zlog.Store, logs: NameList) -> None:
    sizes = [len(drive(_page_of(memory, name))) for name in logs.objects]
    assert sum(sizes) == COUNT
    assert sizes[-1] == 0  # the object from before there were shards
    assert min(sizes[:-1]) > COUNT / DIRECTORY_SHARDS / 3


async def _page_of(store: zlog.Store, name: str) -> list[str]:
    code, reply = store.execute(name, "directory_list", messages.directory_list("", 1024))
    return [] if code else messages.directory_list_reply(reply).names


@pytest.mark.parametrize("per_shard", [1, 2, 7, 1024])
def test_pages_list_names_once_in_order(logs: NameList, names: list[str], per_shard: int) -> None:
    async def listed(after: str) -> list[str]:
        pages = logs.pages(Deadline(10), after=after, per_shard=per_shard)
        return [name async for page in pages for name in page]

    assert drive(listed("")) == names
    assert drive(listed("log-10")) == names[100:]


@pytest.mark.usefixtures("logs")
def test_logs_are_listed_in_pages(memory: zlog.Store, names: list[str]) -> None:
    assert zlog.Log.list(memory) == names
    assert zlog.Log.list(memory, count=7) == names[:7]
    assert zlog.Log.list(memory, after=names[6], count=7) == names[7:14]
    assert zlog.Log.list(memory, after=names[-1]) == []
    assert asyncio.run(aio.Log.list(memory, after=names[6], count=7)) == names[7:14]
    for count in (0, -1):
        with pytest.raises(ValueError, match="count"):
            zlog.Log.list(memory, count=count)
    with pytest.raises(ValueError, match="is not a valid name for a log"):
        zlog.Log.list(memory, after="/")


@pytest.mark.parametrize(
    "name", ["a", "0", "_", "ab", "a-", "a.", "a0", "z" * 128, "z" * 127 + "-"]
)
def test_lookup_distinguishes_similar_names(memory: zlog.Store, name: str) -> None:
    logs = Directory(BlockingIo(memory)).logs
    shard = directory_shard("logs", name)
    last = name[:-1]
    around = [last, last + "-", last + ".", last + "0", last + "y", last + "zz", name + "-", "A"]
    for each in sorted({each for each in around if 0 < len(each) <= 128 and each[0] not in "-."}):
        if each != name:
            planted.call(memory, shard, "directory_add", messages.directory_add(each, 1))
    assert not drive(logs.has(name, Deadline(10)))
    drive(logs.add_all([name], Deadline(10), 1))
    assert drive(logs.has(name, Deadline(10)))


def test_unsharded_logs_are_listed_and_removed(store: zlog.Store) -> None:
    """They are listed, found, and removed as all others."""
    with zlog.Log.create(store, "old", width=1) as log:
        entry = messages.directory_add("old", log.view.log_id)
        planted.call(store, directory_shard("logs", "old"), "directory_remove", entry)
        assert {each.kind for each in log.check()} == {FindingKind.UNLISTED}
        planted.call(store, DIRECTORY_OBJECT, "directory_add", entry)
        assert [*log.check()] == []
    zlog.Log.create(store, "new", width=1).close()
    assert zlog.Log.list(store) == ["new", "old"]
    with pytest.raises(zlog.LogExists):
        zlog.Log.create(store, "old")
    zlog.Log.remove(store, "old")
    assert zlog.Log.list(store) == ["new"]


def test_unfinished_log_can_be_removed(store: zlog.Store) -> None:
    request = messages.head_create("orders", 7)
    planted.call(store, "zlog.orders.head", "head_create", request)
    entry = messages.directory_add("orders", 7)
    planted.call(store, directory_shard("logs", "orders"), "directory_add", entry)
    assert zlog.Log.list(store) == ["orders"]
    with pytest.raises(zlog.LogNotFound):
        zlog.Log.open(store, "orders")
    zlog.Log.remove(store, "orders")
    assert zlog.Log.list(store) == []
    with pytest.raises(zlog.LogNotFound):
        zlog.Log.remove(store, "orders")


def test_logs_with_retention_are_listed(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "made", options={"retention_bytes": "1000"})
    zlog.Log.create(memory, "none")
    later = zlog.Log.create(memory, "later")
    later.reconfigure(options={"retention_age_s": None, "team": "a"})
    retained = Directory(BlockingIo(memory)).retained
    assert drive(retained.names(Deadline(10))) == ["made"]
    later.set_retention(zlog.Retention(age=60))
    assert drive(retained.names(Deadline(10))) == ["later", "made"]
