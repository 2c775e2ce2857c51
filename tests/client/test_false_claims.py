"""What a client that reaches the sequencer, and nothing else, can say of a log's epoch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._io import drive
from zlog._sequencer import BlockingSequencer

from ..support.local_sequencer import LocalSequencer

SECONDS = 10


@pytest.fixture
def untrusted(sequenced: zlog.Log) -> Iterator[BlockingSequencer]:
    """A client of the sequencer that serves `sequenced`, where that is one with an address."""
    sequenced.append(b"first")
    address = sequenced.view.sequencer
    if not address.startswith("tcp://"):
        pytest.skip("this store's own sequencer is reached by those only who have the store")
    client = BlockingSequencer(address)
    yield client
    drive(client.close())


def address_of(log: zlog.Log) -> LogAddress:
    return log._client.layout.address


def assert_lies_do_no_harm(log: zlog.Log, liar: BlockingSequencer) -> None:
    before = zlog.Log.open(log.store, "orders").view
    for epoch in (before.epoch, before.epoch + 1, 2**63, 2**64 - 1):
        grant = drive(liar.open(address_of(log), epoch, Deadline(SECONDS)))
        assert grant.epoch == before.epoch
        log.append(b"all the same")
    with pytest.raises(zlog.SequencerUnavailable, match="keeps closing"):
        drive(liar.next(address_of(log), 1, 2**63, Deadline(SECONDS)))
    log.append(b"all the same")
    assert zlog.Log.open(log.store, "orders").view == before


def test_a_false_word_that_an_epoch_is_dead_ends_no_epoch(
    plain: zlog.Store, sequencer: LocalSequencer
) -> None:
    log = zlog.Log.create(plain, "orders", width=2)
    log.append(b"first")
    liar = BlockingSequencer(sequencer.address)
    assert_lies_do_no_harm(log, liar)
    drive(liar.close())


def test_a_false_word_that_an_epoch_is_dead_ends_no_epoch_on_ceph(
    sequenced: zlog.Log, untrusted: BlockingSequencer
) -> None:
    assert_lies_do_no_harm(sequenced, untrusted)
