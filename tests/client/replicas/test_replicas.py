"""Replicas of objects, one of which is damaged: what readers get, and what puts it right."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
from collections.abc import Callable

import pytest

import zlog
from zlog import FindingKind, GapKind
from zlog._native import replies
from zlog._native.completions import CompletionQueue
from zlog._native.writes import encode_write
from zlog._replica.replicas import TRIES_MAX

from ...conformance.stored import HEADER, MemoryDoor, envelope, fields_of
from ...support.logs import data_without_gap, leave_hole
from ..transfers import exported
from .replicated import (
    DAMAGES,
    HEAD,
    LARGE,
    LISTED,
    SMALL,
    Damage,
    Replicated,
    damaged_value,
    vanished_value,
    with_older_copy,
)

each_damage = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


@each_damage
def test_readers_get_entries_that_the_primary_has_damaged(
    store: Replicated, stripe: str, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    damage(store, stripe, 0)
    with zlog.Log.open(store, "orders") as log:
        assert data_without_gap(log) == LARGE + SMALL
        assert [log.read(p).data for p in range(7)] == LARGE + SMALL
        assert bytes(next(log.read_columns(0, 7)).data) == b"".join(LARGE + SMALL)
        if damage is not DAMAGES["directory"]:
            assert log.replica_reads
            (name,) = log.replica_reads
            assert f"the primary replica of object {name} is damaged" in caplog.text
    assert zlog.Log.list(store) == ["orders"]


@each_damage
def test_copies_have_entries_that_the_primary_has_damaged(
    store: Replicated, stripe: str, damage: Damage
) -> None:
    with zlog.Log.open(store, "orders") as log:
        sound = exported(log)
        damage(store, stripe, 0)
        assert exported(log) == sound


@each_damage
def test_writers_continue_despite_damaged_primary(
    store: Replicated, stripe: str, damage: Damage
) -> None:
    """What is in the way of a write is put right, since only the primary replica decides."""
    damage(store, stripe, 0)
    with zlog.Log.open(store, "orders") as log:
        assert log.append(b"more") == 7
        log.roll()
        assert log.append(b"and more") == 8
        assert data_without_gap(log) == [*LARGE, *SMALL, b"more", b"and more"]


@each_damage
@pytest.mark.parametrize("rank", [0, 1], ids=["primary", "other"])
def test_an_audit_repairs_damage(store: Replicated, stripe: str, damage: Damage, rank: int) -> None:
    damage(store, stripe, rank)
    with zlog.Log.open(store, "orders") as log:
        repaired = {finding.kind for finding in log.check(repair=True, replicas=16)}
        assert repaired == {FindingKind.REPAIRED}
        assert all(store.alike(name) for name in (stripe, HEAD, LISTED))
        assert [*log.check(replicas=16)] == []


@each_damage
def test_an_audit_reports_damage_in_a_replica(
    store: Replicated, stripe: str, damage: Damage
) -> None:
    damage(store, stripe, 2)
    with zlog.Log.open(store, "orders") as log:
        found = [*log.check(replicas=16)]
        assert {each.kind for each in found} == {FindingKind.DAMAGED_REPLICA}
        assert all(each.serious and "the primary replica" not in each.detail for each in found)


def test_an_entry_damaged_in_all_replicas_stays_lost(store: Replicated, stripe: str) -> None:
    for rank in range(3):
        DAMAGES["stream"](store, stripe, rank)
    with zlog.Log.open(store, "orders") as log:
        gaps = [item for item in log.read_range(0, 7) if isinstance(item, zlog.Gap)]
        assert [(gap.position, gap.kind) for gap in gaps] == [(2, GapKind.LOST)]
        kinds = [(each.kind, each.positions) for each in log.check(repair=True, replicas=2)]
        assert kinds == [(FindingKind.LOST, range(2, 3))]
        assert not log.replica_reads


def test_replicas_are_asked_again_if_the_primary_answered(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    DAMAGES["stream"](store, stripe, 0)
    tries = 0
    ask = store.ask_replica

    def ask_primary_first(
        queue: CompletionQueue, token: int, object: str, method: str, request: bytes
    ) -> None:
        nonlocal tries
        tries += 1
        if tries <= TRIES_MAX:
            code, reply = store.replicas[0].execute(object, method, request)
            queue.put(token, code, (1).to_bytes(8, "little") + reply)
        else:
            ask(queue, token, object, method, request)

    monkeypatch.setattr(store, "ask_replica", ask_primary_first)
    monkeypatch.setattr("zlog._read.read._REPLICAS_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("zlog._read.read._REPLICAS_PAUSE_SECONDS_MAX", 0.01)
    with zlog.Log.open(store, "orders") as log:
        assert log.read(2).data == LARGE[2]


def test_reader_combines_partly_damaged_replicas(store: Replicated, stripe: str) -> None:
    for rank in range(3):
        store.damage(rank, stripe, LARGE[rank], bytes(20_000))
    with zlog.Log.open(store, "orders") as log:
        assert data_without_gap(log) == LARGE + SMALL


@pytest.mark.parametrize("stale", [1, 2])
@pytest.mark.parametrize("what", ["header", "head"])
def test_repair_restores_the_newest_replica(
    store: Replicated, stripe: str, what: str, stale: int
) -> None:
    """An OSD that was away has a sound replica from before a seal: no epoch is taken back."""
    name = HEAD if what == "head" else stripe
    with zlog.Log.open(store, "orders") as log:
        newest = with_older_copy(store, log, name, what, stale)
        assert FindingKind.REPAIRED in {finding.kind for finding in log.check(repair=True)}
    assert MemoryDoor(store.replicas[0]).load(name) == newest
    assert store.alike(name)


def test_contradicting_replicas_repair_nothing(
    store: Replicated, stripe: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One was sealed, the other one written to: each lacks what the other one has."""
    first, second = store.replicas[1:]
    with zlog.Log.open(store, "orders") as log:
        before = MemoryDoor(second).load(stripe)
        second.execute(stripe, "write", core_write(log, 7))
        written = MemoryDoor(second).load(stripe)
        MemoryDoor(second).save(stripe, before)
        log.reconfigure(options={"team": "a"})
        MemoryDoor(second).save(stripe, written)
        assert first.peek(stripe) != second.peek(stripe)
        DAMAGES["header"](store, stripe, 0)
        damaged = store.replicas[0].peek(stripe)
        with pytest.raises(zlog.CorruptEntry):
            log.stat()
        with pytest.raises(zlog.CorruptEntry):
            log.append(b"more")
        assert "zlog.header contradict each other" in caplog.text
        assert log.read(0).data == LARGE[0]
    assert store.replicas[0].peek(stripe) == damaged


