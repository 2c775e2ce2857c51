"""Transactions: one moment, all or nothing, once."""

from __future__ import annotations

from typing import Any

import pytest

import zlog
from zlog.objects import (
    AlreadyCommitted,
    Conflict,
    LockLost,
    OutcomeUnknown,
    Rejected,
    Space,
    Transaction,
)
from zlog.objects import _decided as decided_module

from .test_objects import Account


def test_transaction_reads_its_own_writes(space: Space) -> None:
    space.map("map").put_many({"a": 1, "b": 2})
    space.queue("queue").push("first")

    def body(txn: Transaction) -> None:
        values = txn.map("map")
        values.put("c", 3)
        values.delete("a")
        assert values.get("a") is None
        assert values.items() == [("b", 2), ("c", 3)]
        assert values.keys(prefix="c") == ["c"]
        assert len(values) == 2
        txn.set("set").add("x")
        txn.set("set").discard("y")
        assert txn.set("set").members() == ["x"]
        txn.counter("counter").add(5)
        assert txn.counter("counter").get() == 5
        txn.counter("counter").add(1)
        assert txn.counter("counter").get() == 6
        txn.register("register").set(["v"])
        assert txn.register("register").get() == ["v"]
        txn.queue("queue").push("second")
        assert txn.queue("queue").pop() == "first"
        assert txn.queue("queue").items() == ["second"]
        assert txn.queue("queue").pop() == "second"
        assert txn.queue("queue").pop("none") == "none"

    space.transact(body)
    assert space.map("map").items() == [("b", 2), ("c", 3)]
    assert space.set("set").members() == ["x"]
    assert space.counter("counter").get() == 6
    assert space.register("register").get() == ["v"]
    assert space.queue("queue").count() == 0


def test_failed_transaction_has_no_effect(space: Space) -> None:
    def body(txn: Transaction) -> None:
        txn.map("map").put("key", 1)
        raise RuntimeError("no")

    before = space.sync()
    with pytest.raises(RuntimeError):
        space.transact(body)
    with pytest.raises(RuntimeError), space.transaction() as txn:
        body(txn)
    assert space.sync() == before


def test_read_only_transaction_does_not_append(space: Space) -> None:
    space.map("map").put("key", 1)
    before = space.sync()
    assert space.transact(lambda txn: txn.map("map").get("key")) == 1
    with space.transaction() as txn:
        assert "key" in txn.map("map")
    assert space.sync() == before


@pytest.mark.parametrize(
    ("read", "change", "item"),
    [
        (lambda t: t.map("m").get("a"), lambda s: s.map("m").put("a", 9), ("m", "a")),
        (lambda t: t.map("m").get("a"), lambda s: s.map("m").delete("a"), ("m", "a")),
        (lambda t: t.map("m").get("new"), lambda s: s.map("m").put("new", 9), ("m", "new")),
        (lambda t: t.map("m").keys(), lambda s: s.map("m").put("new", 9), ("m", ("", None))),
        (lambda t: t.map("m").keys(), lambda s: s.map("m").delete("b"), ("m", ("", None))),
        (lambda t: len(t.map("m")), lambda s: s.map("m").put("b", 9), ("m", ("", None))),
        (
            lambda t: t.map("m").items(prefix="b"),
            lambda s: s.transact(lambda t: (t.map("m").delete("b"), t.map("m").put("bb", 1))),
            ("m", ("b", "c")),
        ),
        (
            lambda t: "x" in t.set("s"),
            lambda s: s.set("s").add("x"),
            ("s", "x"),
        ),
        (lambda t: t.counter("c").get(), lambda s: s.counter("c").add(1), ("c", None)),
        (lambda t: t.register("r").get(), lambda s: s.register("r").set(1), ("r", None)),
        (lambda t: t.queue("q").pop(), lambda s: s.queue("q").push(1), ("q", None)),
    ],
)
def test_conflict_reports_changed_item(
    space: Space, other: Space, read: Any, change: Any, item: Any
) -> None:
    space.map("m").put_many({"a": 1, "b": 2, "z": 3})

    def body(txn: Transaction) -> None:
        read(txn)
        txn.map("result").put("key", "done")
        change(other)

    with pytest.raises(Conflict) as caught:
        space.transact(body, attempts=1)
    assert caught.value.items == (item,)
    assert not space.map("result").has("key")


