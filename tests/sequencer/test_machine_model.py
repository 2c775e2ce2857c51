"""The machine, its hot path in C++ included, against a sequencer in plain Python."""

from __future__ import annotations

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from zlog._base.sequencer import Grant
from zlog._sequencer.frames import TAIL_MAX, Kind
from zlog.limits import GRANT_COUNT_MAX

from .fakes import AUDIT, ORDERS, Desk, open_request, request
from .plain import PlainSequencer

LOGS = (ORDERS, AUDIT)
OPENED = ((ORDERS, AUDIT), (AUDIT, ORDERS), (ORDERS,))
"""By connection; the handles of one mean other logs than those of another."""

_counts = st.one_of(
    st.integers(1, 9),
    st.sampled_from([0, GRANT_COUNT_MAX, GRANT_COUNT_MAX + 1, TAIL_MAX]),
)
_epochs = st.sampled_from([2, 2, 2, 2, 0, 1, 3, 4, 6, 2**63])
_handles = st.sampled_from([0, 0, 0, 1, 1, 2, 2**16 - 1])
_positions = st.one_of(st.integers(0, 40), st.integers(TAIL_MAX - 40, TAIL_MAX))
_next = st.tuples(st.just(Kind.NEXT), _handles, _counts, _epochs)
_quick = st.one_of(_next, _next, _next, st.tuples(st.just(Kind.TAIL), _handles, _counts, _epochs))
_slow = st.one_of(
    st.tuples(st.just(Kind.WAIT), _handles, _positions, st.sampled_from([0, 1000])),
    st.tuples(st.just(Kind.OPEN), st.sampled_from(LOGS), st.sampled_from([0, 0, 1, 2, 4])),
)
_bursts = st.lists(st.one_of(_quick, _quick, _quick, _slow), max_size=12)
_steps = st.lists(
    st.tuples(
        st.integers(0, 2),  # whose stream goes on
        _bursts,  # with what
        st.integers(0, 60),  # how many of its bytes are late
        st.booleans(),  # whether the chunk goes the server's shorter way
    ),
    max_size=12,
)


def bytes_of(burst, numbers) -> bytes:
    """The requests of a burst."""
    return b"".join(
        open_request(asked[1], next(numbers), asked[2])
        if asked[0] == Kind.OPEN
        else request(asked[0], next(numbers), handle=asked[1], a=asked[2], b=asked[3])
        for asked in burst
    )


class Both:
    """A machine and its model, which get the same chunks and must give the same answers."""

    def __init__(self, tails: tuple[int, int]) -> None:
        self.desk, self.model = Desk(), PlainSequencer()
        self.clients = [self.desk.connect() for _ in OPENED]
        for log, tail in zip(LOGS, tails, strict=True):
            self.model.logs[log].tail = tail
        for client, logs in zip(self.clients, OPENED, strict=True):
            for log in logs:
                self.send(client, open_request(log), direct=False)
        self.model.requests += len(OPENED)  # the HELLOs

    def send(self, client, data: bytes, *, direct: bool, skipped: int = 0) -> None:
        if direct:
            self.desk.send_directly(client, data)
        else:
            self.desk.send(client, data)
        self.model.receive(client, data)
        self.compare()
        for log in self.desk.wanted():
            epoch, tail = self.model.take_over(log, skipped)
            self.desk.apply(self.desk.machine.activated(log, Grant(epoch, tail)))
        self.compare()

    def compare(self) -> None:
        """Answers come in the order of the requests, but for those that were waited for."""
        for client in self.clients:
            answers = [tuple(reply[:6]) for reply in self.desk.take(client)]
            expected = self.model.take(client)
            assert _at_once(answers) == _at_once(expected)
            assert _waited_for(answers) == _waited_for(expected)


def _at_once(answers):
    return [answer for answer in answers if answer[0] != Kind.WAIT]


def _waited_for(answers):
    """All but the tail, which may have moved on when several requests came in one chunk."""
    return sorted((*answer[:4], answer[5]) for answer in answers if answer[0] == Kind.WAIT)


@given(_steps, st.sampled_from([(0, 10), (5, TAIL_MAX - 20)]))
@settings(max_examples=300, deadline=None)
def test_every_mixture_in_every_chunking_is_answered_as_the_model_does(steps, tails):
    both = Both(tails)
    numbers = count(1)
    late = [b""] * len(OPENED)
    for who, burst, behind, direct in steps:
        data = late[who] + bytes_of(burst, numbers)
        cut = max(0, len(data) - behind)
        late[who] = data[cut:]
        both.send(both.clients[who], data[:cut], direct=direct, skipped=behind)
    for who, client in enumerate(both.clients):
        both.send(client, late[who], direct=True)
    status = both.desk.machine.status(both.desk.now)
    assert (status["requests"], status["grants"]) == (both.model.requests, both.model.grants)
    assert status["positions"] == sum(log.granted for log in both.model.logs.values())
    for log in status["logs"]:
        model = next(both.model.logs[each] for each in LOGS if each.name == log["log"])
        assert (log["epoch"], log["tail"]) == (model.epoch, model.tail)


@given(st.lists(_quick, min_size=1, max_size=30), st.integers(1, 800))
@settings(deadline=None)
def test_a_stream_in_small_pieces_is_answered_as_one_in_large_ones(burst, size):
    both = Both((0, 10))
    data = bytes_of(burst, count(1))
    for at in range(0, len(data), size):
        both.send(both.clients[0], data[at : at + size], direct=True)
