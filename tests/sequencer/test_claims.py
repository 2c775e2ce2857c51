"""What the machine makes of clients that say that an epoch is over."""

from __future__ import annotations

from zlog._base.sequencer import Grant
from zlog._sequencer.frames import Code, Kind

from .fakes import ORDERS, Desk, open_request, request


def test_epoch_claimed_dead_continues_until_verified():
    desk = Desk()
    client, liar = desk.client(epoch=3), desk.client()
    desk.send(client, request(Kind.WAIT, 1, a=50, b=9000))
    desk.send(liar, open_request(dead_epoch=2**63))
    assert desk.activations() == [(ORDERS, 3, 0.0)]
    desk.send(client, request(Kind.NEXT, 2, a=1, b=3))
    assert desk.take(client)[0].code == Code.OK
    assert desk.take(liar) == []
    desk.apply(desk.machine.epoch_lives(ORDERS))
    assert [(told.code, told.a) for told in desk.take(liar)] == [(Code.OK, 3)]
    desk.send(client, request(Kind.NEXT, 3, a=1, b=3), open_request(dead_epoch=3))
    assert desk.take(client)[0].code == Code.OK
    desk.apply(desk.machine.epoch_died(ORDERS))
    assert [(told.kind, told.code) for told in desk.take(client)] == [(Kind.WAIT, Code.STALE_EPOCH)]
    desk.send(client, request(Kind.NEXT, 4, a=1, b=3))
    assert desk.take(client)[0].code == Code.NOT_OPEN
    desk.apply(desk.machine.activated(ORDERS, Grant(4, 7)))
    assert [(told.kind, told.code, told.a) for told in desk.take(client)] == [
        (Kind.OPEN, Code.OK, 4)
    ]


def test_dead_epoch_claims_are_rate_limited():
    desk = Desk()
    liar = desk.client(epoch=3)
    delays = []
    for _ in range(5):
        desk.send(liar, open_request(dead_epoch=3), open_request(dead_epoch=3))
        ((_, _, delay),) = desk.activations()
        delays.append(round(delay, 3))
        desk.now += delay + 0.01
        desk.apply(desk.machine.epoch_lives(ORDERS))
    assert delays == [0.0, 0.09, 0.09, 0.09, 0.09]


def test_epoch_released_during_check_is_not_revived():
    desk = Desk()
    client = desk.client(epoch=3)
    desk.send(client, open_request(dead_epoch=3))
    desk.apply(desk.machine.step_down(ORDERS[:2]))
    desk.apply(desk.machine.epoch_lives(ORDERS))
    assert desk.take(client)[0].code == Code.UNAVAILABLE
