"""Fixtures of the client's tests: a log on every host, with and without a sequencer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog

from ..support.local_sequencer import LocalSequencer
from ..support.sequencer import SequencerProcess
from ..support.stores import PLAIN, url_of
from .faulty import FaultyStore, WithoutSequencer

HOSTS = ("mem", "embedded", "ceph-bluestore", pytest.param(PLAIN, marks=pytest.mark.long))
"""The class does the same on memstore as on BlueStore: the conformance suite runs on both."""


@pytest.fixture(params=HOSTS)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, on the hosts that clients are tried on, in turn."""
    return url_of(request, tmp_path)


@pytest.fixture(autouse=True)
def no_patience_with_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lost in all copies is said to be at once."""
    monkeypatch.setattr("zlog._read.read._REPLICAS_PAUSE_SECONDS_MAX", 0.0)


@pytest.fixture
def stripe_unit() -> int | None:
    """What a log's stripe unit is unless it is said; None leaves zlog's own default.

    It is small, so that a few entries lie in all objects of a log. A module that is about the
    layout tries others too, those of its ``UNITS``.
    """
    return 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try the tests of a module with each of its stripe units."""
    if units := getattr(metafunc.module, "UNITS", None):
        metafunc.parametrize("stripe_unit", units, ids="unit{}".format)


@pytest.fixture(autouse=True)
def logs_of_that_unit(stripe_unit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are made with it, on every store."""
    if stripe_unit is not None:
        monkeypatch.setattr("zlog._lifecycle.default_stripe_unit", lambda _: stripe_unit)


@pytest.fixture
def log(store: zlog.Store) -> Iterator[zlog.Log]:
    """A log of width 4 as its creation leaves it: on Ceph without a sequencer."""
    with zlog.Log.create(store, "orders", width=4, hole_timeout=0.05) as opened:
        yield opened


@pytest.fixture
def sequenced(store: zlog.Store, host: str) -> Iterator[zlog.Log]:
    """A log whose positions a sequencer hands out: on Ceph a process, elsewhere the store's own."""
    if host == "ceph":
        sequencer = SequencerProcess(store.url)
    with zlog.Log.create(store, "orders", width=4, hole_timeout=0.05) as opened:
        yield opened
    if host == "ceph":
        assert sequencer.stop() == 0


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client that hears of a full stripe has it ended before the very next append."""
    monkeypatch.setattr("zlog._io.base.Driver.random", lambda _: 0.0)


@pytest.fixture
def faulty(memory: zlog.Store) -> FaultyStore:
    """The store in memory, without a fault until a test sets one."""
    return FaultyStore(memory, lambda *_: None)


@pytest.fixture
def target() -> Iterator[zlog.Store]:
    """Another store in memory, for copies."""
    with zlog.connect("mem://") as opened:
        yield opened


@pytest.fixture
def plain(memory: zlog.Store) -> zlog.Store:
    """The store in memory without a sequencer of its own, as on Ceph."""
    return WithoutSequencer(memory)


@pytest.fixture
def sequencer(plain: zlog.Store) -> Iterator[LocalSequencer]:
    """A TCP sequencer for the logs of `plain`."""
    running = LocalSequencer(plain)
    yield running
    running.stop()


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 16 positions, so that a reader has some of them under way, and many to come."""
    for name in (
        "iterate._WINDOW_POSITIONS_FIRST",
        "iterate.WINDOW_POSITIONS_MAX",
        "select._WINDOW_BACKWARDS",
    ):
        monkeypatch.setattr(f"zlog._read.{name}", 16)


@pytest.fixture
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliveries in rounds of seven entries, and windows of five positions."""
    monkeypatch.setattr("zlog._append.exactly_once.APPEND_ENTRIES_MAX", 7)
    monkeypatch.setattr("zlog._append.exactly_once._WINDOW_POSITIONS", 5)
