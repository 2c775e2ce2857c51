"""The heap of waits, held against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zlog._base.sequencer import LogAddress
from zlog.seqr.machine._grants import Counters
from zlog.seqr.machine.state import Connection, LogState, Wait
from zlog.seqr.machine.waits import WaitHeap

CONNECTION = Connection(Counters())
LOG = LogState(LogAddress("", "", "orders", 1))

steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 20)),
        st.tuples(st.just("pop"), st.integers(0, 20)),
        st.tuples(st.just("answer"), st.integers(0, 20)),
    )
)


@given(steps)
def test_waits_come_out_by_key_unless_answered_elsewhere(script):
    heap, model = WaitHeap(), []
    for step, number in script:
        if step == "push":
            wait = Wait(CONNECTION, 0, 0, LOG, number)
            heap.push(number, wait)
            model.append(wait)
        elif step == "answer" and model:
            wait = model.pop(number % len(model))
            wait.answered = True
            heap.note_answered()
        elif step == "pop":
            due = sorted((w for w in model if w.position <= number), key=lambda w: w.position)
            assert heap.pop_through(number) == due
            model = [wait for wait in model if wait.position > number]
        assert heap.first() == min((wait.position for wait in model), default=None)


def test_a_client_that_gives_up_again_and_again_fills_no_memory():
    heap = WaitHeap()
    for position in range(10_000):
        wait = Wait(CONNECTION, 0, 0, LOG, position)
        heap.push(position, wait)
        wait.answered = True
        heap.note_answered()
        assert len(heap) < 200
