"""The limits of connections: their number, their idle time, and untrusted clients."""

from __future__ import annotations

import logging
import socket

from zlog._sequencer.frames import Code, Kind
from zlog.limits import GRANT_COUNT_MAX
from zlog.seqr.limits import Limits
from zlog.seqr.security import Security

from .fakes import (
    HELLO,
    ORDERS,
    Desk,
    read_frames,
    request,
)

SECRET = "3f1c-the-right-one-9b"


def test_connections_before_greeting_are_bounded(serve):
    server = serve(Security(), Limits(greeting_max=1))
    with socket.create_connection(server.where) as first:
        with socket.create_connection(server.where) as second:
            assert read_frames(second)[0][:2] == (Kind.HELLO, Code.LIMIT)
        first.sendall(HELLO)
        assert read_frames(first)[0][1] == Code.OK
        with socket.create_connection(server.where) as third:
            with socket.create_connection(server.where) as fourth:
                assert read_frames(fourth)[0][:2] == (Kind.HELLO, Code.LIMIT)
            third.sendall(HELLO)
            assert read_frames(third)[0][1] == Code.OK


def test_idle_connection_is_closed_and_reopened(call, serve):
    server = serve(Security(), Limits(idle_s_max=0.1))
    client = call.connect(server.address)
    assert call(client.next, ORDERS, 1, 0).position == 0
    with socket.create_connection(server.where) as idle:
        idle.settimeout(10)
        idle.sendall(HELLO)
        assert len(read_frames(idle)) == 1
        assert idle.recv(1) == b""
    assert call(client.next, ORDERS, 1, 0).position == 1
    assert call(client.status)["closed"]["idle"] >= 1


def test_largest_client_bursts_are_granted():
    """Thousands of appends at once, and batches of the largest size one after the other."""
    desk = Desk()
    client = desk.client()
    for _ in range(30):
        desk.send(client, *(request(Kind.NEXT, a=1, b=1) for _ in range(4096)))
        desk.send(client, request(Kind.NEXT, a=GRANT_COUNT_MAX, b=1))
        desk.now += 1 / 64
    assert {reply.code for reply in desk.take(client)} == {Code.OK}


def test_repeated_token_failures_are_logged_once(serve, caplog, token):
    server = serve(Security(token_file=token(SECRET)))
    with caplog.at_level(logging.DEBUG):
        for _ in range(30):
            with socket.create_connection(server.where) as untrusted:
                untrusted.sendall(HELLO + request(Kind.PROVE, 1, a=5, b=6))
                assert [frame[1] for frame in read_frames(untrusted, 2)] == [
                    Code.TOKEN_WANTED,
                    Code.TOKEN_WRONG,
                ]
    lines = [record.getMessage() for record in caplog.records if "closed" in record.getMessage()]
    assert lines == ["closed a connection reason=token peer=127.0.0.1: wrong token"]
