"""The blocking client under several threads, which share one connection."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from zlog._base.deadline import Deadline
from zlog._io import drive
from zlog._sequencer import BlockingSequencer, Credentials, blocking
from zlog._sequencer.frames import FRAME, Kind
from zlog.errors import SequencerTimeout, SequencerUnavailable

from .fakes import AUDIT, ORDERS, ScriptedServer, answer_open, greet, hold, read_frames


def deadline(seconds: float = 10.0) -> Deadline:
    return Deadline(seconds)


@pytest.fixture
def client(server):
    client = BlockingSequencer(server.address)
    yield client
    drive(client.close())


def connections(client) -> int:
    return drive(client.status(deadline()))["connections"]


def test_threads_share_connection_and_get_distinct_positions(client, store):
    def append(_):
        return [drive(client.next(ORDERS, 2, 0, deadline())).position for _ in range(300)]

    with ThreadPoolExecutor(8) as threads:
        positions = [position for each in threads.map(append, range(8)) for position in each]
    assert sorted(positions) == list(range(0, 4800, 2))
    assert store.takeovers == 1
    assert connections(client) == 1


def test_waiting_threads_do_not_block_grants(client):
    tail = drive(client.tail(ORDERS, 0, deadline())).position
    with ThreadPoolExecutor(4) as threads:
        waits = [
            threads.submit(drive, client.wait(ORDERS, 0, tail + 50 + each, 10.0, deadline()))
            for each in range(4)
        ]
        for _ in range(60):
            drive(client.next(ORDERS, 1, 0, deadline()))
        assert all(wait.result(10).position > tail + 50 for wait in waits)


def test_short_deadlines_do_not_starve_other_threads(client):
    """The reading thread gives up again and again; another thread must read on."""
    drive(client.open(ORDERS, 0, deadline()))
    stop = threading.Event()

    def give_up():
        while not stop.is_set():
            assert drive(client.wait(ORDERS, 0, 10**9, 60.0, deadline(0.003))) is None

    def append():
        for _ in range(200):
            drive(client.next(ORDERS, 1, 0, deadline()))

    with ThreadPoolExecutor(6) as threads:
        impatient = [threads.submit(give_up) for _ in range(3)]
        working = [threads.submit(append) for _ in range(3)]
        for each in working:
            each.result(20)
        stop.set()
        for each in impatient:
            each.result(10)


def test_close_ends_waits_of_other_threads(client):
    with ThreadPoolExecutor(2) as threads:
        waits = [
            threads.submit(drive, client.wait(ORDERS, 0, 10**9, 60.0, deadline(60)))
            for _ in range(2)
        ]
        asked = 3  # HELLO, OPEN, and this STATUS
        while drive(client.status(deadline()))["requests"] < asked + 2:
            asked += 1
        drive(client.close())
        for wait in waits:
            with pytest.raises(SequencerUnavailable):
                wait.result(10)


def test_ctrl_c_ends_wait_but_keeps_connection(client):
    drive(client.open(ORDERS, 0, deadline()))
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        drive(client.wait(ORDERS, 0, 10**9, 60.0, deadline(20)))
    timer.join()
    assert drive(client.next(ORDERS, 1, 0, deadline())).position == 0
    assert connections(client) == 1


def test_sending_to_stalled_sequencer_respects_deadline(monkeypatch):
    """Its end of the connection is full: the request can't even be sent."""

    def small(connected):
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)

    done = threading.Event()

    def full(connected):
        small(connected)
        greet(connected)
        assert done.wait(30)

    monkeypatch.setattr("zlog._sequencer.blocking.keep_alive", small)
    server = ScriptedServer(full)
    client = BlockingSequencer(server.address)
    link = drive(client._dialer.link(deadline()))
    full_frames = 0
    while full_frames < 30 and not link.lost:
        before = time.monotonic()
        with pytest.raises(SequencerTimeout):
            drive(link.call(Kind.STATUS, 0, 0, 0, b"x" * 4096, deadline(0.01)))
        assert time.monotonic() - before < 5
        full_frames += not link._writable.poll(0)
    drive(client.close())
    done.set()
    server.join()


