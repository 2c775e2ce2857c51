"""A stripe object that is gone: the rest can be read, nothing is handed out, an audit tells."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import zlog
from zlog import GapKind

from .faulty import WithoutSequencer
from .planted import remove

WIDTH = 4
LOST = 1


@pytest.fixture(params=[True, False], ids=["sequenced", "slow"])
def log(request: pytest.FixtureRequest, memory: zlog.Store) -> zlog.Log:
    store = memory if request.param else WithoutSequencer(memory)
    made = zlog.Log.create(store, "orders", width=WIDTH)
    made.append_many([b"%d" % i for i in range(12)])
    remove(made, made.view.object_of(LOST))
    return zlog.Log.open(store, "orders", timeout=5)


def test_the_other_entries_can_be_read(log: zlog.Log) -> None:
    found = list(log.read_range())
    name = log.view.object_of(LOST).name
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


@pytest.mark.parametrize(
    "use",
    [
        lambda log: log.append_many([b"x"] * WIDTH),
        lambda log: log.fill(LOST),
        lambda log: log.trim(LOST),
    ],
    ids=["append", "fill", "trim"],
)
def test_nothing_is_written_as_if_it_were_all_there(
    log: zlog.Log, use: Callable[[zlog.Log], object]
) -> None:
    """Nor is it "try again": nothing brings the object back."""
    name = log.view.object_of(LOST).name
    told = f"{name}|a stripe object of log 'orders' is missing"  # one of those asked for the tail
    with pytest.raises(zlog.CorruptEntry, match=told) as caught:
        use(log)
    assert not caught.value.retryable