def test_values_that_can_not_be_ordered_have_no_newest(store: Replicated, stripe: str) -> None:
    """They differ in what does not only grow: how many entries there are."""
    value = MemoryDoor(store.replicas[0]).load(stripe).attrs[HEADER]
    fields, _ = fields_of(value)
    at = 33
    more = (int.from_bytes(fields[at : at + 8], "little") + 1).to_bytes(8, "little")
    other = envelope(HEADER, fields[:at] + more + fields[at + 8 :], b"", value[0])
    assert replies.newest(HEADER, [value, other]) is None
    assert replies.newest(HEADER, [other, other]) == 0


@pytest.mark.parametrize("damage", [damaged_value, vanished_value])
def test_a_trimmed_record_of_a_replica_is_not_restored(
    store: Replicated, stripe: str, damage: Callable[[Replicated, int, str, str], None]
) -> None:
    key, door = "e.0000000000000006.3", MemoryDoor(store.replicas[1])
    before = door.load(stripe)
    with zlog.Log.open(store, "orders") as log:
        log.trim(5)
        door.save(stripe, before)
        damage(store, 0, stripe, key)
        damaged = store.replicas[0].peek(stripe)
        assert FindingKind.REPAIRED not in {finding.kind for finding in log.check(repair=True)}
    assert store.replicas[0].peek(stripe) == damaged


