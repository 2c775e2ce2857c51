"""The machine: no sockets, and a clock that stands still. See also `test_machine_model`."""

from __future__ import annotations

import json

import pytest

from zlog._base.sequencer import Grant
from zlog._sequencer.frames import Code, Kind
from zlog.seqr.limits import Limits
from zlog.seqr.machine.admission import Reason

from .fakes import AUDIT, HELLO, ORDERS, Desk, open_request, request

# HELLO


def test_unsupported_version_is_answered_and_disconnected():
    desk = Desk()
    untrusted = desk.connect(greet=False)
    desk.send(untrusted, request(Kind.HELLO, a=2), open_request())
    (reply,) = desk.take(untrusted)
    assert (reply.kind, reply.code, reply.a) == (Kind.HELLO, Code.BAD_VERSION, 1)
    assert desk.closed() == [untrusted]
    assert not desk.wanted()


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", open_request()])
def test_a_client_without_a_greeting_gets_no_answer(greeting):
    desk = Desk()
    untrusted = desk.connect(greet=False)
    desk.send(untrusted, greeting, HELLO, open_request())
    assert desk.take(untrusted) == []
    assert desk.closed() == [untrusted]
    assert not desk.wanted()


# OPEN and CLOSE


def test_recreated_log_is_distinct():
    desk = Desk()
    desk.client(ORDERS, epoch=5)
    client = desk.connect()
    again = ORDERS._replace(log_id=99)
    desk.send(client, open_request(again))
    desk.activate(again, epoch=1)
    assert desk.take(client)[0].a == 1


# NEXT and WAIT; test_machine_model has the rest


def test_activation_requires_higher_epoch():
    desk = Desk()
    client = desk.client(epoch=4, tail=10)
    desk.send(client, open_request(dead_epoch=5))
    desk.apply(desk.machine.epoch_died(ORDERS))
    with pytest.raises(ValueError, match="epoch 4"):
        desk.machine.activated(ORDERS, Grant(4, 10))
    desk.apply(desk.machine.activation_failed(ORDERS, Code.UNAVAILABLE))
    assert desk.take(client)[0].code == Code.UNAVAILABLE


# Limits


def test_one_connection_serves_thousands_of_handles():
    """Each of which had one of its own once, with a thousand waits and thousands of logs."""
    desk = Desk()
    client = desk.client()
    waits = [request(Kind.WAIT, number, a=5, b=1000) for number in range(5000)]
    logs = [ORDERS._replace(name=f"log-{number}") for number in range(5000)]
    desk.send(client, *waits, *map(open_request, logs))
    for log in logs:
        desk.apply(desk.machine.activated(log, Grant(1, 0)))
    told = desk.take(client)
    assert (len(told), {each.code for each in told}) == (5000, {Code.OK})
    assert desk.machine.status(desk.now)["outstanding"] == 5000


def test_unused_log_frees_space_for_another():
    desk = Desk(Limits(logs_max=1))
    client = desk.client()
    desk.send(client, request(Kind.NEXT, a=3, b=1))
    other = desk.connect()
    desk.send(other, open_request(AUDIT))
    assert desk.take(other)[0].code == Code.LIMIT
    desk.machine.disconnect(client)
    desk.send(other, open_request(AUDIT))
    desk.activate(AUDIT)
    assert desk.take(other)[0].code == Code.OK
    assert desk.machine.status(desk.now)["positions"] == 3


def test_closing_connection_counts_until_it_ends():
    """Its last answers may not be read for long."""
    desk = Desk(Limits(connections_max=1))
    client = desk.connect()
    desk.send(client, request(77))
    assert desk.closed() == [client]
    for code in (Code.LIMIT, Code.OK):
        other = desk.connect(greet=False)
        desk.send(other, HELLO)
        assert desk.take(other)[0].code == code
        desk.machine.disconnect(client)


# STATUS


def test_status_reports_counters():
    desk = Desk()
    client = desk.client(AUDIT, epoch=3, tail=50)
    desk.send(client, request(Kind.NEXT, a=2, b=3), request(Kind.NEXT, a=1, b=3))
    desk.now += 2
    desk.send(client, request(Kind.STATUS, 8))
    *_, reply = desk.take(client)
    assert (reply.request, reply.code) == (8, Code.OK)
    assert json.loads(reply.payload) == {
        "version": "1.0",
        "address": "tcp://here:1",
        "uptime_s": 2.0,
        "connections": 1,
        "outstanding": 0,
        "closed": dict.fromkeys(Reason, 0),
        "requests": 5,  # HELLO, OPEN, NEXT, NEXT, STATUS
        "grants": 2,
        "grants_per_second": 1.0,
        "positions": 3,
        "take_overs": 1,
        "take_over_failures": 0,
        "logs": [
            {
                "log": "audit",
                "pool": "pool",
                "namespace": "space",
                "epoch": 3,
                "tail": 53,
                "granted": 3,
            }
        ],
    }


def test_grant_rate_covers_last_seconds():
    desk = Desk()
    client = desk.client()
    desk.now += 3600
    for _ in range(20):
        desk.send(client, *(request(Kind.NEXT, a=1, b=1) for _ in range(50)))
        desk.now += 0.25
    assert desk.machine.status(desk.now)["grants_per_second"] == 200.0
    assert desk.machine.status(desk.now + 60)["grants_per_second"] < 20


def test_one_chunk_gets_one_status_reply():
    desk = Desk()
    client = desk.connect()
    desk.send(client, *(request(Kind.STATUS) for _ in range(100)))
    replies = desk.take(client)
    assert [reply.code for reply in replies] == [Code.OK] + [Code.LIMIT] * 99


# Leading, and no longer


def test_adoption_requires_space_and_running_machine():
    desk = Desk(Limits(logs_max=1))
    desk.client(AUDIT)
    desk.apply(desk.machine.adopt(ORDERS))
    desk.apply(desk.machine.stop())
    desk.apply(desk.machine.adopt(ORDERS))
    assert not desk.wanted()
    assert desk.machine.connect()[0] is None


def test_doubt_ends_waits_but_not_grants():
    desk = Desk()
    client = desk.client(epoch=3)
    desk.send(client, request(Kind.WAIT, 5, a=10, b=1000))
    desk.apply(desk.machine.doubt())
    (told,) = desk.take(client)
    assert (told.kind, told.code, told.request) == (Kind.WAIT, Code.NOT_LEADER, 5)
    assert desk.machine.next_timeout is None
    desk.send(client, request(Kind.NEXT, 6, a=1, b=3))
    assert desk.take(client)[0].code == Code.OK