@pytest.mark.filterwarnings("ignore:.*fork")  # of a process with threads
def test_forked_child_opens_its_own_connection(server):
    """Though its parent was just making a session in another thread."""
    client = BlockingSequencer.shared(server.address, Credentials())
    other = BlockingSequencer.shared(server.address, Credentials())
    assert drive(client.next(ORDERS, 1, 0, deadline())).position == 0
    told, tell = os.pipe()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(blocking._SHARED._lock.acquire).result()
        child = os.fork()
        if not child:
            try:
                own = BlockingSequencer.shared(server.address, Credentials())
                os.write(tell, bytes([drive(own.next(ORDERS, 1, 0, deadline())).position]))
            finally:
                os._exit(0)
        threads.submit(blocking._SHARED._lock.release).result()
    os.waitpid(child, 0)
    os.close(tell)
    assert os.read(told, 1) == b"\1"
    os.close(told)
    assert drive(client.next(ORDERS, 1, 0, deadline())).position == 2
    assert connections(other) == 1
    for each in (client, other):
        drive(each.close())


def test_last_session_closes_shared_connection(server, store):
    sessions = [BlockingSequencer.shared(server.address, Credentials()) for _ in range(3)]
    assert [drive(each.next(ORDERS, 1, 0, deadline())).position for each in sessions] == [0, 1, 2]
    assert connections(sessions[0]) == 1
    drive(sessions[0].close())
    with pytest.raises(SequencerUnavailable, match="closed"):
        drive(sessions[0].next(ORDERS, 1, 0, deadline()))
    assert drive(sessions[1].next(ORDERS, 1, 0, deadline())).position == 3
    del sessions[2:]  # forgotten without being closed
    gc.collect()
    drive(sessions[1].close())
    server.wait_until_empty()
    again = BlockingSequencer.shared(server.address, Credentials())
    assert drive(again.next(ORDERS, 1, 0, deadline())).position == 4
    drive(again.close())
    assert store.takeovers == 1


def test_closing_session_releases_its_unshared_logs(server):
    first, second = (BlockingSequencer.shared(server.address, Credentials()) for _ in range(2))
    for log in (ORDERS, AUDIT):
        drive(first.open(log, 0, deadline()))
    drive(second.open(AUDIT, 0, deadline()))
    drive(first.close())
    drive(second.status(deadline()))  # follows the CLOSE
    assert not server.call("used", ORDERS[:2])
    assert server.call("used", AUDIT[:2])
    third = BlockingSequencer.shared(server.address, Credentials())
    other = ORDERS._replace(name="other", log_id=9)
    assert drive(third.next(other, 1, 0, deadline())).position == 0
    assert drive(third.next(ORDERS, 1, 0, deadline())).position == 0
    assert drive(second.next(AUDIT, 1, 0, deadline())).position == 0
    drive(second.close())
    drive(third.close())


def test_slow_open_does_not_affect_other_logs(server, store):
    """Neither their connection, nor time."""
    first, second = (BlockingSequencer.shared(server.address, Credentials()) for _ in range(2))
    drive(second.next(AUDIT, 1, 0, deadline()))
    store.shut(ORDERS)
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(drive, first.next(ORDERS, 1, 0, deadline(1.2)))
        wait = second.wait(AUDIT, 0, 10**9, 60.0, deadline(0.9))
        link = second._dialer._link
        assert drive(wait) is None
        with pytest.raises(SequencerTimeout):
            slow.result(10)
    assert second._dialer._link is link
    assert not link.lost
    store.open(ORDERS)
    assert drive(first.next(ORDERS, 1, 0, deadline())).position == 0
    drive(first.close())
    drive(second.close())


def test_silent_connection_is_detected_before_open(monkeypatch):
    monkeypatch.setattr("zlog._sequencer.session._SILENCE_SECONDS", 0.1)

    def swallow(connected):
        greet(connected)
        hold(connected)

    def serve(connected):
        greet(connected)
        answer_open(connected)
        ((_, _, _, number, _, _),) = read_frames(connected)
        connected.sendall(FRAME.pack(Kind.NEXT, 0, 0, number, 0, 1))

    server = ScriptedServer(swallow, serve)
    client = BlockingSequencer(server.address)
    link = drive(client._dialer.link(deadline()))
    time.sleep(0.2)
    with pytest.raises(SequencerTimeout):
        drive(client.next(ORDERS, 1, 0, deadline(0.2)))
    assert "does not respond" in link.lost
    assert drive(client.next(ORDERS, 1, 0, deadline())).position == 0
    drive(client.close())
    server.join()
