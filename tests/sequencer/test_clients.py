"""Both TCP clients against a real server, and against one that misbehaves on purpose."""

from __future__ import annotations

import gc
import itertools
import os
import socket
import sys
import threading
import time

import pytest

from zlog._base.deadline import Deadline
from zlog._base.sequencer import Grant
from zlog._io import drive
from zlog._sequencer import BlockingSequencer
from zlog._sequencer.frames import FRAME, Code, Kind
from zlog.admin import sequencer_status
from zlog.errors import (
    LogNotFound,
    NotLeader,
    SequencerTimeout,
    SequencerUnavailable,
    StaleEpoch,
    StoreUnavailable,
)
from zlog.seqr.limits import Limits

from .fakes import (
    ORDERS,
    ScriptedServer,
    ServerThread,
    answer_open,
    greet,
    hold,
    read_frames,
)


@pytest.fixture
def client(call, server):
    return call.connect(server.address)


def test_client_opens_log_implicitly(call, client, store):
    store.tails[ORDERS] = 5
    assert call(client.next, ORDERS, 3, 0) == Grant(1, 5)
    assert call(client.next, ORDERS, 1, 1) == Grant(1, 8)
    assert call(client.tail, ORDERS, 1) == Grant(1, 9)
    assert store.takeovers == 1


def test_open_with_dead_epoch_returns_higher_epoch(call, client, store):
    assert call(client.open, ORDERS, 0).epoch == 1
    store.epochs[ORDERS] = 5
    assert call(client.open, ORDERS, 1).epoch == 6
    assert call(client.open, ORDERS, 1).epoch == 6


def test_open_with_live_epoch_returns_same_epoch(call, client, store):
    assert call(client.open, ORDERS, 0).epoch == 1
    assert call(client.open, ORDERS, 9).epoch == 1
    assert (store.looks, store.takeovers) == (1, 1)


@pytest.mark.parametrize("count", [0, -1, 65537])
def test_invalid_grant_count_is_refused(call, client, count):
    with pytest.raises(ValueError, match="positions"):
        call(client.next, ORDERS, count, 0)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (LogNotFound("x"), LogNotFound),
        (NotLeader("x"), NotLeader),
        (StoreUnavailable("x"), SequencerUnavailable),
        (OSError("x"), SequencerUnavailable),
        (KeyError("a mistake of the program"), SequencerUnavailable),
    ],
)
def test_open_failure_raises_matching_error(call, client, store, error, raised):
    store.errors.append(error)
    with pytest.raises(raised, match="orders") as caught:
        call(client.next, ORDERS, 1, 0)
    assert type(caught.value) is raised
    assert call(client.next, ORDERS, 1, 0) == Grant(1, 0)


def test_sequencer_in_dead_epoch_takes_over_again(call, client, store):
    call(client.next, ORDERS, 5, 0)
    store.epochs[ORDERS], store.tails[ORDERS] = 7, 40
    assert call(client.next, ORDERS, 1, 7) == Grant(8, 40)


def test_log_closed_by_sequencer_is_reopened(call, client, server, store):
    call(client.next, ORDERS, 5, 0)
    store.epochs[ORDERS] = 1
    server.call("step_down", ORDERS[:2])
    store.tails[ORDERS] = 5
    assert call(client.next, ORDERS, 1, 0).epoch == 2


def test_wait_ends_at_timeout(call, client):
    began = time.monotonic()
    assert call(client.wait, ORDERS, 0, 5, 0.05) is None
    assert call(client.wait, ORDERS, 0, 5, 60.0, seconds=0.05) is None
    assert call(client.wait, ORDERS, 0, 5, 0.0) is None
    assert 0.1 <= time.monotonic() - began < 5


def test_wait_continues_after_early_server_timeout(call, store):
    server = ServerThread(store, limits=Limits(wait_ms_max=20))
    client = call.connect(server.address)

    def write_after_some_answers():
        asked = itertools.count(1)
        while sequencer_status(server.address, timeout=10)["requests"] < next(asked) + 6:
            time.sleep(0.01)
        writer = BlockingSequencer(server.address)
        drive(writer.next(ORDERS, 6, 0, Deadline(10)))
        drive(writer.close())

    thread = threading.Thread(target=write_after_some_answers)
    thread.start()
    try:
        assert call(client.wait, ORDERS, 0, 5, 30.0, seconds=30.0) == Grant(1, 6)
    finally:
        thread.join()
        server.stop()


def test_wait_at_outdated_sequencer_raises_stale_epoch(call, client):
    call(client.next, ORDERS, 1, 0)
    with pytest.raises(StaleEpoch) as caught:
        call(client.wait, ORDERS, 5, 0, 5.0)
    assert caught.value.epoch == 1


