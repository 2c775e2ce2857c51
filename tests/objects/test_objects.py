"""What each type of object does, on every kind of store."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

import zlog
from zlog.objects import PastLost, Rejected, Replicated, Space, WrongType
from zlog.objects import _space as space_module


class Account(Replicated):
    """A balance that does not go below nothing."""

    def __init__(self) -> None:
        self.balance = 0

    def apply(self, command: Any) -> int:
        if self.balance + command < 0:
            raise Rejected(f"only {self.balance} are there")
        self.balance += command
        return self.balance

    def snapshot(self) -> Any:
        return self.balance

    def restore(self, state: Any) -> None:
        self.balance = state


def test_objects_work_on_every_store(store: zlog.Store) -> None:
    with zlog.Log.create(store, "log") as log, zlog.Log.open(store, "log") as own:
        one = Space.open(log, "space", types=[Account])
        two = Space.open(own, "space", types=[Account])
        limits = one.map("limits")
        limits.put_many({"web": 3, "db": {"pool": [1, None, 2.5]}})
        limits.delete("web")
        one.set("hosts").add("a", "b")
        one.counter("hits").add(4)
        one.register("leader").set("a")
        one.queue("jobs").push("x", "y")
        assert one.object(Account, "till").call(7) == 7

        assert two.map("limits").items() == [("db", {"pool": [1, None, 2.5]})]
        assert two.set("hosts").members() == ["a", "b"]
        assert two.counter("hits").add_and_get(-1) == 3
        assert two.register("leader").get() == "a"
        assert two.queue("jobs").pop() == "x"
        assert two.object(Account, "till").call(-5) == 2

        def move(txn: Any) -> int:
            txn.object(Account, "till").call(-2)
            txn.counter("hits").add(2)
            return int(txn.counter("hits").get())

        assert one.transact(move) == 5
        two.checkpoint(trim=True)
        three = Space.open(own, "space", types=[Account], create=False)
        assert three.objects() == two.objects() == one.objects()
        assert three.object(Account, "till").read(lambda account: account.balance) == 0
        with one.lock("lock").acquire("one", timeout=10) as held:
            holder = three.lock("lock").holder()
            assert holder is not None
            assert holder.token == held.token
        for each in (one, two, three):
            each.close()


def test_map_operations_work(space: Space, other: Space) -> None:
    colours = space.map("colours")
    position = colours.put("red", "#f00")
    assert colours.put_many({"green": 2, "blue": [3], "blur": None}) > position
    seen = other.map("colours")
    assert seen.get("red") == "#f00"
    assert seen.get("grey", "none") == "none"
    assert seen.has("blur")
    assert not seen.has("grey")
    assert seen.local.version("red") == position
    assert seen.local["blue"] == [3]
    assert seen.keys() == ["blue", "blur", "green", "red"]
    assert seen.keys(prefix="blu") == ["blue", "blur"]
    assert seen.items(start="blur", end="red") == [("blur", None), ("green", 2)]
    assert seen.count() == len(seen.local) == 4
    colours.delete("blue")
    colours.delete("blue")
    assert seen.keys(prefix="blu") == ["blur"]
    assert [*seen.local] == ["blur", "green", "red"]
    with pytest.raises(KeyError):
        seen.local["blue"]


def test_returned_values_are_copies(space: Space) -> None:
    mine = {"list": [1]}
    values = space.map("values")
    values.put("key", mine)
    mine["list"].append(2)
    values.get("key")["list"].append(3)
    assert values.get("key") == {"list": [1]}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"bytes", TypeError),
        ({1: "int"}, TypeError),
        ([{"deep": object()}], TypeError),
        (2**64, ValueError),
        (float("nan"), ValueError),
        (functools.reduce(lambda value, _: [value], range(101), 0), ValueError),
        (functools.reduce(lambda value, _: {"a": value}, range(101), 0), ValueError),
    ],
)
def test_non_json_values_are_refused(space: Space, value: Any, error: type[Exception]) -> None:
    before = space.sync()
    with pytest.raises(error):
        space.map("map").put("key", value)
    with pytest.raises(error):
        space.transact(lambda txn: txn.map("map").put("key", value))
    assert space.sync() == before


def test_deeply_nested_values_can_be_read_by_all_clients(log: zlog.Log, space: Space) -> None:
    value = functools.reduce(lambda value, _: [value], range(100), 0)
    space.map("map").put("key", value)
    space.checkpoint()

    def read(calls: int) -> Any:
        if calls:
            return read(calls - 1)
        with Space.open(log, "space") as late:
            return late.map("map").get("key")

    assert read(400) == value


def test_set_operations_work(space: Space, other: Space) -> None:
    tags = space.set("tags")
    tags.add("new", "old", "older")
    tags.discard("new", "none")
    assert other.set("tags").members(prefix="old") == ["old", "older"]
    assert other.set("tags").has("old")
    assert other.set("tags").count() == len(other.set("tags").local) == 2
    assert "new" not in other.set("tags").local
    assert [*other.set("tags").local] == ["old", "older"]


def test_counter_stops_at_64_bits(space: Space) -> None:
    counter = space.counter("counter")
    assert counter.get() == 0
    assert counter.add_and_get(2**63 - 2) == 2**63 - 2
    assert counter.add_and_get(5) == 2**63 - 1
    counter.add(-1)
    assert counter.get() == 2**63 - 2
    with pytest.raises(TypeError):
        counter.add(True)


def test_queue_waits_for_a_value(space: Space, other: Space) -> None:
    timer = threading.Timer(0.1, lambda: other.queue("jobs").push("job"))
    timer.start()
    assert space.queue("jobs").pop(wait=30) == "job"
    timer.join()
    assert space.queue("jobs").peek() is None
    assert space.queue("jobs").items() == []


def test_object_keeps_its_type(space: Space, other: Space) -> None:
    space.map("name").put("key", 1)
    before = space.position
    with pytest.raises(WrongType, match="is a map, not a queue"):
        other.queue("name").push(1)  # it does not know the map yet, and hears of it
    with pytest.raises(WrongType):
        other.queue("name").pop()
    with pytest.raises(WrongType):
        space.transact(lambda txn: txn.counter("name").add(1))
    assert other.objects() == {"name": "map"}
    assert space.sync() >= before
    assert space.map("name").items() == [("key", 1)]


def test_non_text_key_is_refused(space: Space) -> None:
    colours, members = space.map("colours"), space.set("members")
    key: Any = 1
    calls: list[Callable[[], object]] = [
        lambda: colours.put(key, 1),
        lambda: colours.get(key),
        lambda: colours.has(key),
        lambda: colours.delete(key),
        lambda: colours.local[key],
        lambda: colours.local.version(key),
        lambda: members.add(key),
        lambda: members.has(key),
        lambda: members.discard(key),
        lambda: space.transact(lambda txn: txn.map("colours").get(key)),
        lambda: space.transact(lambda txn: key in txn.set("members")),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="a key must be a string, not 1"):
            call()


def test_closed_space_refuses_calls(log: zlog.Log, space: Space) -> None:
    closed = Space.open(log, "space")
    numbers, context = closed.map("numbers"), closed.transaction()
    position = numbers.put("one", 1)
    past = closed.at(position)
    held = closed.lock("lock").acquire()
    closed.close()
    closed.close()
    calls: list[Callable[[], object]] = [
        lambda: numbers.put("two", 2),
        lambda: numbers.get("one"),
        lambda: numbers.local.get("one"),
        lambda: closed.counter("count").add_and_get(1),
        lambda: closed.queue("jobs").pop(),
        lambda: closed.lock("lock").acquire(),
        held.renew,
        lambda: closed.transact(lambda txn: txn.map("numbers").put("two", 2)),
        context.__enter__,
        lambda: closed.at(position),
        closed.watch,
        closed.checkpoint,
        closed.objects,
        closed.sync,
    ]
    tail = log.tail()
    for call in calls:
        with pytest.raises(zlog.StoreUnavailable, match="space 'space' of log 'log' is closed"):
            call()
    assert log.tail() == tail
    assert past.map("numbers").get("one") == 1
    assert space.map("numbers").items() == [("one", 1)]


def test_staleness_allows_older_reads(space: Space, other: Space) -> None:
    space.map("map").put("key", "old")
    seen = other.map("map")
    assert seen.get("key") == "old"
    space.map("map").put("key", "new")
    assert seen.get("key", staleness=math.inf) == "old"
    assert seen.get("key", staleness=3600) == "old"
    assert seen.get("key") == "new"
    assert seen.local.get("key") == "new"


def test_space_at_position_shows_past(space: Space) -> None:
    values = space.map("map")
    first = values.put("key", 1)
    values.put("key", 2)
    space.checkpoint()
    third = values.put("key", 3)
    assert [space.at(p).map("map").get("key") for p in range(first, third + 1)][:2] == [1, 2]
    assert space.at(third).map("map").get("key") == 3
    assert space.at(first - 1).objects() == {}
    assert space.at(datetime.now(timezone.utc)).map("map").get("key") == 3
    assert space.at(datetime(2020, 1, 1, tzinfo=timezone.utc)).objects() == {}
    with pytest.raises(zlog.BeyondTail):
        space.at(third + 100)


def trim_after_restoring(monkeypatch: pytest.MonkeyPatch, other: Space) -> None:
    """Have another client trim the log once a checkpoint was read, before what follows it is."""
    restored = space_module.restored

    async def restored_and_trimmed(*words: Any) -> Any:
        machine = await restored(*words)
        monkeypatch.undo()
        other.checkpoint(trim=True)
        other.map("map").put("key", 3)
        return machine

    monkeypatch.setattr(space_module, "restored", restored_and_trimmed)


def test_past_trimmed_during_restore_is_lost(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = space.map("map")
    space.checkpoint()
    first = values.put("key", 1)
    values.put("key", 2)
    trim_after_restoring(monkeypatch, other)
    with pytest.raises(PastLost):
        space.at(first)


def test_watch_trimmed_during_restore_reports_loss(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.checkpoint()
    first = space.map("map").put("key", 1)
    space.map("map").put("key", 2)
    space.sync()
    watch = space.watch(start=first + 1)
    trim_after_restoring(monkeypatch, other)
    with pytest.raises(PastLost) as caught:
        next(watch)
    assert caught.value.resume is not None


def test_longest_space_name_works(log: zlog.Log) -> None:
    with Space.open(log, "n" * 109) as space:
        space.map("map").put("key", 1)
        space.checkpoint()


def test_trim_is_noticed_among_other_entries(space: Space, other: Space, log: zlog.Log) -> None:
    """A replica that changes how it reads tells of what it has kept back."""
    space.sync()
    log.append_many([b"another's"] * 100)
    other.map("m").put("key", 1)
    other.checkpoint(trim=True)
    log.stat()  # so that the trim point is known before anything is read
    assert space.map("m").get("key") == 1
