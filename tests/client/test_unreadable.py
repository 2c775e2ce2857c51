"""What a newer version of zlog stored: told as such, never as lost, and left as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

import zlog
from zlog._append.append import Appender
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply, deadline_of
from zlog._io import BlockingIo, drive
from zlog._native.local import MemoryStore
from zlog.view import View

from ..conformance import wire
from ..conformance.stored import HEAD, HEADER, LATER, MemoryDoor, door_to, envelope, of_version
from .planted import make_lost


def make_unreadable(log: zlog.Log, position: int) -> None:
    """What is stored at a position is of a newer version from now on."""
    name, key = log.view.object_of(position).name, b"e.%016x.1" % position
    with door_to(log.store) as door:
        content = door.load(name)
        newer = of_version(key, content.omap[key], LATER, compat=LATER)
        door.save(name, content.with_value(key, newer))


@pytest.fixture
def log(memory: zlog.Store) -> Iterator[zlog.Log]:
    """Five entries, of which that at position 2 is of a newer version."""
    with zlog.Log.create(memory, "orders", width=1) as log:
        for number in range(5):
            log.append(b"entry %d" % number)
        make_unreadable(log, 2)
        yield log


def test_readers_get_unreadable_gap_and_continue(log: zlog.Log) -> None:
    items = list(log.read_range(0, None))
    gap = zlog.Gap(2, 3, zlog.GapKind.UNREADABLE)
    assert [item for item in items if isinstance(item, zlog.Gap)] == [gap]
    assert [item.position for item in items] == [0, 1, 2, 3, 4]
    assert next(iter(log.read_columns(0, None))).gaps == [gap]
    with pytest.raises(zlog.UnsupportedVersion, match="newer version") as raised:
        log.read(2)
    assert raised.value.gap == gap
    assert "Upgrade" in raised.value.hint


def test_unreadable_entry_is_not_trimmed_or_filled(log: zlog.Log) -> None:
    for change in (log.trim, log.fill):
        with pytest.raises(zlog.UnsupportedVersion):
            change(2)
    log.trim(1)
    assert log.append(b"goes on") == 5
    kinds = [item.kind for item in log.read_range(1, 3) if isinstance(item, zlog.Gap)]
    assert kinds == [zlog.GapKind.TRIMMED, zlog.GapKind.UNREADABLE]


def test_check_distinguishes_unreadable_from_damaged(log: zlog.Log) -> None:
    audit = log.check()
    (finding,) = audit
    assert finding.kind is zlog.FindingKind.UNREADABLE
    assert finding.positions == range(2, 3)
    assert (audit.summary.unreadable, audit.summary.lost, audit.summary.entries) == (1, 0, 4)


class GrantedBefore:
    """Grants of a sequencer that gave these positions to this writer already."""

    def __init__(self, view: View, first: int) -> None:
        self._granted = view, first

    async def grant(self, *_: object) -> tuple[View, int]:
        return self._granted


@pytest.mark.parametrize(
    ("make", "hint"), [(make_unreadable, "Upgrade"), (make_lost, "zlog check LOG --repair")]
)
def test_append_at_unreadable_entry_is_indeterminate(
    memory: zlog.Store, make: Callable[[zlog.Log, int], None], hint: str
) -> None:
    """An append that meets damage does not move: after a repair it would be stored twice."""
    with zlog.Log.create(memory, "orders", width=2) as log:
        for number in range(3):
            log.append(b"entry %d" % number)
        client = log._client
        late = Appender(client.layout, GrantedBefore(log.view, 2), client.writer, client.limit)
        make(log, 2)
        with pytest.raises(zlog.StoreTimeout, match="position 2") as raised:
            drive(late.append([b"slow", b"other object"], deadline_of(client.io, 5)))
    assert raised.value.positions == (None, 3)
    assert raised.value.retryable
    assert hint in raised.value.hint


def test_reply_of_newer_class_acknowledges_entry(
    memory: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = BlockingIo.execute

    async def newer(io: BlockingIo, calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
        replies = await execute(io, calls, deadline)
        return [
            reply._replace(payload=b"\x02\x02" + bytes(reply.payload)[2:])
            if call.method == "write"
            else reply
            for call, reply in zip(calls, replies, strict=True)
        ]

    monkeypatch.setattr(BlockingIo, "execute", newer)
    with zlog.Log.create(memory, "orders", width=1) as log:
        assert log.append(b"entry") == 0
        (reserved,) = log.reserve()
        log.write(reserved, b"later")


def test_trim_frees_other_entries_before_error(memory: zlog.Store) -> None:
    assert isinstance(memory, MemoryStore)
    with zlog.Log.create(memory, "orders", width=1) as log:
        log.append(b"of the first stripe")
        first = log.view.object_of(0).name
        log.reconfigure(width=2)
        for number in range(1, 9):
            log.append(b"entry %d" % number)
        objects = {log.view.object_of(position).name for position in (1, 2)}
        make_unreadable(log, 1)
        with pytest.raises(zlog.UnsupportedVersion):
            log.trim_to(7)
        assert log.view.trim_point == 7
        assert memory.peek(first) is None
        left = {name: [*MemoryDoor(memory).load(name).omap] for name in objects}
        assert sorted(len(keys) for keys in left.values()) == [1, 4]


def test_byte_limit_continues_above_unreadable_entry(log: zlog.Log) -> None:
    for keep in (10, 1):
        log.set_retention(zlog.Retention(bytes=keep))
        with pytest.raises(zlog.UnsupportedVersion):
            log.apply_retention()
    assert log.view.trim_point == 5
    assert log.apply_retention() == 5


@pytest.mark.parametrize("attribute", [HEAD, HEADER])
def test_object_of_newer_version_error_has_hint(
    log: zlog.Log, memory: zlog.Store, attribute: bytes
) -> None:
    door = MemoryDoor(memory)
    name = "zlog.orders.head" if attribute == HEAD else log.view.object_of(2).name
    content = door.load(name)
    newer = of_version(attribute, content.attrs[attribute], 9, compat=9)
    door.save(name, content.with_attr(attribute, newer))
    with pytest.raises(zlog.UnsupportedVersion) as raised:
        log.reconfigure(width=2)
    assert "libcls_zlog.so" in raised.value.hint


def test_layout_change_keeps_unknown_view_fields(memory: zlog.Store) -> None:
    door, further = MemoryDoor(memory), b"\x03\x01further"
    with zlog.Log.create(memory, "orders", width=1) as log:
        log.append(b"of the first stripe")
        made = log.view
        head, key = f"zlog.{made.log}.head", b"v.%016x" % made.epoch
        stripe = replace(made.live_stripe, further=further)
        newer = replace(made, stripes=(stripe,), further=further).encode()
        assert newer.count(b"further") == 2
        content = door.load(head)
        door.save(head, content.with_value(key, envelope(key, wire.blob(newer))))
    with zlog.Log.open(memory, "orders") as log:
        log.reconfigure(options={"owner": "ann"})
        log.roll()
        closed, live = log.view.stripes
        assert log.view.options["owner"] == "ann"
        stored = door.load(head).omap[b"v.%016x" % log.view.epoch]
    assert (closed, live.further) == (replace(stripe, end=1), b"")
    assert stored.count(b"further") == 2


def test_undecodable_view_error_does_not_blame_store() -> None:
    with pytest.raises(zlog.CorruptEntry, match="log 'orders': the bytes are not a view"):
        zlog.View.decode("orders", b"junk")
