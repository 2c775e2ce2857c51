"""What a newer version of zlog stored: told as such, never as lost, and left as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import zlog

from ..conformance.stored import HEAD, HEADER, MemoryDoor, of_version


@pytest.fixture
def log(memory: zlog.Store) -> Iterator[zlog.Log]:
    """Five entries, of which that at position 2 is of a newer version."""
    with zlog.Log.create(memory, "orders", width=1) as log:
        for number in range(5):
            log.append(b"entry %d" % number)
        door, name = MemoryDoor(memory), log.view.object_of(2).name
        content, key = door.load(name), b"e.0000000000000002.1"
        newer = of_version(key, content.omap[key], 2, compat=2)
        door.save(name, content.with_value(key, newer))
        yield log


def test_readers_get_a_gap_and_go_on(log: zlog.Log) -> None:
    items = list(log.read_range(0, None))
    gap = zlog.Gap(2, 3, zlog.GapKind.UNREADABLE)
    assert [item for item in items if isinstance(item, zlog.Gap)] == [gap]
    assert [item.position for item in items] == [0, 1, 2, 3, 4]
    assert next(iter(log.read_columns(0, None))).gaps == [gap]
    with pytest.raises(zlog.UnsupportedVersion, match="newer version") as raised:
        log.read(2)
    assert raised.value.gap == gap
    assert "Upgrade" in raised.value.hint


def test_nothing_changes_it(log: zlog.Log) -> None:
    for change in (log.trim, log.fill):
        with pytest.raises(zlog.UnsupportedVersion):
            change(2)
    log.trim(1)
    assert log.append(b"goes on") == 5
    kinds = [item.kind for item in log.read_range(1, 3) if isinstance(item, zlog.Gap)]
    assert kinds == [zlog.GapKind.TRIMMED, zlog.GapKind.UNREADABLE]


def test_an_audit_tells_it_from_damage(log: zlog.Log) -> None:
    audit = log.check()
    (finding,) = audit
    assert finding.kind is zlog.FindingKind.UNREADABLE
    assert finding.positions == range(2, 3)
    assert (audit.summary.unreadable, audit.summary.lost, audit.summary.entries) == (1, 0, 4)


@pytest.mark.parametrize("attribute", [HEAD, HEADER])
def test_an_object_of_a_newer_version_is_refused_with_what_to_do(
    log: zlog.Log, memory: zlog.Store, attribute: bytes
) -> None:
    door = MemoryDoor(memory)
    name = "zlog.orders.head" if attribute == HEAD else log.view.object_of(2).name
    content = door.load(name)
    newer = of_version(attribute, content.attrs[attribute], 2, compat=2)
    door.save(name, content.with_attr(attribute, newer))
    with pytest.raises(zlog.UnsupportedVersion) as raised:
        log.reconfigure(width=2)
    assert "libcls_zlog.so" in raised.value.hint
