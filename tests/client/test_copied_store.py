"""A store that was copied elsewhere: its logs name the sequencer of the original."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive
from zlog._sequencer import BlockingSequencer
from zlog.admin import ask_monitors, sequencer_status

from ..support.local_sequencer import LocalSequencer
from .faulty import WithoutSequencer


@pytest.fixture
def original(plain: WithoutSequencer) -> Iterator[LocalSequencer]:
    """The sequencer of the store that `plain` is about to be a copy of."""
    plain.identity = "original"
    running = LocalSequencer(plain)
    yield running
    running.stop()


def granted(sequencer: LocalSequencer) -> object:
    return sequencer_status(sequencer.address)["positions"]


def test_copy_ignores_sequencer_of_original(
    plain: WithoutSequencer, original: LocalSequencer
) -> None:
    zlog.Log.create(plain, "orders", width=2).append(b"first")
    before = granted(original)
    original.withdraw()
    plain.identity = "copy"
    copy = zlog.Log.open(plain, "orders", sequencer_timeout=0.3)
    assert copy.view.sequencer == original.address
    assert copy.tail() == 1
    assert copy.append(b"second") == 1
    assert copy.view.sequencer == ""
    assert granted(original) == before
    own = LocalSequencer(plain)
    try:
        again = zlog.Log.open(plain, "orders")
        assert again.append(b"third") == 2
        assert again.view.sequencer == own.address
    finally:
        own.stop()


def test_copy_withdraws_announcement_of_original(
    plain: WithoutSequencer, original: LocalSequencer
) -> None:
    original.withdraw()
    io = BlockingIo(plain)
    drive(Directory(io).announce(original.address, deadline_of(io, 10)))
    plain.identity = "copy"
    with zlog.Log.create(plain, "orders", width=2) as copy:
        assert copy.append(b"first") == 0
        assert copy.view.sequencer == ""
    assert drive(Directory(io).sequencer(deadline_of(io, 10))) == ""
    assert granted(original) == 0


def test_stores_are_distinguished_on_shared_connection(
    plain: WithoutSequencer, memory: zlog.Store, original: LocalSequencer
) -> None:
    log = zlog.Log.create(plain, "orders", width=2)
    log.append(b"first")
    other = WithoutSequencer(memory)
    other.identity = "copy"
    copy = zlog.Log.open(other, "orders")
    for _ in range(2):
        with pytest.raises(zlog.SequencerUnavailable, match="not this copy of it") as told:
            drive(copy._client.positions._ask(copy.view, 1, copy._client.deadline()))
        assert "zlog seqr" in told.value.hint
    assert log.append(b"second") == 1
    assert granted(original) == 2


def test_embedded_store_and_copy_have_different_identities(tmp_path: Path) -> None:
    with zlog.connect(tmp_path / "store") as store, zlog.connect(tmp_path / "store") as same:
        zlog.Log.create(store, "orders").append(b"first")
        assert store.identity == same.identity != ""
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    with zlog.connect(tmp_path / "store") as again, zlog.connect(tmp_path / "copy") as copy:
        assert again.identity == store.identity != copy.identity


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_sequencer_refuses_other_cluster(sequenced: zlog.Log) -> None:
    sequenced.append(b"first")
    assert sequenced.store.identity == ask_monitors(sequenced.store, "fsid")["fsid"]
    ours = sequenced._client.layout.address
    client = BlockingSequencer(sequenced.view.sequencer)
    deadline = Deadline(10)
    with pytest.raises(zlog.SequencerUnavailable, match="not this copy of it"):
        drive(client.next(ours._replace(store="another cluster's fsid"), 1, 0, deadline))
    assert drive(client.next(ours, 1, 0, deadline)).position == 1
    drive(client.close())
