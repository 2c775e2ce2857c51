"""An audit finds every planted fault, on every host, and says what it is."""

from __future__ import annotations

import threading
import time

import pytest

import zlog
from zlog import Finding, FindingKind
from zlog._base.names import directory_shard, head_object
from zlog._io import drive
from zlog._native import messages
from zlog.view import STRIPES_MAX, ObjectRef

from ..conformance import wire
from ..conformance.stored import door_to
from ..support.logs import leave_hole, new_epoch, raise_tail, write_at
from ..support.threads import at_once
from . import planted

UNITS = (1, 4)
WIDTH = 4
ENTRIES = 40


@pytest.fixture
def filled(sequenced: zlog.Log) -> zlog.Log:
    """A log with a batch of entries, and a batch so large that it goes to the bytestream."""
    sequenced.append_many([b"entry %02d" % i for i in range(ENTRIES)])
    sequenced.append_many([b"%d" % i * 10_000 for i in range(4 * WIDTH)])
    return sequenced


def findings(log: zlog.Log) -> list[Finding]:
    """What an audit finds; it looks at all of the log."""
    audit = log.check()
    found = list(audit)
    assert audit.summary.positions == log.tail() - log.view.trim_point
    return found


def only(
    log: zlog.Log, kind: FindingKind, object_name: str | None = None, *, serious: bool = True
) -> Finding:
    """The one thing that an audit finds."""
    (finding,) = findings(log)
    assert (finding.kind, finding.serious) == (kind, serious)
    if object_name is not None:
        assert finding.object == object_name
    return finding


def refs(log: zlog.Log) -> list[ObjectRef]:
    """The objects of a log with one stripe."""
    return list(log.view.objects())


def test_check_passes_sound_log(filled: zlog.Log) -> None:
    filled.trim_to(6)
    filled.trim(9)
    filled.append(b"")
    told: list[tuple[int, int]] = []
    audit = filled.check(progress=lambda done, total: told.append((done, total)))
    assert list(audit) == []
    positions = ENTRIES + 4 * WIDTH + 1 - 6
    assert told[-1] == (positions, positions)
    size = sum(len(i.data) for i in filled.read_range(6) if isinstance(i, zlog.Entry))
    assert audit.summary == (positions, positions - 1, size, 0, 1, 0, 0, 0, WIDTH, True, 0, 0, 0)


@pytest.mark.parametrize(
    ("position", "data"), [(5, b"entry 05"), (ENTRIES + 3, b"3" * 10_000)], ids=["record", "stream"]
)
def test_a_flipped_byte(filled: zlog.Log, store: zlog.Store, position: int, data: bytes) -> None:
    name = filled.view.object_of(position).name
    planted.flip(store, name, data, data[:-1] + b"x")
    assert only(filled, FindingKind.LOST, name).positions == range(position, position + 1)


def test_damaged_index_is_one_finding(
    filled: zlog.Log, store: zlog.Store, stripe_unit: int
) -> None:
    """All entries of its record are lost: a finding for each fourth position, or stripe unit."""
    gone = refs(filled)[2].positions(0, ENTRIES)
    writer, number = planted.append_at(filled, gone[0])
    origin = writer + number.to_bytes(8, "little")
    planted.flip(store, refs(filled)[2].name, origin, bytes(8) + origin[8:])
    found = findings(filled)
    assert {finding.kind for finding in found} == {FindingKind.LOST}
    assert [p for finding in found for p in finding.positions] == [*gone]
    if stripe_unit == 1:
        assert [finding.positions for finding in found] == [range(2, ENTRIES - 1, WIDTH)]
        assert (found[0].end, found[0].step) == (ENTRIES - 1, WIDTH)
    else:
        assert [finding.positions for finding in found] == [range(8, 12), range(24, 28)]


def test_holes_of_object_are_one_finding(memory: zlog.Store) -> None:
    """As a batch leaves them that one object had no space for; others are told as they lie."""
    with zlog.Log.create(memory, "holes", width=4, stripe_unit=1) as log:
        reserved = log.reserve(40)
        for position in reserved:
            if position % 4 != 1 and position not in (23, 39):
                log.write(position, b"entry")
        log.append(b"last")
        found = [finding.positions for finding in log.check() if finding.kind is FindingKind.HOLE]
    assert found == [range(1, 38, 4), range(23, 24), range(39, 40)]