def core_write(log: zlog.Log, position: int) -> bytes:
    """A request that writes an entry."""
    return encode_write(log.view.epoch, 0, b"w" * 16, 1, [position], [0], [b"other"])


@pytest.mark.parametrize("damage", ["view", "vanished view"])
async def test_a_follower_without_repair_rights_waits_at_a_hole(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """It fills below a tail that the head has recorded, which the head can't do now."""
    monkeypatch.setattr("zlog._replica.replicas._FAILED_SECONDS", 0.0)
    with zlog.Log.open(store, "orders") as log:
        hole = leave_hole(log)
        log.append(b"more")
    async with await zlog.aio.Log.open(store, "orders") as log:
        DAMAGES[damage](store, stripe, 0)
        refused = refuse(store, monkeypatch, "heal", times=3)
        following = log.follow(hole_timeout=0.01)
        items = [await asyncio.wait_for(anext(following), 30) for _ in range(hole + 2)]
    gap = items.pop(hole)
    assert [item.data for item in items] == [*LARGE, *SMALL, b"more"]
    assert (gap.position, gap.kind) == (hole, GapKind.FILLED)
    assert refused == ["heal"] * 3


def test_a_failed_lookup_in_replicas_is_not_repeated_at_once(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.tells_replicas_apart = False
    for rank in range(3):
        DAMAGES["stream"](store, stripe, rank)
    store.damage(0, stripe, LARGE[1], bytes(20_000))

    def lost_at() -> list[int]:
        return [item.position for item in log.read_range(0, 7) if isinstance(item, zlog.Gap)]

    with zlog.Log.open(store, "orders") as log:
        assert lost_at() == [2]
        asked = len(store.asked)
        assert lost_at() == [2]
        assert len(store.asked) - asked < TRIES_MAX // 2  # those for position 1
        monkeypatch.setattr("zlog._read.read.POSITION_FAILED_SECONDS", 0.0)
        log._client.io.failed_reads.clear()
        assert lost_at() == lost_at() == [2]
        assert len(store.asked) - asked >= 2 * TRIES_MAX


def test_a_sound_log_asks_no_replica(store: Replicated, stripe: str) -> None:
    with zlog.Log.open(store, "orders") as log:
        assert data_without_gap(log) == LARGE + SMALL
        log.append(b"more")
        log.trim(3)
    assert store.asked == []
    assert stripe


def refuse(
    store: Replicated, monkeypatch: pytest.MonkeyPatch, *methods: str, times: int = 10**6
) -> list[str]:
    """Have the OSD refuse methods to the client, ``times`` calls; returns those that it refused."""
    run = store.execute
    refused: list[str] = []

    def execute(object: str, method: str, *rest: object, **more: object) -> tuple[int, bytes]:
        if method in methods and len(refused) < times:
            refused.append(method)
            return -errno.EPERM, b""
        return run(object, method, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "execute", execute)
    return refused


def test_a_client_without_repair_rights_reads_damaged_objects(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not repair reads all the same."""
    refuse(store, monkeypatch, "damaged", "salvage", "heal")
    DAMAGES["stream"](store, stripe, 0)
    DAMAGES["header"](store, stripe, 0)
    with zlog.Log.open(store, "orders") as log:
        assert [log.read(p).data for p in range(7)] == LARGE + SMALL
        assert FindingKind.DAMAGED_OBJECT in {finding.kind for finding in log.check()}
        with pytest.raises(zlog.ClassNotLoaded):
            [*log.check(repair=True)]


@pytest.mark.parametrize("third", ["down", "without the class"])
def test_an_entry_is_lost_only_if_all_replicas_lack_it(
    store: Replicated, stripe: str, third: str
) -> None:
    for rank in (0, 1):
        DAMAGES["stream"](store, stripe, rank)
    if third == "down":
        store.up = {0, 1}
    else:
        store.without_class = {2}
    with zlog.Log.open(store, "orders") as log:
        reason = r"position 2 of log 'orders' .* a replica that may have it did not"
        with pytest.raises(zlog.StoreTimeout, match=reason):
            log.read(2)
        assert log.read(1).data == LARGE[1]
        store.up, store.without_class = {0, 1, 2}, set()
        assert log.read(2).data == LARGE[2]


def test_a_restarted_osd_counts_as_one_replica(store: Replicated, stripe: str) -> None:
    for rank in (0, 1):
        DAMAGES["stream"](store, stripe, rank)
    store.up = {0, 1}

    def restart() -> None:
        store.map_epoch = 1 + len(store.asked) // 10

    store.on_ask = restart
    with zlog.Log.open(store, "orders") as log, pytest.raises(zlog.StoreTimeout):
        log.read(2)


def test_replicas_are_asked_again_after_a_layout_change(store: Replicated, stripe: str) -> None:
    DAMAGES["stream"](store, stripe, 0)
    with zlog.Log.open(store, "orders") as log, zlog.Log.open(store, "orders") as other:

        def roll() -> None:
            if len(store.asked) == 1:
                other.roll()

        store.on_ask = roll
        assert log.read(2).data == LARGE[2]
        assert log.view == other.view


@pytest.mark.parametrize("apart", [True, False])
def test_damage_in_slow_replicas_is_a_loss(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    """Though the time in which replicas are asked is over before all answers are there."""
    for rank in range(3):
        DAMAGES["stream"](store, stripe, rank)
    store.tells_replicas_apart = apart
    store.on_ask = lambda: time.sleep(0.02)
    monkeypatch.setattr("zlog._replica.replicas.SECONDS_MAX", 0.4)
    monkeypatch.setattr("zlog._read.read.SECONDS_MAX", 0.4)
    monkeypatch.setattr("zlog._read.read._REPLICAS_PAUSE_SECONDS_MAX", 2.0)
    with zlog.Log.open(store, "orders") as log, pytest.raises(zlog.CorruptEntry):
        log.read(2)


@pytest.mark.parametrize("acting", [2, 3])
def test_all_replicas_must_answer_if_they_can_not_be_told_apart(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch, acting: int
) -> None:
    """So on a cluster without the class."""
    for rank in range(3):
        DAMAGES["stream"](store, stripe, rank)
    store.up = set(range(acting))
    store.tells_replicas_apart = False
    monkeypatch.setattr("zlog._read.read._REPLICAS_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("zlog._read.read._REPLICAS_PAUSE_SECONDS_MAX", 0.002)
    error = zlog.CorruptEntry if acting == 3 else zlog.StoreTimeout
    with zlog.Log.open(store, "orders") as log, pytest.raises(error):
        log.read(2)
    assert store.asked.count("read") == 3 * TRIES_MAX


@pytest.mark.parametrize("what", ["header", "head"])
def test_an_older_replica_is_not_used_while_the_newest_is_silent(
    store: Replicated, stripe: str, what: str
) -> None:
    name = HEAD if what == "head" else stripe
    with zlog.Log.open(store, "orders") as log:
        newest = with_older_copy(store, log, name, what, 1)
        damaged = MemoryDoor(store.replicas[0]).load(name)
        store.up = {0, 1}
        with pytest.raises((zlog.StoreTimeout, zlog.CorruptEntry)):  # asked of it, or of all
            log.stat()
        with contextlib.suppress(zlog.StoreTimeout):
            assert FindingKind.REPAIRED not in {finding.kind for finding in log.check(repair=True)}
        assert MemoryDoor(store.replicas[0]).load(name) == damaged
        store.up = {0, 1, 2}
        assert FindingKind.REPAIRED in {finding.kind for finding in log.check(repair=True)}
    assert MemoryDoor(store.replicas[0]).load(name) == newest
