"""What holds whatever clients do: random histories, and streams of garbage."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from zlog._base.sequencer import Grant
from zlog._sequencer.frames import Code, Kind
from zlog.limits import GRANT_COUNT_MAX
from zlog.seqr.limits import Limits

from .fakes import AUDIT, HELLO, ORDERS, Desk, open_request, request

LOGS = (ORDERS, AUDIT)
LIMITS = Limits(connections_max=4, outstanding_per_connection_max=8)


class Clients(RuleBasedStateMachine):
    """Clients that open, append, wait, leave and depose, over a store that always agrees.

    The model: per log the store's epoch and its tail, as take-overs hand them out; and which
    waits must be open.
    """

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(LIMITS)
        self.connections: list = []
        self.handles: dict = {}
        self.epochs = dict.fromkeys(LOGS, 0)
        self.used = dict.fromkeys(LOGS, 0)
        self.granted: dict = defaultdict(list)
        self.number = 0
        self.asked: dict = {}

    def send(self, connection, data: bytes) -> None:
        self.desk.send(connection, data)
        self.collect()

    def collect(self) -> None:
        for connection in self.connections:
            for reply in self.desk.take(connection):
                asker, kind, log, wanted = self.asked.pop(reply.request)
                assert (connection, reply.kind) == (asker, kind)
                if reply.code not in (Code.OK, Code.TIMEOUT):
                    continue
                if kind == Kind.OPEN:
                    assert reply.a > wanted
                    self.handles[connection, log] = reply.handle
                elif kind == Kind.NEXT:
                    assert reply.b >= wanted[1]
                    self.granted[log, reply.b].append((reply.a, wanted[0]))
                    self.used[log] = max(self.used[log], reply.a + wanted[0])
                elif kind == Kind.WAIT:
                    assert (reply.a > wanted) == (reply.code == Code.OK)

    def ask(self, connection, kind, log, wanted) -> int:
        self.number += 1
        self.asked[self.number] = (connection, kind, log, wanted)
        return self.number

    @precondition(lambda self: len(self.connections) < LIMITS.connections_max)
    @rule()
    def connect(self):
        self.connections.append(self.desk.connect())

    @precondition(lambda self: self.connections)
    @rule(data=st.data())
    def leave(self, data):
        connection = data.draw(st.sampled_from(self.connections))
        self.connections.remove(connection)
        self.desk.machine.disconnect(connection)
        self.asked = {
            number: asked for number, asked in self.asked.items() if asked[0] is not connection
        }

    @precondition(lambda self: self.connections)
    @rule(data=st.data(), log=st.sampled_from(LOGS), knows_it_dead=st.booleans())
    def open(self, data, log, knows_it_dead):
        connection = data.draw(st.sampled_from(self.connections))
        dead = self.epochs[log] if knows_it_dead else 0
        self.send(connection, open_request(log, self.ask(connection, Kind.OPEN, log, dead), dead))

    @precondition(lambda self: self.desk.effects)
    @rule(data=st.data(), works=st.booleans(), skipped=st.integers(0, 5))
    def take_over(self, data, works, skipped):
        effect = data.draw(st.sampled_from(self.desk.effects))
        self.desk.effects.remove(effect)
        log = effect.log
        if works:
            self.epochs[log] += 1
            self.used[log] += skipped
            grant = Grant(self.epochs[log], self.used[log])
            self.desk.apply(self.desk.machine.activated(log, grant))
        else:
            self.desk.apply(self.desk.machine.activation_failed(log, Code.UNAVAILABLE))
        self.collect()

    @precondition(lambda self: self.connections)
    @rule(
        data=st.data(),
        log=st.sampled_from(LOGS),
        counts=st.lists(st.one_of(st.integers(1, 9), st.just(GRANT_COUNT_MAX)), max_size=5),
        ahead=st.sampled_from([-1, 0, 0, 0, 1]),
    )
    def next(self, data, log, counts, ahead):
        connection = data.draw(st.sampled_from(self.connections))
        handle = self.handles.get((connection, log), 99)
        epoch = max(0, self.epochs[log] + ahead)
        if ahead > 0:  # another client changed the layout
            self.epochs[log] = epoch
        self.send(
            connection,
            b"".join(
                request(
                    Kind.NEXT,
                    self.ask(connection, Kind.NEXT, log, (count, epoch)),
                    handle=handle,
                    a=count,
                    b=epoch,
                )
                for count in counts
            ),
        )

    @precondition(lambda self: self.connections)
    @rule(data=st.data(), log=st.sampled_from(LOGS), beyond=st.integers(-3, 20))
    def wait(self, data, log, beyond):
        connection = data.draw(st.sampled_from(self.connections))
        position = max(0, self.used[log] + beyond)
        number = self.ask(connection, Kind.WAIT, log, position)
        handle = self.handles.get((connection, log), 99)
        self.send(connection, request(Kind.WAIT, number, handle=handle, a=position, b=1000))

    @rule(seconds=st.floats(0.0, 2.0))
    def time_passes(self, seconds):
        self.desk.now += seconds
        self.desk.apply(self.desk.machine.expire(self.desk.now))
        self.collect()

    @invariant()
    def grants_of_an_epoch_are_contiguous_and_disjoint(self):
        for grants in self.granted.values():
            ordered = sorted(grants)
            for (first, count), (following, _) in pairwise(ordered):
                assert following == first + count

    @invariant()
    def grants_of_an_epoch_lie_above_those_of_the_one_before(self):
        for log in LOGS:
            end = 0
            for epoch in sorted(epoch for other, epoch in self.granted if other == log):
                grants = self.granted[log, epoch]
                assert min(first for first, _ in grants) >= end
                end = max(first + count for first, count in grants)

    @invariant()
    def nobody_waits_for_what_has_passed(self):
        for log in LOGS:
            state = self.desk.machine._logs.get(log)
            for connection in self.connections:
                for wait in connection.waits:
                    if wait.log is state:
                        assert state.epoch
                        assert wait.position >= state.tail >= 0
                        assert state.wake_at <= wait.position

    @invariant()
    def no_time_out_is_missed(self):
        due = self.desk.machine.next_timeout
        assert due is None or due > self.desk.now

    def teardown(self):
        """Every request is answered, once, as soon as nothing is left to wait for."""
        for effect in self.desk.effects:
            failed = self.desk.machine.activation_failed(effect.log, Code.UNAVAILABLE)
            self.desk.apply(failed)
        self.desk.apply(self.desk.machine.expire(self.desk.now + 100))
        self.collect()
        assert not self.asked


TestClients = Clients.TestCase
TestClients.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

u64 = st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1))
requests = st.builds(
    lambda kind, number, handle, a, b: request(kind, number, handle=handle, a=a, b=b),
    st.one_of(st.sampled_from(list(Kind)), st.integers(0, 255)),
    st.integers(0, 2**32 - 1),
    st.one_of(st.integers(0, 2), st.integers(0, 2**16 - 1)),
    u64,
    u64,
)
opens = st.builds(open_request, st.sampled_from(LOGS), st.integers(0, 9), st.integers(0, 3))
streams = st.lists(
    st.one_of(requests, opens, st.binary(max_size=60), st.just(HELLO)), max_size=12
).map(b"".join)


@given(streams, st.lists(st.integers(0, 600), max_size=8), st.booleans())
@settings(deadline=None)
def test_no_bytes_however_cut_break_the_machine(stream, places, greeted):
    """Garbage is answered or ends its connection, and others go on being served."""
    desk = Desk(LIMITS)
    witness = desk.client(epoch=1)
    vandal = desk.connect(greet=greeted)
    at = sorted({place % (len(stream) + 1) for place in places} | {0, len(stream)})
    for begin, end in pairwise(at):
        desk.send(vandal, stream[begin:end])
    desk.now += 100
    desk.apply(desk.machine.expire(desk.now))
    desk.machine.disconnect(vandal)
    for log in desk.wanted():
        desk.apply(desk.machine.activated(log, Grant(2, 10)))
    desk.send(witness, open_request(number=5))
    if desk.wanted():
        desk.apply(desk.machine.activated(ORDERS, Grant(3, 20)))
    desk.send(witness, request(Kind.NEXT, 6, a=1, b=1))
    assert [reply.code for reply in desk.take(witness)][-2:] == [Code.OK, Code.OK]
    assert desk.machine.next_timeout is None


@given(streams, st.lists(st.integers(0, 600), max_size=8))
@settings(deadline=None)
def test_how_a_stream_is_cut_makes_no_difference(stream, places):
    """Except for STATUS, of which a chunk gets only one: left out here."""
    answers = []
    at = sorted({place % (len(stream) + 1) for place in places} | {0, len(stream)})
    for cuts in ([0, len(stream)], at):
        desk = Desk()
        client = desk.client(epoch=2, tail=5)
        for begin, end in pairwise(cuts):
            desk.send(client, stream[begin:end])
        replies = desk.take(client)
        answers.append(
            (sorted(reply for reply in replies if reply.kind != Kind.STATUS), len(replies))
        )
    assert answers[0] == answers[1]