def test_audit_waits_for_writers_of_holes(
    sequenced: zlog.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    hole = leave_hole(sequenced)

    async def sleep(_: float) -> None:
        write_at(sequenced, hole)

    monkeypatch.setattr(sequenced._client.io, "sleep", sleep)
    assert list(sequenced.check()) == []


def test_check_finds_missing_object(filled: zlog.Log) -> None:
    planted.remove(filled, refs(filled)[1])
    finding = only(filled, FindingKind.MISSING_OBJECT, refs(filled)[1].name)
    assert finding[2:4] == (None, None)


def test_check_finds_duplicate_append(filled: zlog.Log) -> None:
    hole = leave_hole(filled, 2)
    for position in (17, 18):
        planted.write(filled, hole + position - 17, *planted.append_at(filled, position))
    finding = only(filled, FindingKind.DUPLICATE)
    assert finding.positions == range(hole, hole + 2)
    assert finding.detail == "the same appends are stored at positions 17 to 18"


def test_check_finds_wrong_object(filled: zlog.Log) -> None:
    ref = refs(filled)[1]
    planted.remake(filled, ref._replace(number=2), epoch=filled.view.epoch)
    only(filled, FindingKind.WRONG_OBJECT, ref.name)


def test_check_finds_unsealed_object(log: zlog.Log) -> None:
    newer = new_epoch(log).epoch
    planted.remake(log, refs(log)[3], epoch=newer - 1)
    assert str(newer) in only(log, FindingKind.EPOCH_BEHIND).detail


def test_check_finds_unfinished_layout_change(filled: zlog.Log, store: zlog.Store) -> None:
    """It is reported, and finished by the client that needs the tail: here the audit itself."""
    ref = refs(filled)[2]
    epoch, _ = drive(filled._client.layout.head.epoch_next(filled._client.deadline()))
    planted.call(store, ref.name, "seal", planted.seal(ref, epoch))
    only(filled, FindingKind.EPOCH_AHEAD, ref.name, serious=False)
    assert filled.append(b"on") == ENTRIES + 4 * WIDTH


def test_check_finds_tail_below_written_positions(filled: zlog.Log) -> None:
    planted.write(filled, filled.tail() + 2, b"w" * 16, 1)
    only(filled, FindingKind.TAIL_BEHIND, head_object(filled.name))


def test_check_finds_object_trimmed_ahead(filled: zlog.Log, store: zlog.Store) -> None:
    filled.trim_to(4)
    request = messages.trim_to(filled.view.epoch, 9, 1024)
    planted.call(store, refs(filled)[0].name, "trim_to", request)
    only(filled, FindingKind.TRIM_AHEAD, refs(filled)[0].name)


def test_interrupted_trim_is_not_serious(filled: zlog.Log) -> None:
    client = filled._client
    head, log_id = client.layout.head, filled.view.log_id
    raise_tail(filled, 6)
    assert drive(head.trim_point_raise(log_id, 6, client.deadline())) is None
    found = findings(filled)
    assert {finding.kind for finding in found} == {FindingKind.TRIM_BEHIND}
    assert [finding.object for finding in found] == [ref.name for ref in refs(filled)]
    assert not any(finding.serious for finding in found)
    filled.trim_to(6)
    assert findings(filled) == []


def test_check_finds_unlisted_log(filled: zlog.Log, store: zlog.Store) -> None:
    request = messages.directory_add(filled.name, filled.view.log_id)
    planted.call(store, directory_shard("logs", filled.name), "directory_remove", request)
    for name in ("order", "orders-", "orders2"):
        zlog.Log.create(store, name).close()
    only(filled, FindingKind.UNLISTED)


def test_check_finds_orphaned_objects(filled: zlog.Log, store: zlog.Store) -> None:
    """Of this log, and of an earlier one that had its name; not those of other logs."""
    names = [planted.make_orphan(filled, 3), planted.make_orphan(filled, 1, filled.view.log_id ^ 1)]
    others = [f"orders.{filled.view.log_id:016x}", "orders.eu", "orders2"]
    for other in others:
        zlog.Log.create(store, other).close()
    found = findings(filled)
    assert {finding.kind for finding in found} == {FindingKind.ORPHAN}
    assert sorted(finding.object for finding in found) == sorted(names)
    assert not any(finding.serious for finding in found)
    audit = filled.check(orphans=False)
    assert list(audit) == []
    assert not audit.summary.listed
    for other in others:
        with zlog.Log.open(store, other) as log:
            assert findings(log) == []


def test_leftover_objects_of_an_abandoned_stripe(filled: zlog.Log, store: zlog.Store) -> None:
    """A client announced a stripe, made some of it and died; others have gone on since."""
    client = filled._client
    head = client.layout.head
    epoch, _ = drive(head.epoch_next(client.deadline(), width=2))
    name = planted.make_orphan(filled, epoch)
    assert findings(filled) == []  # its view may still come
    filled.reconfigure(width=2)
    if planted.exists(store, name):  # not so if the change has cleaned up on the way
        only(filled, FindingKind.LEFTOVER, name, serious=False)
    filled.trim_to(1)
    assert findings(filled) == []


def test_check_covers_closed_stripes(filled: zlog.Log, store: zlog.Store) -> None:
    """They are looked at as the live one; what is written behind their end is told."""
    tail = filled.tail()
    filled.reconfigure(width=2)
    filled.append_many([b"wide"] * 7)
    old, live = filled.view.stripes[-2:]
    assert (old.end, live.start, live.width) == (tail, tail, 2)
    planted.flip(store, filled.view.object_of(4).name, b"entry 04", b"antry 04")
    assert only(filled, FindingKind.LOST).positions == range(4, 5)
    filled.trim_to(8)
    assert findings(filled) == []
    ref = filled.view.object_at(old, old.striping.number(tail))
    request = planted.entry(filled, ref, tail, b"w" * 16, 1, b"too late")
    planted.call(store, ref.name, "write", request)
    assert only(filled, FindingKind.BEYOND_END, ref.name).position is None


def test_check_finds_missing_archived_stripe(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=1)
    for number in range(STRIPES_MAX + 4):
        log.append(b"%d" % number)
        log.reconfigure(width=1 + (number + 1) % 2)
    assert log.view.stripes[0].start > 2
    assert list(log.check()) == []
    with door_to(memory) as door:
        head = door.load(head_object("orders"))
        door.save(head_object("orders"), head.without(b"t.0000000000000001"))
    log = zlog.Log.open(memory, "orders", hole_timeout=0.05)  # one that has not looked it up
    audit = log.check()
    missing, *orphans = audit
    assert missing.kind is FindingKind.MISSING_STRIPE
    assert missing.serious
    assert missing.positions == range(1, 2)
    assert [orphan.kind for orphan in orphans] == [FindingKind.ORPHAN] * 2
    assert audit.summary.entries == STRIPES_MAX + 3


def test_check_finds_damaged_header(log: zlog.Log, store: zlog.Store) -> None:
    """Found in the file by the bytes that a header of this epoch and geometry has."""
    log.append_many([b"%d" % i for i in range(32)])
    fields = wire.u64(log.view.epoch) + wire.u32(WIDTH) + wire.u32(2)
    planted.flip(store, refs(log)[2].name, fields, fields[:-1] + b"\xff")
    audit = log.check()
    (finding,) = audit
    assert finding.kind is FindingKind.DAMAGED_OBJECT
    assert finding.serious
    assert finding.object == refs(log)[2].name
    assert (audit.summary.entries, audit.summary.lost) == (24, 8)


@pytest.mark.usefixtures("sequenced")
def test_an_audit_of_a_log_in_use_reports_no_fault(store: zlog.Store) -> None:
    ended = threading.Event()

    def use(log: zlog.Log, number: int) -> None:
        log.append_many([b"x" * 50] * 37)
        if number == 1:
            leave_hole(log)
            log.trim_to(log.tail() * 2 // 3)
        elif number == 2:
            new_epoch(log)
            log.reconfigure(width=2 + log.view.live_stripe.width % 4)

    def work(number: int) -> None:
        with zlog.Log.open(store, "orders", hole_timeout=0.05) as log:
            while number and not ended.wait(0.05 * number):
                use(log, number)
        if number == 0:
            until = time.monotonic() + 1.0
            try:
                while time.monotonic() < until:
                    assert {finding.kind for finding in auditor.check()} <= {FindingKind.HOLE}
            finally:
                ended.set()

    auditor = zlog.Log.open(store, "orders")  # with the default hole_timeout
    at_once(work, 4)
    list(auditor.read_range())  # fills what is left
    assert list(auditor.check()) == []
