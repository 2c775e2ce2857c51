"""A sequencer that was killed, for good: what it left goes by itself, or by hand."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

import zlog
from zlog.admin import announced_sequencer

from ..cli.conftest import Cli
from ..support.ceph import CephCluster
from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until


@pytest.fixture
def cli(ceph_cluster: CephCluster) -> Cli:
    """The command, with a namespace of its own."""
    return Cli(ceph_cluster.url(f"gone-{uuid4().hex[:12]}"))


@pytest.fixture
def store(cli: Cli) -> Iterator[zlog.Store]:
    with zlog.connect(cli.url) as opened:
        yield opened


@pytest.fixture
def sequencer(cli: Cli) -> Iterator[SequencerProcess]:
    with SequencerProcess(cli.url) as running:
        yield running


def served(cli: Cli, log: str) -> None:
    """Make a log that the sequencer serves."""
    cli.ok("create", log)
    cli.ok("append", log, stdin=b"first\n")
    with zlog.connect(cli.url) as store:
        assert zlog.Log.open(store, log).view.sequencer == announced_sequencer(store)


@pytest.mark.long
def test_removed_in_time(cli: Cli, store: zlog.Store, sequencer: SequencerProcess) -> None:
    for log in ("idle", "orders"):
        served(cli, log)
    sequencer.kill()
    down = cli("doctor")
    assert (down.code, sequencer.address in down.out.decode()) == (6, True)
    assert f"seqr forget {sequencer.address}" in down.out.decode()
    with zlog.Log.open(store, "orders") as log:
        assert log.append(b"second") == 1
        wait_until(lambda: log.append(b"more") > 0 and not announced_sequencer(store))
    assert f"{sequencer.address}, named by log idle, does not answer" in cli.ok("doctor").decode()
    cli.ok("append", "idle", stdin=b"second\n")
    assert sequencer.address not in cli.ok("doctor").decode()


def test_removed_by_append(cli: Cli, store: zlog.Store, sequencer: SequencerProcess) -> None:
    served(cli, "orders")
    sequencer.kill()
    for _ in range(2):  # the first waits for it in vain, the second finds it on offer
        cli.ok("append", "orders", stdin=b"more\n")
    assert announced_sequencer(store) == ""
    assert cli("doctor").code == 0


def test_forgotten_by_hand(cli: Cli, store: zlog.Store, sequencer: SequencerProcess) -> None:
    for log in ("idle", "orders"):
        served(cli, log)
    where = sequencer.address.removeprefix("tcp://")
    alive = cli("seqr", "forget", where)
    assert (alive.code, f"the sequencer {sequencer.address} is still running" in alive.err) == (
        1,
        True,
    )
    assert announced_sequencer(store) == sequencer.address
    sequencer.kill()
    assert cli("doctor").code == 6
    cli.ok("seqr", "forget", where)
    assert cli("doctor").code == 0
    assert announced_sequencer(store) == ""
    for log in ("idle", "orders"):
        assert zlog.Log.open(store, log).view.sequencer == ""
        cli.ok("append", log, stdin=b"second\n")
        assert cli.ok("read", log) == b"first\nsecond\n"
    again = cli("seqr", "forget", where)
    assert (again.code, "no log names it" in again.err) == (1, True)


def test_forgotten_too_early(cli: Cli, store: zlog.Store, sequencer: SequencerProcess) -> None:
    served(cli, "orders")
    sequencer.freeze()
    cli.ok("seqr", "forget", sequencer.address)
    with zlog.Log.open(store, "orders") as log:
        assert log.append(b"without it") == 1
        assert log.view.sequencer == ""
        sequencer.thaw()
        wait_until(lambda: log.append(b"more") > 1 and log.view.sequencer == sequencer.address)
        assert [finding for finding in log.check() if finding.serious] == []


def test_new_sequencer_replaces_traces_of_killed_one(cli: Cli, sequencer: SequencerProcess) -> None:
    served(cli, "orders")
    sequencer.kill()
    with SequencerProcess(cli.url) as other:
        wait_until(lambda: cli("doctor").code == 0)
        assert other.address in cli.ok("doctor").decode()


@pytest.mark.parametrize("address", ["nowhere", "host:port"])
def test_seqr_forget_refuses_invalid_address(address: str) -> None:
    result = Cli("mem://")("seqr", "forget", address)
    assert (result.code, "HOST:PORT" in result.err) == (2, True)