@pytest.mark.parametrize(
    ("read", "change"),
    [
        (lambda t: t.map("m").get("a"), lambda s: s.map("m").put("b", 9)),
        (lambda t: t.map("m").get("none"), lambda s: s.map("m").delete("none")),
        (lambda t: t.map("m").keys(prefix="b"), lambda s: s.map("m").put("a", 9)),
        (lambda t: t.counter("c").add(1), lambda s: s.counter("c").add(1)),
        (lambda t: t.queue("q").push(1), lambda s: s.queue("q").pop()),
    ],
)
def test_unrelated_changes_do_not_conflict(
    space: Space, other: Space, read: Any, change: Any
) -> None:
    space.map("m").put_many({"a": 1, "b": 2})
    with space.transaction() as txn:
        read(txn)
        txn.map("result").put("key", "done")
        change(other)
    assert space.map("result").get("key") == "done"


def test_body_sees_one_snapshot(space: Space, other: Space) -> None:
    space.map("m").put_many({"x": 0, "y": 0})
    seen: list[tuple[int, int]] = []

    def body(txn: Transaction) -> None:
        x = txn.map("m").get("x")
        if not seen:
            other.map("m").put_many({"x": 1, "y": 1})
            space.sync()
        seen.append((x, -1))
        seen.append((x, txn.map("m").get("y")))

    space.transact(body)
    assert seen == [(0, -1), (1, -1), (1, 1)]


def test_body_on_stale_state_is_rerun(space: Space, other: Space) -> None:
    """What a body concludes from a state that is over counts for nothing, errors neither."""
    space.map("m").put("x", 0)
    other.map("m").put("x", 1)

    def body(txn: Transaction) -> Any:
        if txn.map("m").get("x") == 0:
            raise RuntimeError("of what is over")
        return txn.map("m").get("x")

    assert space.transact(body) == 1


def test_conflict_is_raised_after_all_attempts(space: Space, other: Space) -> None:
    runs = []

    def body(txn: Transaction) -> None:
        value = txn.map("m").get("x", 0)
        runs.append(other.map("m").put("x", len(runs)))
        txn.map("m").put("x", value)

    with pytest.raises(Conflict):
        space.transact(body, attempts=3)
    assert len(runs) == 3


def test_transaction_id_takes_effect_once(log: zlog.Log, space: Space, other: Space) -> None:
    def body(txn: Transaction) -> str:
        txn.counter("paid").add(10)
        return "paid"

    assert space.transact(body, id="order-17") == "paid"
    with pytest.raises(AlreadyCommitted):
        other.transact(body, id="order-17")
    space.checkpoint()
    with Space.open(log, "space") as late, pytest.raises(AlreadyCommitted):
        late.transact(body, id="order-17")
    assert space.counter("paid").get() == 10
    for bad in ("", "x" * 129):
        with pytest.raises(ValueError, match="128"):
            space.transact(body, id=bad)


class Slow:
    """Has appends lose their answers."""

    def __init__(self, space: Space, lost: int) -> None:
        self.port = space._replica.port
        self.lost = lost
        self.appended: list[int] = []
        self._append = self.port.append
        self.port.append = self  # type: ignore[method-assign]

    async def __call__(self, data: bytes, tags: Any) -> int:
        position = await self._append(data, tags)
        self.appended.append(position)
        if self.lost:
            self.lost -= 1
            raise zlog.StoreTimeout("no answer")
        return position


def test_lost_reply_is_retried(space: Space) -> None:
    slow = Slow(space, 1)
    assert space.transact(lambda txn: txn.queue("q").push("x") or 5) == 5
    assert space.counter("c").add_and_get(1) == 1
    assert len(slow.appended) == 3
    assert space.queue("q").items() == ["x"]


def test_unresolved_outcome_raises_outcome_unknown(space: Space, other: Space) -> None:
    Slow(space, 2)

    def body(txn: Transaction) -> None:
        txn.counter("c").add(1)

    with pytest.raises(OutcomeUnknown) as caught:
        space.transact(body)
    with pytest.raises(AlreadyCommitted):
        other.transact(body, id=caught.value.id)
    assert other.counter("c").get() == 1


