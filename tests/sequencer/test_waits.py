"""The heap of waits; the machine's model tests what comes out of it."""

from __future__ import annotations

from zlog._base.sequencer import LogAddress
from zlog.seqr.machine._grants import Counters
from zlog.seqr.machine.state import Connection, LogState, Wait, WaitHeap


def test_abandoned_waits_do_not_accumulate():
    heap = WaitHeap()
    connection, log = Connection(Counters()), LogState(LogAddress("", "", "orders", 1))
    for position in range(10_000):
        wait = Wait(connection, 0, 0, log, position)
        heap.push(position, wait)
        wait.answered = True
        heap.note_answered()
        assert len(heap) < 200
