"""Copies of objects, one of which is damaged: what readers get, and what puts it right."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

import zlog
from zlog import FindingKind, GapKind
from zlog._base.copies import TRIES_MAX

from .replicated import Replicated, damaged_value

LARGE = [bytes([65 + i]) * 20_000 for i in range(4)]
SMALL = [b"small %d" % i for i in range(3)]
HEAD = "zlog.orders.head"


@pytest.fixture
def store() -> Replicated:
    return Replicated()


@pytest.fixture
def stripe(store: Replicated) -> str:
    """The one object of a log with entries in the bytestream, at 0 to 3, and in a record."""
    with zlog.Log.create(store, "orders", width=1) as log:
        log.append_many(LARGE)
        log.append_many(SMALL)
        (ref,) = log.view.objects(log.view.live_stripe)
    assert store.alike(ref.name)
    assert store.alike(HEAD)
    return ref.name


Damage = Callable[[Replicated, str, int], None]
DAMAGES: dict[str, Damage] = {
    "stream": lambda store, stripe, rank: store.damage(rank, stripe, LARGE[2], bytes(20_000)),
    "data": lambda store, stripe, rank: store.damage(rank, stripe, SMALL[1], b"smell 1"),
    "record": lambda store, stripe, rank: damaged_value(
        store, rank, stripe, "e.0000000000000003.4"
    ),
    "header": lambda store, stripe, rank: damaged_value(store, rank, stripe, "zlog.header"),
    "head": lambda store, _, rank: damaged_value(store, rank, HEAD, "zlog.head"),
    "view": lambda store, _, rank: damaged_value(store, rank, HEAD, "v.0000000000000001"),
    "directory": lambda store, _, rank: damaged_value(store, rank, "zlog.directory", "n.orders"),
}
each_damage = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


def entries(log: zlog.Log) -> list[bytes]:
    items = list(log.read_range(0, log.tail()))
    assert all(isinstance(item, zlog.Entry) for item in items), items
    return [item.data for item in items if isinstance(item, zlog.Entry)]


@each_damage
def test_readers_get_what_the_primary_copy_has_damaged(
    store: Replicated, stripe: str, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    damage(store, stripe, 0)
    with zlog.Log.open(store, "orders") as log:
        assert entries(log) == LARGE + SMALL
        assert [log.read(p).data for p in range(7)] == LARGE + SMALL
        assert bytes(next(log.read_columns(0, 7)).data) == b"".join(LARGE + SMALL)
        if damage is not DAMAGES["directory"]:
            assert log.rescued
            (name,) = log.rescued
            assert f"the primary copy of object {name} is damaged" in caplog.text
    assert zlog.Log.list(store) == ["orders"]


@each_damage
def test_writers_go_on(store: Replicated, stripe: str, damage: Damage) -> None:
    """What is in the way of a write is put right, since only the primary copy decides."""
    damage(store, stripe, 0)
    with zlog.Log.open(store, "orders") as log:
        assert log.append(b"more") == 7
        log.roll()
        assert log.append(b"and more") == 8
        assert entries(log) == [*LARGE, *SMALL, b"more", b"and more"]


@each_damage
@pytest.mark.parametrize("rank", [0, 1], ids=["primary", "other"])
def test_an_audit_puts_it_right(store: Replicated, stripe: str, damage: Damage, rank: int) -> None:
    damage(store, stripe, rank)
    with zlog.Log.open(store, "orders") as log:
        healed = {finding.kind for finding in log.check(heal=True, copies=16)}
        assert healed == {FindingKind.HEALED}
        assert all(store.alike(name) for name in (stripe, HEAD, "zlog.directory"))
        assert [*log.check(copies=16)] == []


@each_damage
def test_an_audit_of_copies_tells_of_it(store: Replicated, stripe: str, damage: Damage) -> None:
    damage(store, stripe, 2)
    with zlog.Log.open(store, "orders") as log:
        found = [*log.check(copies=16)]
        assert {each.kind for each in found} == {FindingKind.DAMAGED_COPY}
        assert all(each.serious for each in found)


def test_a_record_that_is_gone_from_another_copy_comes_back(store: Replicated, stripe: str) -> None:
    copy = store.copies[1]
    attrs, omap, stream = copy.peek(stripe) or ({}, {}, b"")
    del omap[b"e.0000000000000006.3"]
    copy.poke(stripe, attrs, omap, stream)
    with zlog.Log.open(store, "orders") as log:
        (finding, *_) = log.check(heal=True, copies=16)
        assert finding.kind is FindingKind.HEALED
        assert finding.positions == range(4, 7)
        assert store.alike(stripe)


def test_what_no_copy_has_stays_lost(store: Replicated, stripe: str) -> None:
    for rank in range(3):
        DAMAGES["stream"](store, stripe, rank)
    with zlog.Log.open(store, "orders") as log:
        gaps = [item for item in log.read_range(0, 7) if isinstance(item, zlog.Gap)]
        assert [(gap.position, gap.kind) for gap in gaps] == [(2, GapKind.LOST)]
        kinds = [(each.kind, each.positions) for each in log.check(heal=True, copies=2)]
        assert kinds == [(FindingKind.LOST, range(2, 3))]
        assert not log.rescued


def test_entries_are_read_though_no_copy_has_all_of_them(store: Replicated, stripe: str) -> None:
    for rank in range(3):
        store.damage(rank, stripe, LARGE[rank], bytes(20_000))
    with zlog.Log.open(store, "orders") as log:
        assert entries(log) == LARGE + SMALL


def test_copies_are_asked_so_often_and_no_more(store: Replicated, stripe: str) -> None:
    for rank in range(3):
        DAMAGES["header"](store, stripe, rank)
    with zlog.Log.open(store, "orders") as log, pytest.raises(zlog.CorruptEntry):
        log.stat()
    assert store.asked.count("stat") == TRIES_MAX


def test_a_sound_log_costs_nothing_more(store: Replicated, stripe: str) -> None:
    with zlog.Log.open(store, "orders") as log:
        assert entries(log) == LARGE + SMALL
        log.append(b"more")
        log.trim(3)
    assert store.asked == []
    assert stripe


def test_healing_asks_for_no_right_that_a_reader_lacks(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not heal reads all the same."""
    run = store.execute

    def execute(object: str, method: str, *rest: object, **more: object) -> tuple[int, bytes]:
        if method in ("damaged", "salvage", "heal"):
            return -errno.EPERM, b""
        return run(object, method, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "execute", execute)
    DAMAGES["stream"](store, stripe, 0)
    DAMAGES["header"](store, stripe, 0)
    with zlog.Log.open(store, "orders") as log:
        assert [log.read(p).data for p in range(7)] == LARGE + SMALL
        assert FindingKind.DAMAGED_OBJECT in {finding.kind for finding in log.check()}
        with pytest.raises(zlog.ClassNotLoaded):
            [*log.check(heal=True)]


async def test_the_same_for_asyncio(store: Replicated, stripe: str) -> None:
    DAMAGES["record"](store, stripe, 0)
    DAMAGES["head"](store, stripe, 0)
    async with await zlog.aio.Log.open(store, "orders") as log:
        data = [item.data async for item in log.read_range(0, 7)]
        assert data == LARGE + SMALL
        assert log.rescued
        assert {f.kind async for f in log.check(heal=True)} == {FindingKind.HEALED}
    assert store.alike(stripe)