def test_late_duplicate_does_not_decide_later_attempt(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says nothing of the attempt that is under way."""
    values = space.map("map")
    values.put("key", 1)
    port = space._replica.port
    append = port.append
    sent: list[bytes] = []

    async def append_late_twins(data: bytes, tags: Any) -> int:
        for twin in sent:
            await append(twin, tags)
        sent.append(data)
        return await append(data, tags)

    def double(txn: Transaction) -> int:
        value: int = txn.map("map").get("key")
        if not sent:
            other.map("map").put("key", 5)
        txn.map("map").put("key", 2 * value)
        return 2 * value

    monkeypatch.setattr(port, "append", append_late_twins)
    assert space.transact(double) == 10
    assert len(sent) == 2
    assert values.get("key") == 10


def test_late_duplicate_has_no_effect(
    space: Space, log: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append that was given up may arrive any time later, even when its id is forgotten."""
    monkeypatch.setattr(decided_module, "DECIDED_MAX", 4)
    counter = space.counter("c")
    start = space.sync()
    counter.add_and_get(1)
    twin = log.read(start).data
    for _ in range(3):
        counter.add_and_get(1)
    log.append(twin, tags=["objects/space"])
    assert counter.get() == 4
    for _ in range(3):
        counter.add_and_get(1)
    log.append(twin, tags=["objects/space"])
    assert counter.get() == 7
    with Space.open(log, "space") as again:
        assert again.counter("c").get() == 7


def test_transaction_with_forgotten_start_is_rerun(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that began before what the space remembers runs again, and commits."""
    monkeypatch.setattr(decided_module, "DECIDED_MAX", 2)
    for _ in range(5):
        other.counter("others").add_and_get(1)
    assert space.counter("c").add_and_get(1) == 1
    for _ in range(5):
        other.counter("others").add_and_get(1)
    assert space.transact(lambda txn: txn.counter("c").add(1)) is None
    assert space.counter("c").get() == 2


def test_transaction_requires_lock(space: Space, other: Space) -> None:
    held = space.lock("lock").acquire("me", keep=False)

    def body(txn: Transaction) -> None:
        txn.require("lock", held.token)
        txn.map("m").put("by", held.token)

    space.transact(body)
    held.renew()
    space.transact(body)

    def lose(txn: Transaction) -> None:
        body(txn)
        held.release()
        other.lock("lock").acquire("you", keep=False)

    with pytest.raises(Conflict):
        space.transact(lose, attempts=1)
    with pytest.raises(LockLost):
        space.transact(body)


def test_transactions_call_object_commands(log: zlog.Log) -> None:
    with Space.open(log, "bank", types=[Account]) as bank:
        bank.object(Account, "a").call(10)

        def move(amount: int) -> Any:
            def body(txn: Transaction) -> tuple[int, int]:
                return (
                    txn.object(Account, "a").call(-amount),
                    txn.object(Account, "b").call(amount),
                )

            return body

        assert bank.transact(move(4)) == (6, 4)
        before = bank.sync()
        with pytest.raises(Rejected):
            bank.transact(move(7))
        assert bank.sync() == before
        assert bank.object(Account, "b").read(lambda account: account.balance) == 4


def test_log_ordered_by_its_object_rejects_conflicts_without_an_entry() -> None:
    with (
        zlog.connect("mem://") as store,
        zlog.Log.create(store, "log", ordering="object") as log,
        Space.open(log, "space") as one,
        Space.open(log, "space") as two,
    ):
        one.map("map").put_many({"a": 1, "b": 1})
        calls = []

        def swap(txn: Transaction) -> None:
            value = txn.map("map").get("a")
            calls.append(value)
            if len(calls) == 1:
                two.map("map").put("a", 2)  # a conflict
            if len(calls) == 2:
                two.map("map").put("b", 2)  # the same object, but no conflict
                two.queue("queue").push(1)  # another object
            txn.map("map").put("c", value)

        before = log.tail()
        one.transact(swap)
        assert calls == [1, 2]
        assert log.tail() == before + 3 + 1  # only the last attempt has an entry
        assert two.map("map").items() == [("a", 2), ("b", 2), ("c", 2)]

        def stale(txn: Transaction) -> None:
            txn.map("map").get("a")
            two.map("map").put("a", 3)
            txn.map("map").put("c", 4)

        with pytest.raises(Conflict, match="'map' at 'a'"):
            one.transact(stale, attempts=1)
        assert log.tail() == before + 5
