"""The offer of a sequencer that is gone: a writer that meets it takes it back, and no other."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

import zlog
import zlog.aio
from zlog._base.io import Io, deadline_of
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive

from ..support.local_sequencer import LocalSequencer
from .faulty import FaultyStore


@pytest.fixture(autouse=True)
def at_every_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at each append whether a sequencer is on offer, and without a pause after a failure."""
    monkeypatch.setattr("zlog._positions.announcements._POLL_SECONDS", 0.0)
    monkeypatch.setattr("zlog._positions.announcements._PAUSE_POLLS", 0.0)


@pytest.fixture
def gone() -> str:
    """An address where no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"tcp://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """An address where connections get no answer, as behind a network that is down."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"


def announce(store: zlog.Store, address: str) -> None:
    io = BlockingIo(store)
    drive(Directory(io).announce(address, deadline_of(io, 10)))


def offered(store: zlog.Store) -> str:
    io = BlockingIo(store)
    return drive(Directory(io).sequencer(deadline_of(io, 10)))


def test_announcement_of_dead_process_is_withdrawn(plain: zlog.Store, gone: str) -> None:
    log = zlog.Log.create(plain, "orders")
    announce(plain, gone)
    assert log.append(b"first") == 0
    assert offered(plain) == ""
    assert log.view.sequencer == ""


def test_writers_drop_dead_sequencer(plain: zlog.Store, sequencer: LocalSequencer) -> None:
    log = zlog.Log.create(plain, "orders", sequencer_timeout=0.2)
    log.append(b"first")
    assert log.view.sequencer == offered(plain) == sequencer.address
    sequencer.vanish()
    log.append(b"without it")
    assert log.view.sequencer == ""
    began = time.monotonic()
    while offered(plain):
        assert time.monotonic() - began < 10
        log.append(b"which looks once in a while")


def test_distant_attempts_of_one_append_accumulate(
    plain: zlog.Store, sequencer: LocalSequencer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(io: Io, _: int) -> None:
        await io.sleep(0.1)

    monkeypatch.setattr("zlog._positions.positions.backoff", slowly)
    log = zlog.Log.create(plain, "orders", sequencer_timeout=0.05)
    log.append(b"first")
    sequencer.vanish()
    log.append(b"without it", timeout=3)
    assert log.view.sequencer == ""


def test_unreachable_announcement_is_withdrawn_after_delay(
    plain: zlog.Store, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may reach it meanwhile."""
    monkeypatch.setattr("zlog._sequencer.dialing.CONNECT_SECONDS_MAX", 0.05)
    monkeypatch.setattr("zlog._positions.announcements._GONE_SECONDS", 0.4)
    log = zlog.Log.create(plain, "orders")
    announce(plain, silent)
    began = time.monotonic()
    log.append(b"first")
    assert offered(plain) == silent
    while offered(plain):
        assert time.monotonic() - began < 10
        log.append(b"more")
    assert time.monotonic() - began >= 0.4


def test_new_announcement_restarts_delay(
    plain: zlog.Store, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog._sequencer.dialing.CONNECT_SECONDS_MAX", 0.05)
    monkeypatch.setattr("zlog._positions.announcements._GONE_SECONDS", 0.5)
    log = zlog.Log.create(plain, "orders")
    announce(plain, silent)
    log.append(b"first")
    io = BlockingIo(plain)
    drive(Directory(io).withdraw(silent, deadline_of(io, 10)))
    log.append(b"there is none")
    time.sleep(0.5)
    announce(plain, silent)
    log.append(b"it is back")
    assert offered(plain) == silent


def test_announcement_of_responsive_sequencer_is_kept(
    plain: zlog.Store, sequencer: LocalSequencer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not lead may lead soon, and announce itself if it does."""
    monkeypatch.setattr("zlog._positions.announcements._GONE_SECONDS", 0.0)

    async def refuse(*_: object) -> object:
        raise zlog.NotLeader("another sequencer leads")

    monkeypatch.setattr(sequencer._election, "candidate", refuse)
    log = zlog.Log.create(plain, "orders")
    assert log.append(b"first") == 0
    assert (offered(plain), log.view.sequencer) == (sequencer.address, "")


@pytest.mark.parametrize("fate", ["lose", "fail"])
def test_writer_without_withdraw_right_appends(plain: zlog.Store, gone: str, fate: str) -> None:
    zlog.Log.create(plain, "orders")
    store = FaultyStore(plain, lambda _, method: fate if method == "sequencer_withdraw" else None)
    log = zlog.Log.open(store, "orders")
    announce(plain, gone)
    assert log.append(b"first") == 0
