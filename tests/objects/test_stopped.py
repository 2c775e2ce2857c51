"""Replicas that stop, since to go on could make them differ from others."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog.objects import (
    ApplyFailed,
    Diverged,
    NewerRecord,
    Rejected,
    Replicated,
    Space,
    Stopped,
    Transaction,
    UnknownObjectType,
    UnknownRecord,
    UnsuitableLog,
)
from zlog.objects import _machine as machine_module
from zlog.objects._records import Tags, encode, encode_write

from ..conformance.stored import door_to
from ..support.logs import leave_hole
from .test_objects import Account

TAGS = Tags.of("space")


def test_log_with_compaction_is_refused(log: zlog.Log, space: Space) -> None:
    log.set_retention(zlog.Retention(compact_after=3600))
    with pytest.raises(UnsuitableLog):
        Space.open(log, "new")
    log.stat()  # the handle learns of the option
    with pytest.raises(UnsuitableLog):
        space.map("map").get("key")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"not ours", UnknownRecord),
        (encode([0, 2, []]), NewerRecord),
        (encode_write([("Account", "account", 1)]), UnknownObjectType),
        (encode_write([("counter", "counter", "text")]), ApplyFailed),
    ],
)
def test_inapplicable_entry_stops_replica(
    log: zlog.Log, space: Space, data: bytes, error: type[Stopped]
) -> None:
    space.map("map").put("key", 1)
    position = log.append(data, tags=[TAGS.space])
    space.map("map").put("key", 2)
    for _ in range(2):
        with pytest.raises(error) as caught:
            space.map("map").get("key")
        assert caught.value.position == position
    assert space.position == position
    with pytest.raises(error):
        space.local.map("map").get("key")
    with pytest.raises(error):
        space.map("map").put("key", 3)
    with pytest.raises(error):
        Space.open(log, "space")
    assert space.at(position - 1).map("map").get("key") == 1


def test_missing_class_can_be_registered_later(log: zlog.Log) -> None:
    Space.open(log, "space").close()
    log.append(encode_write([("Account", "account", 5)]), tags=[TAGS.space])
    with Space.open(log, "space", types=[Account]) as knowing:
        assert knowing.object(Account, "account").read(lambda account: account.balance) == 5
        knowing.checkpoint()
    with pytest.raises(UnknownObjectType):
        Space.open(log, "space")


class Fixed(Account):
    """Refuses text, over which an account trips."""

    type_name = "Account"

    def apply(self, command: Any) -> int:
        if not isinstance(command, int):
            raise Rejected(f"{command!r} is no number")
        return super().apply(command)


def test_fixed_class_resumes_space(log: zlog.Log) -> None:
    with Space.open(log, "space", types=[Account]) as space:
        account = space.object(Account, "account")
        assert account.call(1) == 1
        with pytest.raises(ApplyFailed):
            account.call("two")
        log.append(encode_write([("Account", "account", 3)]), tags=[TAGS.space])
    with pytest.raises(ApplyFailed):
        Space.open(log, "space", types=[Account])
    for _ in range(2):  # as it was played, and from a checkpoint
        with Space.open(log, "space", types=[Fixed]) as space:
            assert space.object(Fixed, "account").read(lambda account: account.balance) == 4
            space.checkpoint()


class Dice(Account):
    """Not deterministic."""

    made = 0

    def __init__(self) -> None:
        Dice.made += 1
        self.balance = Dice.made


def test_diverging_replicas_stop(log: zlog.Log) -> None:
    one, two = (Space.open(log, "space", types=[Dice]) for _ in range(2))
    one.object(Dice, "dice").call(0)
    two.sync()
    one.checkpoint()
    with pytest.raises(Diverged, match="'dice'"):
        two.sync()
    one.object(Dice, "dice").call(0)
    with Space.open(log, "space", types=[Dice]) as new:
        new.checkpoint()
        one.sync()


class Journal(Replicated):
    """Changes its commands, and returns what it holds."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def apply(self, command: Any) -> list[Any]:
        self.lines.append([command.pop("kind"), command])
        return self.lines

    def snapshot(self) -> list[Any]:
        return self.lines

    def restore(self, state: list[Any]) -> None:
        self.lines = state


def test_values_kept_by_apply_are_not_shared(log: zlog.Log) -> None:
    one, two = (Space.open(log, "space", types=[Journal]) for _ in range(2))
    watch = two.object(Journal, "journal").watch()

    def twice(txn: Transaction) -> None:
        journal = txn.object(Journal, "journal")
        journal.call({"kind": "b"}).append("not from the log")
        assert journal.call({"kind": "c"}) == [["a", {}], ["b", {}], ["c", {}]]

    one.object(Journal, "journal").call({"kind": "a"}).append("not from the log")
    one.transact(twice)
    for space in (one, two):
        found = space.object(Journal, "journal").read(lambda journal: [*journal.lines])
        assert found == [["a", {}], ["b", {}], ["c", {}]]
    changes = [change.value for _ in range(2) for change in next(watch).changes]
    assert changes == [{"kind": "a"}, {"kind": "b"}, {"kind": "c"}]