def test_client_reconnects_after_sequencer_restart(call, client, server, store):
    call(client.next, ORDERS, 3, 0)
    server.stop()
    with pytest.raises(SequencerUnavailable, match="connect"):
        call(client.next, ORDERS, 1, 0)
    store.tails[ORDERS] = 3
    restarted = ServerThread(store, server.port)
    try:
        assert call(client.next, ORDERS, 1, 0) == Grant(2, 3)
    finally:
        restarted.stop()


def test_call_is_retried_after_connection_loss(call):
    def lose(connected):
        greet(connected)
        answer_open(connected)
        read_frames(connected)

    def serve(connected):
        greet(connected)
        answer_open(connected)
        ((kind, _, _, number, count, epoch),) = read_frames(connected)
        assert (kind, count, epoch) == (Kind.NEXT, 2, 1)
        connected.sendall(FRAME.pack(Kind.NEXT, 0, 0, number, 10, 1))

    server = ScriptedServer(lose, serve)
    assert call(call.connect(server.address).next, ORDERS, 2, 1) == Grant(1, 10)
    server.join()


def test_second_connection_loss_raises_error(call):
    def lose(connected):
        greet(connected)

    server = ScriptedServer(lose, lose)
    with pytest.raises(SequencerUnavailable, match="ended"):
        call(call.connect(server.address).next, ORDERS, 1, 1)
    server.join()


def test_short_timeout_does_not_drop_connection(call):
    def slow(connected):
        greet(connected)
        answer_open(connected)
        (first,) = read_frames(connected)
        (second,) = read_frames(connected)
        for frame in (first, second):
            connected.sendall(FRAME.pack(Kind.NEXT, 0, 0, frame[3], frame[3], 1))

    server = ScriptedServer(slow)
    client = call.connect(server.address)
    with pytest.raises(SequencerTimeout):
        call(client.next, ORDERS, 1, 1, seconds=0.05)
    assert call(client.next, ORDERS, 1, 1).epoch == 1
    server.join()


def test_a_server_that_does_not_greet_is_given_up_early(call, monkeypatch):
    monkeypatch.setattr("zlog._sequencer.dialing.CONNECT_SECONDS_MAX", 0.1)
    server = ScriptedServer(hold)
    began = time.monotonic()
    with pytest.raises(SequencerUnavailable, match="connect") as caught:
        call(call.connect(server.address).next, ORDERS, 1, 1)
    assert not isinstance(caught.value, SequencerTimeout)
    assert time.monotonic() - began < 2
    server.join()


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (FRAME.pack(Kind.HELLO, Code.BAD_VERSION, 0, 0, 9, 0), "version 9"),
        (FRAME.pack(Kind.HELLO, Code.LIMIT, 0, 0, 0, 0), "too many connections"),
        (FRAME.pack(Kind.HELLO, Code.UNAVAILABLE, 0, 0, 0, 0), "about to stop"),
        (FRAME.pack(Kind.TAIL, 0, 0, 0, 0, 0), "not a zlog sequencer"),
        (b"", "ended"),
    ],
)
def test_refused_greeting_raises_readable_error(call, answer, match):
    def refuse(connected):
        read_frames(connected)
        connected.sendall(answer)

    server = ScriptedServer(refuse)
    with pytest.raises(SequencerUnavailable, match=match):
        call(call.connect(server.address).status)
    server.join()


@pytest.mark.parametrize(
    ("size", "payload", "match"),
    [
        (2**40, b"", "payload"),
        (2, b"[]" + b"\0" * 22, "STATUS"),
        (2, b"{x" + b"\0" * 22, "STATUS"),
    ],
)
def test_malformed_status_is_refused(call, size, payload, match):
    def babble(connected):
        greet(connected)
        ((_, _, _, number, _, _),) = read_frames(connected)
        connected.sendall(FRAME.pack(Kind.STATUS, Code.OK, 0, number, size, 0) + payload)
        if not payload:
            hold(connected)  # until the client ends the connection

    server = ScriptedServer(babble)
    with pytest.raises(SequencerUnavailable, match=match):
        call(call.connect(server.address).status)
    server.join()


def test_closed_client_refuses_calls(call, client):
    call(client.next, ORDERS, 1, 0)
    call._run(client.close())
    with pytest.raises(SequencerUnavailable, match="closed"):
        call(client.next, ORDERS, 1, 0)
    call._run(client.close())


@pytest.mark.parametrize("cyclic", [False, True])
def test_unclosed_client_releases_its_socket(server, monkeypatch, cyclic):
    """Without a warning, also where the garbage collector meets the socket first: it is older."""
    complaints, older = [], [socket.create_connection(("127.0.0.1", server.port))]
    number = older[0].fileno()
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    with monkeypatch.context() as patch:
        patch.setattr(socket, "create_connection", lambda *_, **__: older.pop())
        client = BlockingSequencer(server.address)
        drive(client.next(ORDERS, 1, 0, Deadline(10)))
    if cyclic:
        client.itself = client
    del client
    gc.collect()
    assert complaints == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
