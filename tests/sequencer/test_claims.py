"""What the machine makes of clients that say that an epoch is over."""

from __future__ import annotations

from zlog._sequencer.frames import Code

from .fakes import ORDERS, Desk, open_request


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