def test_failed_snapshot_does_not_stop_replicas(log: zlog.Log) -> None:
    class Broken(Dice):
        def snapshot(self) -> Any:
            return {self.balance}

    one, two = (Space.open(log, "space", types=[Broken]) for _ in range(2))
    one.object(Broken, "broken").call(0)
    with pytest.raises(TypeError, match="a value must be JSON"):
        one.checkpoint()
    assert one.objects() == two.objects() == {"broken": "Broken"}


def test_invalid_classes_are_refused(log: zlog.Log) -> None:
    class Named(Account):
        type_name = "map"

    class Twin(Account):
        type_name = "Account"

    with pytest.raises(ValueError, match="two classes have the type name 'map'"):
        Space.open(log, "space", types=[Named])
    with pytest.raises(ValueError, match="two classes have the type name 'Account'"):
        Space.open(log, "space", types=[Account, Twin])

    class Late(Account):
        version = "2"  # type: ignore[assignment]

    class Asking(Account):
        def __init__(self, balance: int) -> None:
            self.balance = balance

    class Unfinished(Replicated):
        def apply(self, command: Any) -> None:
            pass

    with pytest.raises(TypeError, match="an int of 1 or more"):
        Space.open(log, "space", types=[Late])
    with pytest.raises(TypeError, match="cannot create an object of Asking"):
        Space.open(log, "space", types=[Asking])
    with pytest.raises(TypeError, match=r"cannot create an object of Unfinished.*restore"):
        Space.open(log, "space", types=[Unfinished])  # type: ignore[type-abstract]
    with pytest.raises(TypeError, match="is not a subclass"):
        Space.open(log, "space", types=[dict])  # type: ignore[list-item]
    with Space.open(log, "space") as space, pytest.raises(ValueError, match="not among"):
        space.object(Account, "account")


def test_replica_never_passes_hole(tmp_path: Path) -> None:
    with ExitStack() as stack:
        store = stack.enter_context(zlog.connect(tmp_path))  # with a sequencer
        log = stack.enter_context(zlog.Log.create(store, "log", hole_timeout=0.05))
        own = stack.enter_context(zlog.Log.open(store, "log", hole_timeout=None))
        space = stack.enter_context(Space.open(log, "space"))
        late = stack.enter_context(Space.open(own, "space"))
        space.map("map").put("key", 1)
        hole = leave_hole(log)
        space.map("map").put("key", 2)
        for _ in range(2):
            with pytest.raises(zlog.NotWritten):
                late.map("map").get("key")
            assert late.position == hole
            assert late.local.map("map").get("key") == 1
        assert space.map("map").get("key") == 2  # this one waits, and fills it
        assert late.map("map").get("key") == 2


@pytest.mark.parametrize("selects", [False, True], ids=["reads all", "reads by tag"])
def test_replica_never_passes_lost_entry(
    log: zlog.Log, space: Space, other: Space, selects: bool
) -> None:
    space.map("map").put("key", 1)
    other.sync()
    lost = space.map("map").put("key", 2)
    name = log.view.object_of(lost).name
    with door_to(log.store) as door:
        door.save(name, replace(door.load(name), omap={}))
    space.map("map").put("key", 3)
    feed = other._replica._feed
    feed._selects = selects
    feed.go_to(other.position)
    for _ in range(2):
        with pytest.raises(zlog.CorruptEntry, match=f"position {lost} "):
            other.map("map").get("key")
        assert other.position == lost
        assert other.local.map("map").get("key") == 1


def test_space_with_lost_entries_is_not_recreated(log: zlog.Log, space: Space) -> None:
    space.map("map").put("key", 1)
    for ref in log.view.objects():
        with door_to(log.store) as door:
            door.save(ref.name, replace(door.load(ref.name), omap={}))
    tail = log.tail()
    with pytest.raises(zlog.CorruptEntry):
        Space.open(log, "space")
    assert log.tail() == tail
    Space.open(log, "another").close()


def test_interrupted_apply_is_not_repeated(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was applied was interrupted must not be applied again."""
    space.counter("counter").add(1)

    def interrupted(self: machine_module.Machine, position: int, op: Any) -> Any:
        apply(self, position, op)
        raise KeyboardInterrupt

    apply = machine_module.Machine._run
    with monkeypatch.context() as patch:
        patch.setattr(machine_module.Machine, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            space.counter("counter").add_and_get(1)
    with pytest.raises(Stopped, match="was interrupted"):
        space.counter("counter").get()
