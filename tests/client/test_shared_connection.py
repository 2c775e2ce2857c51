"""Handles share their process's connection, and a sequencer without space for it stays in place."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
import time
from collections.abc import Iterator

import pytest

import zlog
from zlog import aio
from zlog._base.deadline import Deadline
from zlog._base.sequencer import parse_address
from zlog._io import drive
from zlog._sequencer.frames import FRAME, Code, Kind
from zlog._sequencer.session import Session
from zlog.admin import sequencer_status
from zlog.seqr.limits import Limits

from ..support.local_sequencer import LocalSequencer
from .faulty import WithoutSequencer
from .planted import leave_sealed

HELLO = FRAME.pack(Kind.HELLO, 0, 0, 0, 1, 0)


@pytest.fixture
def single(plain: zlog.Store) -> Iterator[LocalSequencer]:
    """A sequencer that has one place for clients."""
    running = LocalSequencer(plain, limits=Limits(connections_max=1))
    yield running
    running.stop()


@pytest.fixture
def narrow(plain: zlog.Store) -> Iterator[LocalSequencer]:
    """A sequencer that has two places for the clients of one host."""
    running = LocalSequencer(plain, limits=Limits(connections_per_address_max=2))
    yield running
    running.stop()


def test_handles_of_process_share_one_connection(
    plain: zlog.Store, memory: zlog.Store, narrow: LocalSequencer
) -> None:
    handles = [
        zlog.Log.create(store, f"orders-{number}", sequencer_timeout=0.5)
        for number, store in enumerate([plain, plain, WithoutSequencer(memory), plain])
    ]
    for log in handles:
        assert log.append(b"first") == 0
    assert sequencer_status(narrow.address)["connections"] == 2  # with the one that asks
    for log in handles[1:]:
        log.close()
    assert handles[0].append(b"second") == 1
    assert {log.view.sequencer for log in handles} == {narrow.address}


async def test_handles_of_event_loop_share_one_connection(
    plain: zlog.Store, narrow: LocalSequencer
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        handles = [
            await stack.enter_async_context(
                aio.Log.open(plain, f"orders-{n}", create=True, sequencer_timeout=0.5)
            )
            for n in range(4)
        ]
        for _ in range(2):
            await asyncio.gather(*(log.append(b"x") for log in handles))
        status = await asyncio.to_thread(sequencer_status, narrow.address)
        assert status["connections"] == 2
        await handles[0].close()
        assert await handles[1].append(b"x") == 2
        assert {log.view.sequencer for log in handles} == {narrow.address}


def opened(sequencer: LocalSequencer) -> set[str]:
    """The logs that a connection has open at the sequencer."""
    logs = sequencer._server._machine._logs.values()
    return {log.address.name for log in logs if log.handles}


def test_unreferenced_handle_is_closed_at_sequencer(
    plain: zlog.Store, sequencer: LocalSequencer
) -> None:
    kept = zlog.Log.create(plain, "kept")
    kept.append(b"x")
    for number in range(5):
        zlog.Log.create(plain, f"forgotten-{number}").append(b"x")
        gc.collect()
    zlog.Log.create(plain, "last").append(b"x")
    assert opened(sequencer) == {"kept", "last"}
    assert kept.append(b"x") == 1


def test_unreferenced_handle_is_closed_during_open(
    plain: zlog.Store, sequencer: LocalSequencer
) -> None:
    log = zlog.Log.create(plain, "orders")
    log.append(b"x")
    session = log._client.io.sequencer(sequencer.address)
    assert isinstance(session, Session)
    guard = session._lanes[log._client.layout.address].guard
    assert drive(guard.acquire(Deadline(0)))
    log.close()
    guard.release()
    others = zlog.Log.create(plain, "others")  # kept: the last handle ends the connection
    others.append(b"x")
    assert opened(sequencer) == {"others"}
    assert zlog.Log.open(plain, "orders").append(b"x") == 1


@contextlib.contextmanager
def crowd(address: str) -> Iterator[None]:
    """Take the only place that a sequencer has for clients."""
    host, port, _ = parse_address(address)
    while True:
        with socket.create_connection((host, port)) as taken:
            taken.sendall(HELLO)
            if FRAME.unpack(taken.recv(FRAME.size))[1] == Code.OK:
                yield
                return


def served(store: zlog.Store, sequencer: LocalSequencer) -> zlog.Log:
    """A handle on a log whose view names the sequencer, without a connection to it."""
    with zlog.Log.create(store, "orders", width=2) as log:
        log.append(b"first")
        assert log.view.sequencer == sequencer.address
    return zlog.Log.open(store, "orders", sequencer_timeout=0.3)


def test_busy_sequencer_keeps_its_logs(
    plain: zlog.Store, single: LocalSequencer, caplog: pytest.LogCaptureFixture
) -> None:
    log = served(plain, single)
    before = zlog.Log.open(plain, "orders").view
    with crowd(single.address):
        with pytest.raises(zlog.SequencerBusy, match="too many connections") as told:
            log.append(b"in vain", timeout=1.0)
        assert told.value.retryable
        assert "--connections-per-address" in told.value.hint
        assert "'orders' waits until its sequencer has space" in caplog.text
        assert log.read(0).data == b"first"
        assert log.tail() == 1
        done: list[int] = []
        patient = threading.Thread(target=lambda: done.append(log.append(b"second")))
        patient.start()
        time.sleep(0.5)  # longer than a sequencer may be out of reach
        assert not done
    patient.join(10)
    assert done == [1]
    assert zlog.Log.open(plain, "orders").view == before


def test_sealed_log_waits_for_busy_sequencer(plain: zlog.Store, single: LocalSequencer) -> None:
    """The sequencer is to finish what a client left that died, and is not sent away for others."""
    log = served(plain, single)
    epoch = leave_sealed(plain, log.view.objects())
    with crowd(single.address), pytest.raises(zlog.StaleEpoch, match="no newer view"):
        log.read(0, timeout=1.5)
    assert log.read(0).data == b"first"
    assert log.view.sequencer == single.address
    assert log.view.epoch > epoch


def test_log_without_sequencer_skips_busy_sequencer(
    plain: zlog.Store,
    single: LocalSequencer,
) -> None:
    with crowd(single.address):
        log = zlog.Log.create(plain, "orders", sequencer_timeout=0.3)
        assert log.append(b"first", timeout=5) == 0
        assert log.view.sequencer == ""
