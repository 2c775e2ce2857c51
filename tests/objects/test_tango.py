"""The examples of Tango's paper, and the replicated register of the original zlog."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import zlog
from zlog.objects import Rejected, Replicated, Space, Transaction


class Register(Replicated):
    """TangoRegister: the state is one number, and each write replaces it."""

    def __init__(self) -> None:
        self.state = 0

    def apply(self, command: Any) -> None:
        self.state = command

    def snapshot(self) -> Any:
        return self.state

    def restore(self, state: Any) -> None:
        self.state = state


class Counters(Replicated):
    """The original's replicated program: registers that are read and changed by name."""

    def __init__(self) -> None:
        self.registers: dict[str, int] = {}

    def apply(self, command: Any) -> int:
        action, name, number = command
        old = self.registers.get(name, 0)
        if action == "add":
            self.registers[name] = old + number
        elif action == "set":
            self.registers[name] = number
        else:
            raise Rejected(f"{action!r} is no command")
        return old

    def snapshot(self) -> Any:
        return self.registers

    def restore(self, state: Any) -> None:
        self.registers = state


class Tree(Replicated):
    """TangoZK's names: a node has a value, a version and children, and goes only without them."""

    def __init__(self) -> None:
        self.nodes: dict[str, list[Any]] = {"/": [None, 0]}

    def apply(self, command: Any) -> Any:
        action, path, *arguments = command
        if action == "create":
            parent = path.rpartition("/")[0] or "/"
            if path in self.nodes or parent not in self.nodes:
                raise Rejected(f"{path} is there, or has no parent")
            self.nodes[path] = [arguments[0], 0]
            return path
        if path not in self.nodes:
            raise Rejected(f"there is no {path}")
        node = self.nodes[path]
        if action == "set":
            value, version = arguments
            if node[1] != version:
                raise Rejected(f"{path} has version {node[1]}, not {version}")
            node[:] = [value, version + 1]
            return version + 1
        if self.children(path):
            raise Rejected(f"{path} has children")
        return self.nodes.pop(path)

    def children(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        names = (each.removeprefix(start) for each in self.nodes if each.startswith(start))
        return sorted(name for name in names if name and "/" not in name)

    def snapshot(self) -> Any:
        return self.nodes

    def restore(self, state: Any) -> None:
        self.nodes = state


TYPES = (Register, Counters, Tree)


@pytest.fixture
def two(log: zlog.Log) -> Any:
    return [Space.open(log, "space", types=TYPES) for _ in range(2)]


def test_register(two: list[Space]) -> None:
    one, other = (space.object(Register, "register") for space in two)
    assert one.read(lambda register: register.state) == 0
    one.call(5)
    assert other.read(lambda register: register.state) == 5


def test_replicated_registers(log: zlog.Log, two: list[Space]) -> None:
    one, other = (space.object(Counters, "counters") for space in two)

    def count(handle: Any) -> None:
        for _ in range(50):
            handle.call(["add", "n", 1])

    threads = [threading.Thread(target=count, args=(each,)) for each in (one, other) * 2]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert one.call(["set", "n", 7]) == 200
    with pytest.raises(Rejected):
        other.call(["take", "n", 1])
    two[0].checkpoint(trim=True)
    with Space.open(log, "space", types=TYPES) as late:
        assert late.object(Counters, "counters").read(lambda c: dict(c.registers)) == {"n": 7}


def test_map_moves_between_owners(two: list[Space]) -> None:
    """The paper's transaction: only its owner moves an item, and it is in one of two lists."""
    two[0].map("owners").put("ledger", "one")
    two[0].set("free").add("item")

    def take(client: str) -> Any:
        def body(txn: Transaction) -> bool:
            if txn.map("owners").get("ledger") != client or "item" not in txn.set("free"):
                return False
            txn.set("free").discard("item")
            txn.set("taken").add("item")
            return True

        return body

    assert not two[1].transact(take("two"))
    two[0].map("owners").put("ledger", "two")
    assert not two[0].transact(take("one"))
    assert two[1].transact(take("two"))
    assert two[0].set("free").members() == []
    assert two[0].set("taken").members() == ["item"]


def test_tree(two: list[Space]) -> None:
    one, other = (space.object(Tree, "tree") for space in two)
    for path in ("/app", "/app/b", "/app/a"):
        one.call(["create", path, None])
    assert other.read(lambda tree: tree.children("/app")) == ["a", "b"]
    assert other.call(["set", "/app/a", {"port": 80}, 0]) == 1
    for refused in (
        ["set", "/app/a", 1, 0],
        ["create", "/none/a", 1],
        ["create", "/app", 1],
        ["delete", "/app"],
    ):
        with pytest.raises(Rejected):
            one.call(refused)

    def rename(txn: Transaction) -> None:
        tree = txn.object(Tree, "tree")
        value = tree.read(lambda tree: tree.nodes["/app/a"][0])
        tree.call(["create", "/app/c", value])
        tree.call(["delete", "/app/a"])

    two[0].transact(rename)
    assert other.read(lambda tree: tree.children("/app")) == ["b", "c"]
    assert other.read(lambda tree: tree.nodes["/app/c"]) == [{"port": 80}, 0]


def test_queue_between_producer_and_consumer(two: list[Space]) -> None:
    producer, consumer = (space.queue("queue") for space in two)

    def produce() -> None:
        for i in range(100):
            producer.push(i)
        producer.push(None)

    thread = threading.Thread(target=produce)
    thread.start()
    taken = []
    while (value := consumer.pop("nothing yet", wait=30)) is not None:
        taken.append(value)
    thread.join()
    assert taken == [*range(100)]


def test_an_item_moves_from_a_queue_to_a_map(two: list[Space]) -> None:
    two[0].queue("jobs").push("a", "b")

    def begin(worker: str) -> Any:
        def body(txn: Transaction) -> Any:
            job = txn.queue("jobs").pop()
            if job is not None:
                txn.map("running").put(job, worker)
            return job

        return body

    assert two[0].transact(begin("one")) == "a"
    assert two[1].transact(begin("two")) == "b"
    assert two[0].transact(begin("one")) is None
    assert two[0].map("running").items() == [("a", "one"), ("b", "two")]
