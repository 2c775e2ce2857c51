"""Sequencer processes with TLS and a token: fail-over, untrusted clients, and no leaked secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._io import drive
from zlog._sequencer import BlockingSequencer

from ..cli.conftest import Cli
from ..support.ceph import CephCluster
from ..support.certificates import Authority
from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until

SECRET = "5d0c-nobody-may-see-this-4417"


class Place:
    """A namespace, the files of its sequencers, and the URL of its clients."""

    def __init__(self, cluster: CephCluster, folder: Path) -> None:
        authority = Authority(folder, "authority")
        token = folder / "token"
        token.write_text(f"{SECRET}\n")
        token.chmod(0o600)
        self.authority = authority
        self.token = str(token)
        self.untrusted = cluster.url(folder.name)
        self.url = (
            f"{self.untrusted}&sequencer_ca={authority.certificate}&sequencer_token_file={token}"
        )
        self._certificate = authority.sign("seqr")

    def start(self) -> SequencerProcess:
        """Start a sequencer."""
        return SequencerProcess(self.url, "--tls-cert", self._certificate)

    def status(self, address: str) -> dict[str, object]:
        """Ask a sequencer, as `zlog seqr status` does."""
        shown = Cli(self.url).ok("seqr", "status", address, "--json").decode()
        assert SECRET not in shown
        found: dict[str, object] = json.loads(shown)
        return found


@pytest.fixture
def place(ceph_cluster: CephCluster, tmp_path: Path) -> Place:
    return Place(ceph_cluster, tmp_path)


@pytest.fixture
def log(place: Place) -> Iterator[zlog.Log]:
    with zlog.connect(place.url) as store:
        yield zlog.Log.create(store, "orders", width=2, stripe_unit=2)


def test_standby_with_same_credentials_takes_over(place: Place, log: zlog.Log) -> None:
    with place.start() as leader, place.start() as standby:
        assert leader.address.startswith("tls://")
        assert log.append(b"first") == 0
        assert log.view.sequencer == leader.address
        leader.kill()
        wait_until(lambda: place.status(standby.address)["role"] == "leader")
        assert log.append(b"second") == 1
        assert log.view.sequencer == standby.address
        assert standby.stop() == 0, "".join(standby.log)
        assert not any("can't watch" in line for line in standby.log)


def test_client_without_token_changes_nothing(place: Place, log: zlog.Log) -> None:
    with place.start() as sequencer:
        log.append(b"first")
        epoch = log.view.epoch
        asked = BlockingSequencer(sequencer.address)
        with pytest.raises(zlog.SequencerRefused, match="does not trust"):
            drive(asked.status(Deadline(10)))
        with zlog.connect(f"{place.untrusted}&sequencer_ca={place.authority.certificate}") as store:
            mine = zlog.Log.open(store, "orders")
            with pytest.raises(zlog.SequencerRefused, match="requires a token"):
                mine.append(b"x")
            assert mine.read(0).data == b"first"  # for that the store's own caps count
            assert mine.tail() == 1
        assert log.append(b"second") == 1
        assert log.view.epoch == epoch  # no client was sent away for the untrusted's sake
        doctor = Cli(place.untrusted)("doctor")
        assert doctor.code == 6
        assert b"a certificate that this client does not trust" in doctor.out
        assert b"sequencer_ca" in doctor.out
        assert place.status(sequencer.address)["closed"]


@pytest.mark.long
def test_secrets_never_appear_in_processes_or_logs(place: Place, log: zlog.Log) -> None:
    with place.start() as sequencer:
        log.append(b"first")
        place.status(sequencer.address)
        arguments = Path(f"/proc/{sequencer.process.pid}/cmdline").read_bytes()
        assert b"--tls-cert" in arguments
        assert SECRET.encode() not in arguments
        assert SECRET.encode() not in Path(f"/proc/{sequencer.process.pid}/environ").read_bytes()
        for shown in (log, log.view, log.store, log.store.url):
            assert SECRET not in repr(shown)
        for words in (["info", "orders"], ["doctor"], ["append", "orders", "--debug"]):
            result = Cli(place.url)(*words, stdin=b"x\n")
            assert result.code == 0
            assert SECRET not in result.out.decode() + result.err
        Path(place.token).write_text(f"{SECRET}-but-wrong\n")
        result = Cli(place.url)("append", "orders", "--debug", stdin=b"x\n")
        assert result.code == 6
        assert "does not use this client's token" in result.err
        assert SECRET not in result.out.decode() + result.err
        sequencer.stop()
    assert SECRET not in "".join(sequencer.log)
