"""The sequencer as a process: its end, and what it does not start with."""

from __future__ import annotations

import signal
import socket
import sys

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.sequencer import LogAddress
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive
from zlog._sequencer import BlockingSequencer
from zlog.errors import SequencerUnavailable
from zlog.seqr import service

from ..support.sequencer import SequencerProcess

PROGRAM = "import sys; from zlog.seqr import service; service.run(sys.argv[1], store=sys.argv[2])"


class Process(SequencerProcess):
    """One that serves an embedded store, as the command does not."""

    def command(self, url: str, listen: str) -> list[str]:
        return [sys.executable, "-c", PROGRAM, listen, url]


@pytest.fixture
def url(tmp_path):
    return (tmp_path / "store").as_uri()


@pytest.fixture
def store(url):
    with zlog.connect(url) as store:
        yield store


def lead(process: Process, log: zlog.Log) -> None:
    """Have the sequencer take the log over, and ``log`` know it."""
    client = BlockingSequencer(process.address)
    drive(client.open(LogAddress("", "", log.name, log.view.log_id), 0, Deadline(10)))
    drive(client.close())
    assert log.append(b"lead") >= 0
    assert log.view.sequencer == process.address


def announced(store) -> str:
    return drive(Directory(BlockingIo(store)).sequencer(Deadline(10)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_sequencer_cleanly(store, number):
    with Process(store.url) as process, zlog.Log.create(store, "orders") as log:
        assert announced(store) == process.address
        lead(process, log)
        first = log.append(b"x")
        assert [log.append(b"x") for _ in range(3)] == [first + 1, first + 2, first + 3]
        process.process.send_signal(number)
        assert process.process.wait(30) == 0
        assert announced(store) == ""
        with zlog.Log.open(store, "orders") as other:
            assert other.view.sequencer == ""
        assert log.append(b"x") == first + 4
        with pytest.raises(SequencerUnavailable):
            drive(BlockingSequencer(process.address).status(Deadline(5)))


def test_missing_store_is_refused(tmp_path):
    with pytest.raises(ValueError, match="store URL"):
        service.run("127.0.0.1:0", store="nonsense://")
    with pytest.raises(zlog.StoreUnavailable, match="there is no store"):
        service.run("127.0.0.1:0", store=(tmp_path / "typo").as_uri())
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize(
    ("advertise", "host", "address"),
    [
        (None, "127.0.0.1", "tcp://127.0.0.1:7777"),
        (None, "::1", "tcp://[::1]:7777"),
        ("seqr.example:7460", "0.0.0.0", "tcp://seqr.example:7460"),
        ("seqr.example:0", "::", "tcp://seqr.example:7777"),
    ],
)
def test_client_address_follows_advertise_option(advertise, host, address):
    assert service.client_address(advertise, host, 7777) == address


@pytest.mark.parametrize("advertise", [None, "0.0.0.0:1", "[::]:1"])
def test_wildcard_address_is_never_advertised(advertise):
    with pytest.raises(ValueError, match="--advertise"):
        service.client_address(advertise, "0.0.0.0", 7777)


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_notified_of_ready_and_stopping(store, tmp_path, monkeypatch, abstract):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + path if abstract else path)
        systemd.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + path if abstract else path)
        with Process(store.url) as process:
            assert systemd.recv(100) == b"READY=1"
            assert process.role() == "leader"
            process.process.terminate()
            assert systemd.recv(100) == b"STOPPING=1"
            assert process.process.wait(30) == 0


def test_unreachable_systemd_socket_is_ignored(store, tmp_path, monkeypatch):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nothing"))
    with Process(store.url) as process:
        assert process.role() == "leader"
