"""Objects that services share, as a release stores them."""

from __future__ import annotations

from typing import Any

import zlog
from zlog.objects import Replicated, Space

from .part import Part, sound

ITEMS = {f"key-{i:02}": {"number": i, "text": "v" * i} for i in range(40)}


class Stock(Replicated):
    """A type of a program's own."""

    def __init__(self) -> None:
        self.left: dict[str, int] = {}

    def apply(self, command: list[Any]) -> int:
        item, count = command
        self.left[item] = self.left.get(item, 0) + count
        return self.left[item]

    def snapshot(self) -> dict[str, int]:
        return self.left

    def restore(self, state: dict[str, int]) -> None:
        self.left = state


class Objects(Part):
    """Objects of every type, in a checkpoint and in entries behind it."""

    name = "services"

    def space(self, log: zlog.Log) -> Space:
        return Space.open(log, "web", types=[Stock])

    def make(self, store: zlog.Store) -> None:
        with zlog.Log.create(store, self.name, width=2) as log, self.space(log) as space:
            space.map("limits").put_many(ITEMS)
            space.set("members").add("ann", "bob")
            space.counter("hits").add(41)
            space.register("leader").set(["ann", 1.5, None])
            space.queue("jobs").push("first", "second")
            space.object(Stock, "stock").call(["apples", 5])
            space.lock("nightly").acquire("ann", keep=False)
            space.checkpoint()
            space.map("limits").delete("key-00")
            space.transact(self._take, id="one job")

    @staticmethod
    def _take(txn: Any) -> None:
        txn.map("running").put(txn.queue("jobs").pop(), "ann")
        txn.counter("hits").add(1)

    def reads(self, store: zlog.Store) -> None:
        with self.open(store) as log, self.space(log) as space:
            items = {key: value for key, value in ITEMS.items() if key != "key-00"}
            assert dict(space.map("limits").items()) == items
            assert [*space.set("members").members()] == ["ann", "bob"]
            assert space.counter("hits").get() == 42
            assert space.register("leader").get() == ["ann", 1.5, None]
            assert space.queue("jobs").items() == ["second"]
            assert dict(space.map("running").items()) == {"first": "ann"}
            assert space.object(Stock, "stock").read(lambda stock: stock.left) == {"apples": 5}
            assert space.objects()["nightly"] == "lock"

    def goes_on(self, store: zlog.Store) -> None:
        with self.open(store) as log:
            with self.space(log) as space:
                space.counter("hits").add(1)
                assert space.object(Stock, "stock").call(["apples", -2]) == 3
                space.checkpoint(trim=True)
                space.queue("jobs").push("third")
            with self.space(log) as space:
                assert space.counter("hits").get() == 43
                assert space.queue("jobs").items() == ["second", "third"]
            sound(log)
