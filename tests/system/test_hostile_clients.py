"""What clients with documented caps can do to others: nothing that lasts, and no forged entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import zlog
from zlog._base.codes import EPOCHS_AHEAD_MAX, POSITION_MAX, Code
from zlog._native import messages

from ..client.planted import append_at, write
from ..support.logs import fill_at, raise_tail, write_at
from ..support.sequencer import SequencerProcess
from .test_caps import APPENDING, CLASS, LOCK, READING, allowed

NEXT = 40
"""Positions that an attacker takes before their writer comes to them."""


@pytest.fixture
def log(user: Callable[..., str]) -> Iterator[zlog.Log]:
    """A log with entries and a sequencer, of a user who may do everything."""
    with zlog.connect(user(CLASS, LOCK, name="owner")) as store, SequencerProcess(store.url):
        log = zlog.Log.create(store, "orders", width=2, unit=2)
        log.append_many([b"first", b"second", b"third"])
        yield log


def test_an_append_is_never_acknowledged_with_the_data_of_another_writer(
    user: Callable[..., str], log: zlog.Log
) -> None:
    """A reader is told a writer's id and numbers; under the next ones a writer may write."""
    with zlog.connect(user(*allowed(APPENDING), name="attacker")) as store:
        attacker = zlog.Log.open(store, "orders")
        writer, number = append_at(attacker, 2)
        assert writer.hex() == log.writer_id
        for ahead in range(1, NEXT):
            write(attacker, 2 + ahead, writer, number + ahead, b"forged")
    batch = [b"entry %d" % n for n in range(NEXT // 2)]
    positions = [log.append(b"fourth"), *log.append_many(batch)]
    assert [log.read(position).data for position in positions] == [b"fourth", *batch]


CHANGING = f"{APPENDING} epoch_next seal view_propose"
WRITER = b"hostile" + bytes(9)


def fill(log: zlog.Log, position: int) -> int:
    return fill_at(log, [position])


def seal(log: zlog.Log, ahead: int) -> int:
    epoch = min(log.view.epoch + ahead, POSITION_MAX)
    ref = list(log.view.objects(log.view.live_stripe))[1]
    width, unit = ref.spacing
    request = messages.seal(epoch, width, ref.number, False, None, unit)
    return log.store.execute(ref.name, "seal", request)[0]


def furthest(log: zlog.Log, call: Callable[[zlog.Log, int], int], least: int) -> int:
    """The highest number that a call is not refused with for being too high."""
    most = POSITION_MAX
    while least < most:
        middle = (least + most + 1) // 2
        if call(log, middle | 1) in (Code.BEYOND_STRIPE, Code.INVALID_EPOCH):
            most = middle - 1
        else:
            least = middle
    return least


@pytest.mark.parametrize(
    ("methods", "attack", "reach"),
    [
        (READING, raise_tail, 2**30),
        (READING, fill, 2**30),
        (APPENDING, write_at, 2**30),
        (CHANGING, seal, EPOCHS_AHEAD_MAX * 64),
    ],
    ids=["tail_raise", "fill", "write", "seal"],
)
def test_no_call_ends_a_log(
    user: Callable[..., str],
    log: zlog.Log,
    methods: str,
    attack: Callable[[zlog.Log, int], int],
    reach: int,
) -> None:
    """Neither the worst of a method, nor the worst that is let through."""
    with zlog.connect(user(*allowed(methods), name="attacker")) as store:
        attacker = zlog.Log.open(store, "orders")
        assert attack(attacker, POSITION_MAX) in (Code.BEYOND_STRIPE, Code.INVALID_EPOCH)
        assert furthest(attacker, attack, 1) < reach
    start = log.append(b"fourth")
    assert [log.read(start).data, log.read(2).data] == [b"fourth", b"third"]
    log.roll()
    log.reconfigure(width=3)
    positions = log.append_many([b"fifth", b"sixth"])
    assert [log.read(position).data for position in positions] == [b"fifth", b"sixth"]
    assert log.tail() == positions[-1] + 1
    assert [entry.data for entry in log.read_range(0, 3)] == [b"first", b"second", b"third"]


@pytest.mark.usefixtures("log")
def test_a_writer_gets_past_a_reader_that_fills_ahead_of_it(user: Callable[..., str]) -> None:
    with zlog.connect(user(*allowed(READING), name="attacker")) as store:
        attacker = zlog.Log.open(store, "orders")
        for ref in attacker.view.objects():
            assert fill_at(attacker, ref.places(3, POSITION_MAX)[:65536]) == Code.OK
    with zlog.connect(user(*allowed(CHANGING), name="writer")) as store:
        victim = zlog.Log.open(store, "orders", timeout=10)
        position = victim.append(b"fourth")
        assert victim.read(position).data == b"fourth"
