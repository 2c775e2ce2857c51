"""What a client that reaches the sequencer, and nothing else, can say of a log's epoch."""

from __future__ import annotations

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._io import drive
from zlog._sequencer import BlockingSequencer

from ..support.local_sequencer import LocalSequencer

SECONDS = 10


def test_a_false_claim_that_an_epoch_has_ended_ends_no_epoch(
    plain: zlog.Store, sequencer: LocalSequencer
) -> None:
    log = zlog.Log.create(plain, "orders", width=2)
    log.append(b"first")
    liar = BlockingSequencer(sequencer.address)
    before = zlog.Log.open(plain, "orders").view
    for epoch in (before.epoch, before.epoch + 1, 2**63, 2**64 - 1):
        grant = drive(liar.open(log._client.layout.address, epoch, Deadline(SECONDS)))
        assert grant.epoch == before.epoch
        log.append(b"all the same")
    with pytest.raises(zlog.SequencerUnavailable, match="closes the log after each OPEN"):
        drive(liar.next(log._client.layout.address, 1, 2**63, Deadline(SECONDS)))
    log.append(b"all the same")
    assert zlog.Log.open(plain, "orders").view == before
    drive(liar.close())
