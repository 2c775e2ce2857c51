"""What clients with documented caps can do to others: nothing that lasts, and no forged entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import zlog

from ..client.planted import append_at, write
from ..support.sequencer import SequencerProcess
from .test_caps import APPENDING, CLASS, LOCK, allowed

NEXT = 40
"""Positions that an attacker takes before their writer comes to them."""


@pytest.fixture
def log(user: Callable[..., str]) -> Iterator[zlog.Log]:
    """A log with entries and a sequencer, of a user who may do everything."""
    with zlog.connect(user(CLASS, LOCK, name="owner")) as store, SequencerProcess(store.url):
        log = zlog.Log.create(store, "orders", width=2)
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
