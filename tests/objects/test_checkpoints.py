"""Checkpoints, what they let go, and replicas that were overtaken."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zlog
from zlog.objects import (
    LockTimeout,
    PastLost,
    ResultLost,
    Space,
    SpaceNotFound,
    UnknownRecord,
)
from zlog.objects import _checkpoint as checkpoint_module
from zlog.objects import _decided as decided_module
from zlog.objects import _restore as restore_module
from zlog.objects._machine import Frozen
from zlog.objects._pieces import Joined, Sum, cut
from zlog.objects._records import Tags, encode, encode_write

from ..support.logs import data_of

TAGS = Tags.of("space")


def fill(space: Space, count: int = 50) -> dict[str, str]:
    """Put keys into a map, and return it."""
    items = {f"key-{i:04}": "v" * i for i in range(count)}
    space.map("map").put_many(items)
    return items


def test_checkpoint_is_split_into_pieces(
    log: zlog.Log, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "PIECE_BYTES", 100)
    items = fill(space)
    space.queue("queue").push(*range(10))
    space.set("empty").discard("nothing")
    start = space.checkpoint()
    space.map("map").put("after", 1)
    pieces = [*log.read_range(tags=[TAGS.piece])]
    assert len(pieces) > 10
    assert all(isinstance(each, zlog.Entry) and len(each.data) <= 100 for each in pieces)
    with Space.open(log, "space") as late:
        assert dict(late.map("map").items()) == {**items, "after": 1}
        assert late.queue("queue").items() == [*range(10)]
        assert late.objects() == {"map": "map", "queue": "queue", "empty": "set"}
    assert log.cursor("objects.space").position == start


def test_checkpoint_trim_stops_at_other_cursors(log: zlog.Log, space: Space) -> None:
    items = fill(space)
    reader = log.cursor("reader", create=1)
    with Space.open(log, "another") as another:
        another.map("map").put("key", 1)
        space.checkpoint(trim=True)
        assert log.earliest() == 1
        reader.remove()
        space.checkpoint(trim=True)
        assert log.earliest() == log.cursor("objects.another").position
        another.checkpoint()
        start = space.checkpoint(trim=True)
        assert start > log.earliest() == log.cursor("objects.another").position
        assert another.map("map").items() == [("key", 1)]
    with Space.open(log, "space") as late, Space.open(log, "another") as another:
        assert dict(late.map("map").items()) == items
        assert another.map("map").items() == [("key", 1)]


def test_incomplete_checkpoint_is_ignored(
    log: zlog.Log, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = fill(space)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "_append_manifest", die)
        with pytest.raises(KeyboardInterrupt):
            space.checkpoint()
    with Space.open(log, "space") as late:
        assert dict(late.map("map").items()) == items
    start = space.checkpoint(trim=True)
    assert log.earliest() == start
    assert len(data_of(log.read_range(tags=[TAGS.piece]))) == 1


@pytest.mark.parametrize("damage", ["digest", "size", "pieces", "chunks"])
def test_older_checkpoint_replaces_damaged_newest(log: zlog.Log, space: Space, damage: str) -> None:
    items = fill(space)
    start = space.checkpoint()
    space.map("map").put("after", 1)
    piece = next(item.position for item in log.read_range(tags=[TAGS.piece]))
    wrong: dict[str, Any] = {"pieces": [piece], "size": 5, "digest": "0"}
    if damage == "pieces":
        wrong["pieces"] = [start]  # holds something else
    if damage == "chunks":
        wrong["pieces"] = [log.append(b"\1\0\0\0?", tags=[TAGS.piece])]
    log.append(
        encode((3, 1, "", start, wrong["pieces"], wrong["size"], wrong["digest"], {})),
        tags=[TAGS.space, TAGS.checkpoint],
    )
    with Space.open(log, "space") as late:
        assert dict(late.map("map").items()) == {**items, "after": 1}


def test_unreadable_checkpoint_does_not_fall_back(log: zlog.Log, space: Space) -> None:
    fill(space)
    start = space.checkpoint()
    total = Sum()
    total.add(b"\1\0\0\0?")
    piece = log.append(b"\1\0\0\0?", tags=[TAGS.piece])
    log.append(
        encode((3, 1, "", start, [piece], total.size, total.digest, {})),
        tags=[TAGS.space, TAGS.checkpoint],
    )
    with pytest.raises(UnknownRecord, match=f"the checkpoint below {start} has an invalid part"):
        Space.open(log, "space")


def test_large_values_are_split_into_chunks(space: Space) -> None:
    """A actor holds one chunk at a time, whatever a state's size."""
    value = "v" * 100_000
    for i in range(20):
        space.map("map").put(f"{i}", value)
        space.queue("queue").push(value)
    assert space.objects() == {"map": "map", "queue": "queue"}  # and all was played
    sizes = [len(each) for each in Frozen(0, space._replica.machine).chunks()]
    assert len(sizes) == 1 + 7 + 7  # what is remembered of transactions, and three values in each
    assert max(sizes) < 310_000


