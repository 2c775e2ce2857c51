"""What the machine grants, when it stops, and whom it lets wait: one behaviour at a time."""

from __future__ import annotations

import pytest

from zlog._base.sequencer import Grant
from zlog._sequencer.frames import TAIL_MAX, Code, Kind
from zlog.limits import GRANT_COUNT_MAX
from zlog.seqr.limits import Limits

from .fakes import ORDERS, Desk, open_request, request

# NEXT and TAIL


def test_grants_follow_each_other_without_gap_or_overlap():
    desk = Desk()
    one, other = desk.client(epoch=4, tail=100), desk.client()
    desk.send(one, request(Kind.NEXT, 1, a=1, b=4), request(Kind.NEXT, 2, a=10, b=4))
    desk.send(other, request(Kind.NEXT, 3, a=2, b=4))
    desk.send(one, request(Kind.TAIL, 4, b=4))
    assert [(r.request, r.a, r.b) for r in desk.take(one)] == [
        (1, 100, 4),
        (2, 101, 4),
        (4, 113, 4),
    ]
    assert [(r.request, r.a, r.b) for r in desk.take(other)] == [(3, 111, 4)]


def test_a_client_with_an_older_view_is_granted_in_the_current_epoch():
    desk = Desk()
    client = desk.client(epoch=4)
    desk.send(client, request(Kind.NEXT, a=1, b=2), request(Kind.TAIL, b=2))
    assert [(reply.code, reply.b) for reply in desk.take(client)] == [(Code.OK, 4)] * 2


@pytest.mark.parametrize(
    ("count", "code"),
    [
        (0, Code.BAD_REQUEST),
        (GRANT_COUNT_MAX, Code.OK),
        (GRANT_COUNT_MAX + 1, Code.LIMIT),
        (2**64 - 1, Code.LIMIT),
    ],
)
def test_how_many_positions_one_grant_may_have(count, code):
    desk = Desk()
    client = desk.client()
    desk.send(client, request(Kind.NEXT, a=count, b=1))
    assert desk.take(client)[0].code == code


def test_positions_never_wrap_around():
    desk = Desk()
    client = desk.client(tail=TAIL_MAX - 3)
    desk.send(client, *(request(Kind.NEXT, a=2, b=1) for _ in range(2)))
    desk.send(client, request(Kind.NEXT, a=1, b=1), request(Kind.NEXT, a=1, b=1))
    assert [(reply.code, reply.a) for reply in desk.take(client)] == [
        (Code.OK, TAIL_MAX - 3),
        (Code.LIMIT, 0),
        (Code.OK, TAIL_MAX - 1),
        (Code.LIMIT, 0),
    ]


@pytest.mark.parametrize("kind", [Kind.NEXT, Kind.TAIL, Kind.WAIT])
def test_a_handle_that_was_never_given_out_is_not_open(kind):
    desk = Desk()
    client = desk.client()
    desk.send(client, request(kind, 6, handle=1, a=1, b=0))
    (reply,) = desk.take(client)
    assert (reply.kind, reply.code, reply.handle, reply.request) == (kind, Code.NOT_OPEN, 1, 6)


def test_handles_belong_to_their_connection():
    desk = Desk()
    desk.client()
    other = desk.connect()
    desk.send(other, request(Kind.NEXT, a=1, b=1))
    assert desk.take(other)[0].code == Code.NOT_OPEN


# Deposition


@pytest.mark.parametrize("kind", [Kind.NEXT, Kind.TAIL])
def test_a_higher_epoch_ends_the_grants(kind):
    desk = Desk()
    one, other = desk.client(epoch=4), desk.client()
    desk.send(one, request(kind, 1, a=1, b=5), request(Kind.NEXT, 2, a=1, b=4))
    assert [(reply.code, reply.a) for reply in desk.take(one)] == [
        (Code.STALE_EPOCH, 4),
        (Code.NOT_OPEN, 0),
    ]
    desk.send(other, request(Kind.NEXT, a=1, b=4))
    assert desk.take(other)[0].code == Code.NOT_OPEN
    assert not desk.wanted(), "only an OPEN starts a take-over"


def test_after_deposition_an_open_takes_the_log_over_anew():
    desk = Desk()
    client = desk.client(epoch=4, tail=7)
    desk.send(client, request(Kind.NEXT, a=1, b=5), open_request(dead_epoch=5))
    desk.take(client)
    desk.activate(epoch=6, tail=20)
    (reply,) = desk.take(client)
    assert (reply.code, reply.handle, reply.a, reply.b) == (Code.OK, 0, 6, 20)
    desk.send(client, request(Kind.NEXT, a=1, b=6))
    assert desk.take(client)[0].a == 20


def test_an_open_that_knows_the_epoch_as_dead_deposes():
    desk = Desk()
    one, other = desk.client(epoch=4), desk.client()
    desk.send(other, open_request(dead_epoch=4))
    desk.send(one, request(Kind.NEXT, a=1, b=4))
    assert desk.take(one)[0].code == Code.NOT_OPEN
    desk.activate(epoch=5)
    assert desk.take(other)[0].a == 5


