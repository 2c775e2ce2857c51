"""The machine, its hot path in C++ included, against a sequencer in plain Python."""

from __future__ import annotations

from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from zlog._base.sequencer import Grant
from zlog._sequencer.frames import TAIL_MAX, Code, Kind
from zlog.limits import GRANT_COUNT_MAX
from zlog.seqr.limits import Limits

from .fakes import AUDIT, ORDERS, Desk, open_request, request
from .plain import PlainSequencer

LOGS = (ORDERS, AUDIT)
OPENED = ((ORDERS, AUDIT), (AUDIT, ORDERS), (ORDERS,))
"""By connection; the handles of one mean other logs than those of another."""

OUTSTANDING_MAX = 6
POSITIONS_BURST = 3 * GRANT_COUNT_MAX
POSITIONS_PER_S = 2 * GRANT_COUNT_MAX

_counts = st.one_of(
    st.integers(1, 4),
    st.sampled_from([0, GRANT_COUNT_MAX, GRANT_COUNT_MAX + 1, TAIL_MAX]),
)
_epochs = st.sampled_from([*[2] * 60, 0, 1, 3, 4, 6, 2**63])
"""That clients know of; a higher one than the log's ends its grants."""

_handles = st.sampled_from([*[0] * 9, *[1] * 5, 2, 2**16 - 1])
_ahead = st.integers(-1, 8)
"""Of the tail: where a client waits."""

_next = st.tuples(st.just(Kind.NEXT), _handles, _counts, _epochs)
_quick = st.one_of(
    _next, _next, _next, _next, st.tuples(st.just(Kind.TAIL), _handles, _counts, _epochs)
)
_slow = st.one_of(
    st.tuples(st.just(Kind.WAIT), _handles, _ahead, st.sampled_from([0, 1000, 2**64 - 1])),
    st.tuples(st.just(Kind.OPEN), st.sampled_from(LOGS), st.sampled_from([*[0] * 8, 1, 2, 4])),
    st.tuples(st.just(Kind.CLOSE), _handles, st.just(0)),
)
_bursts = st.lists(st.one_of(_quick, _quick, _slow), min_size=1, max_size=12)
_who = st.integers(0, len(OPENED) - 1)
_send = st.tuples(
    st.just("send"),
    _who,  # whose stream goes on
    _bursts,  # with what
    st.integers(0, 60),  # how many of its bytes are late
    st.booleans(),  # whether the chunk goes the server's shorter way
)
_take_over = st.tuples(
    st.just("take_over"), st.integers(0, 5), st.sampled_from(["lives", "dead", "unavailable"])
)
_steps = st.lists(
    st.one_of(
        *[_send] * 6,
        *[_take_over] * 3,
        st.tuples(st.just("leave"), _who),
        st.tuples(st.just("pass_time"), st.sampled_from([0.4, 0.6, 60.0])),
    ),
    min_size=6,
    max_size=20,
)


class Both:
    """A machine and its model, to which the same is done, and which must give the same answers."""

    def __init__(self, tails: tuple[int, int]) -> None:
        limits = Limits(
            outstanding_per_connection_max=OUTSTANDING_MAX,
            positions_burst=POSITIONS_BURST,
            positions_per_s=POSITIONS_PER_S,
        )
        self.desk = Desk(limits)
        self.model = PlainSequencer(OUTSTANDING_MAX, POSITIONS_BURST, POSITIONS_PER_S)
        self.model.now = self.desk.now
        self.numbers = count(1)
        self.wanted: list = []
        self.late = [b""] * len(OPENED)
        for log, tail in zip(LOGS, tails, strict=True):
            self.model.logs[log].tail = tail
        self.clients = [self.connect() for _ in OPENED]
        for who, logs in enumerate(OPENED):
            for log in logs:
                self.send(who, [(Kind.OPEN, log, 0)], 0, False)
                self.take_over(0, "dead")

    def connect(self):
        self.model.requests += 1  # the HELLO
        return self.desk.connect()

    def send(self, who: int, burst: list, behind: int, direct: bool) -> None:
        data = self.late[who] + b"".join(self.request(who, *asked) for asked in burst)
        cut = max(0, len(data) - behind)
        self.late[who] = data[cut:]
        if direct:
            self.desk.send_directly(self.clients[who], data[:cut])
        else:
            self.desk.send(self.clients[who], data[:cut])
        self.model.receive(self.clients[who], data[:cut])
        self.compare()

    def request(self, who: int, kind: Kind, what, a: int, b: int = 0) -> bytes:
        if kind == Kind.OPEN:
            return open_request(what, next(self.numbers), a)
        if kind == Kind.WAIT:
            a = min(max(0, self.model.tail(self.clients[who], what) + a), 2**64 - 1)
        return request(kind, next(self.numbers), handle=what, a=a, b=b)

    def take_over(self, skipped: int, found: str) -> None:
        """Carry out the take-over that was wanted first, if any is and its epoch is found dead."""
        machine = self.desk.machine
        self.wanted += self.desk.activations()
        if not self.wanted:
            return
        log, claimed, delay = self.wanted.pop(0)
        assert (claimed, delay >= 0) == (self.model.logs[log].epoch, True)
        if found == "lives" and claimed:
            self.model.live(log)
            self.desk.apply(machine.epoch_lives(log))
        elif found != "unavailable":
            self.model.die(log)
            self.desk.apply(machine.epoch_died(log))
            epoch, tail = self.model.take_over(log, skipped)
            self.desk.apply(machine.activated(log, Grant(epoch, tail)))
        else:
            self.model.fail_to_take_over(log, Code.UNAVAILABLE)
            self.desk.apply(machine.activation_failed(log, Code.UNAVAILABLE))
        self.compare()

    def leave(self, who: int) -> None:
        """A connection ends, and a new one takes its place."""
        self.desk.machine.disconnect(self.clients[who])
        self.model.leave(self.clients[who])
        self.late[who] = b""
        self.clients[who] = self.connect()
        self.send(who, [(Kind.OPEN, log, 0) for log in OPENED[who]], 0, True)

    def pass_time(self, seconds: float) -> None:
        self.desk.now += seconds
        self.model.pass_time(seconds)
        self.desk.apply(self.desk.machine.expire(self.desk.now))
        self.compare()
        due = self.desk.machine.next_timeout
        waits = [wait.due for log in self.model.logs.values() for wait in log.waits]
        assert due == min(waits, default=None)

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
@settings(max_examples=400, deadline=None)
def test_machine_agrees_with_model(steps, tails):
    """In the end every request has its answer."""
    both = Both(tails)
    for command, *words in steps:
        getattr(both, command)(*words)
    for who in range(len(OPENED)):
        both.send(who, [], 0, True)
    both.take_over(0, "unavailable")
    both.take_over(0, "unavailable")
    both.pass_time(60.0)
    status = both.desk.machine.status(both.desk.now)
    assert status["outstanding"] == 0
    assert (status["requests"], status["grants"]) == (both.model.requests, both.model.grants)
    assert status["positions"] == sum(log.granted for log in both.model.logs.values())
    for log in status["logs"]:
        model = next(both.model.logs[each] for each in LOGS if each.name == log["log"])
        assert (log["epoch"], log["tail"]) == (model.epoch, model.tail)