def test_chunk_is_joined_in_linear_time() -> None:
    chunk = bytes(16 << 20)
    joined, began = Joined(), time.monotonic()
    (found,) = [each for piece in cut([chunk], 4096) for each in joined.add(piece)]
    assert found == chunk
    assert not joined.rest
    assert time.monotonic() - began < 2  # to copy all for each piece takes ten times as long


def test_overtaken_replica_restores_from_checkpoint(space: Space, other: Space) -> None:
    behind = other.map("map")
    items = fill(space)
    watch = other.watch(start=other.position)
    space.checkpoint(trim=True)
    space.map("map").put("after", 1)
    assert dict(behind.items()) == {**items, "after": 1}
    assert other.counter("counter").add_and_get(2) == 2
    with pytest.raises(PastLost) as caught:
        next(watch)
    assert caught.value.resume is not None
    assert next(other.watch("counter", start=caught.value.resume)).changes[0].value == 2


@pytest.fixture
def overtaken(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.MonkeyPatch]:
    """Have another client's trim come between each entry of ``space`` and its result."""
    fill(space)
    port = space._replica.port
    append = port.append

    async def append_and_trim(data: bytes, tags: Any) -> int:
        position = await append(data, tags)
        other.counter("others").add_and_get(1)
        other.checkpoint(trim=True)
        return position

    with monkeypatch.context() as patch:
        patch.setattr(port, "append", append_and_trim)
        yield patch


def test_result_survives_trim(space: Space, other: Space, overtaken: pytest.MonkeyPatch) -> None:
    other.queue("queue").push({"job": [1.5, None]}, "another")
    assert space.counter("counter").add_and_get(2) == 2
    assert space.queue("queue").pop() == {"job": [1.5, None]}
    with space.lock("lock").acquire("me", lease=60, keep=False) as held:
        held.renew()
        with pytest.raises(LockTimeout):
            space.lock("lock").acquire("again", timeout=0)
    overtaken.undo()
    assert space.counter("counter").get() == 2
    assert space.queue("queue").items() == ["another"]
    assert space.lock("lock").holder() is None
    assert space.lock("lock").waiting() == []


def test_dropped_result_raises_result_lost(
    space: Space, other: Space, overtaken: pytest.MonkeyPatch
) -> None:
    """The checkpoint keeps too few of them; no lock needs any."""
    overtaken.setattr(decided_module, "RESULTS_BYTES", 0)
    other.queue("queue").push("job")
    with pytest.raises(ResultLost, match="queue 'queue' executed command") as caught:
        space.queue("queue").pop()
    decided = space._replica.machine.decided.find(caught.value.id)
    assert decided is not None
    assert decided.position == caught.value.position
    assert "Do not repeat" in caught.value.hint
    with space.lock("lock").acquire("me", lease=60, keep=False) as held:
        held.renew()
        with pytest.raises(LockTimeout):
            space.lock("lock").acquire("again", timeout=0)
    assert space.lock("lock").holder() is None
    assert space.lock("lock").waiting() == []
    assert space.queue("queue").items() == []


def test_outcome_of_trimmed_transaction_is_known(
    space: Space, overtaken: pytest.MonkeyPatch
) -> None:
    with overtaken.context():
        assert space.transact(lambda txn: txn.counter("counter").add(1) or "done") == "done"
        with space.transaction() as txn:
            txn.counter("counter").add(1)
        with pytest.raises(zlog.objects.AlreadyCommitted):  # by which client is not known
            space.transact(lambda txn: txn.counter("counter").add(1), id="given")
    assert space.counter("counter").get() == 3