def test_an_open_that_knows_an_older_epoch_as_dead_changes_nothing():
    desk = Desk()
    client = desk.client(epoch=4)
    desk.send(client, open_request(dead_epoch=3))
    assert desk.take(client)[0].a == 4
    assert not desk.wanted()


def test_who_knows_even_the_new_epoch_as_dead_must_ask_again():
    desk = Desk()
    one, other = desk.connect(), desk.connect()
    desk.send(one, open_request())
    desk.send(other, open_request(dead_epoch=9))
    desk.activate(epoch=9)
    assert desk.take(one)[0].code == Code.OK
    assert desk.take(other)[0].code == Code.UNAVAILABLE


def test_an_epoch_that_is_not_above_all_earlier_ones_is_never_granted_in():
    desk = Desk()
    client = desk.client(epoch=4, tail=10)
    desk.send(client, request(Kind.NEXT, a=1, b=5), open_request(dead_epoch=5))
    desk.take(client)
    with pytest.raises(ValueError, match="epoch 4"):
        desk.machine.activated(ORDERS, Grant(4, 10))
    desk.apply(desk.machine.activation_failed(ORDERS, Code.UNAVAILABLE))
    assert desk.take(client)[0].code == Code.UNAVAILABLE


# WAIT


def test_wait_is_answered_at_once_when_the_tail_has_passed():
    desk = Desk()
    client = desk.client(epoch=2, tail=10)
    desk.send(client, request(Kind.WAIT, 5, a=9, b=1000))
    (reply,) = desk.take(client)
    assert (reply.kind, reply.code, reply.a, reply.b) == (Kind.WAIT, Code.OK, 10, 2)


def test_waits_are_answered_as_the_tail_passes_them_and_no_sooner():
    desk = Desk()
    reader, writer = desk.client(tail=10), desk.client()
    for position in (12, 10, 11, 10):
        desk.send(reader, request(Kind.WAIT, position, a=position, b=1000))
    desk.send(writer, request(Kind.NEXT, a=1, b=1))
    assert [(reply.request, reply.a) for reply in desk.take(reader)] == [(10, 11), (10, 11)]
    desk.send(writer, request(Kind.NEXT, a=5, b=1))
    assert [(reply.request, reply.a) for reply in desk.take(reader)] == [(11, 16), (12, 16)]
    assert desk.machine.next_timeout is None


def test_a_client_can_wait_and_append_in_one_chunk():
    desk = Desk()
    client = desk.client()
    desk.send(client, request(Kind.WAIT, 1, a=0, b=1000), request(Kind.NEXT, 2, a=1, b=1))
    assert [reply.request for reply in desk.take(client)] == [2, 1]


def test_a_wait_ends_when_its_time_has_passed():
    desk = Desk()
    client = desk.client(epoch=2, tail=10)
    desk.send(client, request(Kind.WAIT, 1, a=10, b=1500), request(Kind.WAIT, 2, a=10, b=500))
    assert desk.machine.next_timeout == desk.now + 0.5
    desk.apply(desk.machine.expire(desk.now + 0.4))
    assert desk.take(client) == []
    desk.apply(desk.machine.expire(desk.now + 0.5))
    (reply,) = desk.take(client)
    assert (reply.request, reply.code, reply.a, reply.b) == (2, Code.TIMEOUT, 10, 2)
    assert desk.machine.next_timeout == desk.now + 1.5


def test_no_wait_is_longer_than_the_limit():
    desk = Desk(Limits(wait_ms_max=2000))
    client = desk.client()
    desk.send(client, request(Kind.WAIT, a=5, b=2**64 - 1))
    assert desk.machine.next_timeout == desk.now + 2


def test_a_wait_for_no_time_asks_without_waiting():
    desk = Desk()
    client = desk.client()
    desk.send(client, request(Kind.WAIT, a=5, b=0))
    assert desk.take(client)[0].code == Code.TIMEOUT


def test_deposition_ends_the_waits():
    desk = Desk()
    reader, writer = desk.client(epoch=4), desk.client()
    desk.send(reader, request(Kind.WAIT, a=5, b=1000))
    desk.send(writer, request(Kind.NEXT, a=1, b=5))
    (reply,) = desk.take(reader)
    assert (reply.kind, reply.code, reply.a) == (Kind.WAIT, Code.STALE_EPOCH, 4)
    assert desk.machine.next_timeout is None


def test_who_left_is_not_waited_for():
    desk = Desk()
    reader, writer = desk.client(), desk.client()
    desk.send(reader, request(Kind.WAIT, a=0, b=1000))
    desk.machine.disconnect(reader)
    assert desk.machine.next_timeout is None
    desk.send(writer, request(Kind.NEXT, a=1, b=1))
    assert desk.take(reader) == []
