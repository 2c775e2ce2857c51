"""A stripe object that is gone: the rest can be read, nothing is handed out, an audit tells."""

from __future__ import annotations

import pytest

import zlog
from zlog import FindingKind, GapKind
from zlog._native import messages

from .faulty import WithoutSequencer

WIDTH = 4
LOST = 1


@pytest.fixture(params=[True, False], ids=["sequenced", "slow"])
def log(request: pytest.FixtureRequest, memory: zlog.Store) -> zlog.Log:
    store = memory if request.param else WithoutSequencer(memory, lambda *_: None)
    made = zlog.Log.create(store, "orders", width=WIDTH)
    made.append_many([b"%d" % i for i in range(12)])
    ref = list(made.view.objects())[LOST]
    assert memory.execute(ref.name, "remove", messages.remove(made.view.epoch))[0] == 0
    return zlog.Log.open(store, "orders", timeout=5)


def test_the_other_entries_can_be_read(log: zlog.Log) -> None:
    found = list(log.read_range())
    name = list(log.view.objects())[LOST].name
    missing = zlog.Loss(zlog.LossReason.MISSING, (name,))
    assert len(found) == 12
    for position, item in enumerate(found):
        if position % WIDTH == LOST:
            assert item == zlog.Gap(position, position + 1, GapKind.LOST, missing)
        else:
            assert isinstance(item, zlog.Entry)
            assert item.data == b"%d" % position
    with pytest.raises(zlog.CorruptEntry, match=f"position {LOST} .*missing: {name}") as raised:
        log.read(LOST)
    assert raised.value.gap == found[LOST]
    assert log.stat().entries == 9


def test_an_audit_says_which_object(log: zlog.Log) -> None:
    findings = [finding for finding in log.check() if finding.serious]
    assert [finding.kind for finding in findings] == [FindingKind.MISSING_OBJECT]
    assert findings[0].object == list(log.view.objects())[LOST].name


def test_nothing_is_written_as_if_it_were_all_there(log: zlog.Log) -> None:
    with pytest.raises(zlog.CorruptEntry, match="missing"):
        log.append_many([b"x"] * WIDTH)