def test_forgotten_outcome_raises_outcome_unknown(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record that is appended again is late: that tells nothing of the first one."""
    monkeypatch.setattr(decided_module, "DECIDED_MAX", 2)
    port = space._replica.port
    append = port.append

    async def append_and_forget(data: bytes, tags: Any) -> int:
        patch.undo()
        position = await append(data, tags)
        for _ in range(3):
            other.counter("others").add_and_get(1)
        other.checkpoint(trim=True)
        return position

    with monkeypatch.context() as patch:
        patch.setattr(port, "append", append_and_forget)
        with pytest.raises(zlog.objects.OutcomeUnknown):
            space.counter("counter").add_and_get(1)
    assert space.counter("counter").get() == 1


def test_trim_without_checkpoint_loses_past(log: zlog.Log, space: Space) -> None:
    fill(space)
    with Space.open(log, "space") as behind:
        space.map("map").put("after", 1)
        log.trim_to(log.tail(), past_cursors=True)
        with pytest.raises(PastLost):
            behind.map("map").get("after")
    with pytest.raises(PastLost):
        Space.open(log, "space")
    with pytest.raises(PastLost):
        space.at(1)


def test_open_creates_space_once(log: zlog.Log) -> None:
    with pytest.raises(SpaceNotFound):
        Space.open(log, "space", create=False)
    assert log.tail() == 0
    log.append(b"before")
    Space.open(log, "space").close()
    tail = log.tail()
    Space.open(log, "space").close()
    assert log.tail() == tail == 2
    for name in ("", "a/b", ".a", "x" * 110):
        with pytest.raises(ValueError, match="is not a valid name for a space"):
            Space.open(log, name)


def test_interrupted_space_creation_is_finished(log: zlog.Log) -> None:
    log.append_many([b"before"] * 3)
    log.cursor("objects.space", create=1)
    with Space.open(log, "space") as space:
        assert space.objects() == {}
    log.cursor("objects.gone", create=1)
    log.trim_to(2, past_cursors=True)
    with pytest.raises(PastLost):
        Space.open(log, "gone")


def test_read_only_store_serves_space(tmp_path: Path) -> None:
    with (
        zlog.connect(tmp_path) as store,
        zlog.Log.create(store, "log") as log,
        Space.open(log, "space") as space,
    ):
        space.map("map").put("key", 1)
    with zlog.connect(f"{tmp_path.as_uri()}?mode=ro") as store, zlog.Log.open(store, "log") as log:
        with Space.open(log, "space") as space:
            assert space.map("map").get("key") == 1
            assert space.transact(lambda txn: txn.map("map").get("key")) == 1
            with pytest.raises(zlog.StoreReadOnly):
                space.map("map").put("key", 2)
        with pytest.raises(zlog.StoreReadOnly):
            Space.open(log, "new")


def test_feed_switches_between_tag_and_full_reads(log: zlog.Log, space: Space) -> None:
    """The feed reads by tag where little is the space's, and everything where much is."""
    feed = space._replica._feed
    ways = []
    for i in range(4):
        log.append_many([b"something else"] * 5000)
        space.map("map").put(f"a{i}", i)
        space.sync()
        ways.append(feed._selects)
        log.append_many(
            [encode_write([("map", "map", (f"b{i}", j))]) for j in range(3000)], tags=[TAGS.space]
        )
        space.sync()
        ways.append(feed._selects)
    assert {*ways} == {True, False}
    assert space.map("map").count() == 8
    assert space.map("map").items(prefix="b") == [(f"b{i}", 2999) for i in range(4)]


def test_checkpoint_removed_during_load_is_replaced(
    log: zlog.Log, space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = fill(space)
    space.checkpoint(trim=True)
    load = restore_module._load

    async def trim_and_load(*words: Any) -> Any:
        monkeypatch.undo()
        other.checkpoint(trim=True)
        return await load(*words)

    monkeypatch.setattr(restore_module, "_load", trim_and_load)
    with Space.open(log, "space") as late:
        assert dict(late.map("map").items()) == items


def test_overtaken_replica_retries_checkpoint_search(
    space: Space, other: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.sync()
    items = fill(space)
    space.checkpoint(trim=True)
    space.map("map").put("after", 1)

    async def fail(*_: Any) -> None:
        raise zlog.StoreTimeout("no answer")

    with monkeypatch.context() as patch:
        patch.setattr("zlog.objects._replica.restored", fail)
        with pytest.raises(zlog.StoreTimeout):
            other.sync()
    assert dict(other.map("map").items()) == {**items, "after": 1}
