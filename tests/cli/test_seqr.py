"""seqr and seqr status. What a sequencer does is tested elsewhere; here it is the command."""

from __future__ import annotations

import json
import socket

import pytest

import zlog
from zlog.admin import announced_sequencer

from ..support.sequencer import SequencerProcess
from ..support.waiting import wait_until
from .conftest import Cli


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_status_reports_sequencer(store_url: str) -> None:
    cli = Cli(store_url)
    with SequencerProcess(cli.url) as sequencer:
        where = f"127.0.0.1:{sequencer.port}"
        found = json.loads(cli.ok("seqr", "status", where, "--json"))
        assert found["address"] == sequencer.address
        assert found == {
            **json.loads(cli.ok("seqr", "status", "--json")),
            **{key: found[key] for key in ("uptime_s", "requests", "connections", "namespaces")},
        }
        (namespace,) = found["namespaces"]
        assert found["role"] == namespace["role"] == "leader"
        assert namespace["leader"] == sequencer.address
        assert 0 < namespace["lease_left_s"] <= 3
        assert namespace["others"] == []
        shown = cli.ok("seqr", "status", sequencer.address)
        assert shown.startswith(b"address")
        assert b"NAMESPACE" in shown
        assert sequencer.stop() == 0
    with zlog.connect(cli.url) as store:
        assert announced_sequencer(store) == ""


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_status_without_sequencer_fails(store_url: str) -> None:
    result = Cli(store_url)("seqr", "status")
    assert result.code == 6
    assert "no sequencer has announced itself" in result.err


@pytest.mark.parametrize("scheme", ["", "tcp://", "tls://"])
def test_status_of_stopped_sequencer_fails(cli: Cli, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    result = cli("-N", "half", "seqr", "status", f"{scheme}127.0.0.1:{port}")
    assert result.code == 6
    assert f"or start a sequencer there: `zlog seqr --listen 127.0.0.1:{port}`" in result.err
    assert (
        f"can't connect to {scheme or 'tcp://'}127.0.0.1:{port}: Connection refused\n" in result.err
    )


@pytest.mark.parametrize("where", ["192.0.2.1:0", "nowhere.invalid:0"])
def test_foreign_listen_address_is_refused(where: str) -> None:
    result = Cli("ceph://nothere")("seqr", "--listen", where)
    assert result.code == 1
    assert f"zlog: can't listen on {where}: " in result.err
    assert "Errno" not in result.err
    assert "--listen needs an address of this machine" in result.err


def test_status_of_closing_server_fails(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        where = f"127.0.0.1:{listening.getsockname()[1]}"
        with cli.start("seqr", "status", where) as asking:
            listening.accept()[0].close()
            err = asking.communicate(timeout=60)[1].decode()
    assert asking.returncode == 6
    assert "tls://HOST:PORT" in err


def test_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = Cli("ceph://nothere")("seqr", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.code == 1
    assert "in use" in result.err
    assert "zlog seqr status 127.0.0.1:" in result.err
    assert result.out == b""


@pytest.mark.parametrize("store_url", ["ceph-memstore"], indirect=True)
def test_status_reports_leader_and_standby(store_url: str) -> None:
    cli = Cli(store_url)
    with (
        SequencerProcess(cli.url) as leader,
        SequencerProcess(cli.url, "--lease", "1") as standby,
    ):
        wait_until(lambda: leader.others() == [standby.address])
        found = json.loads(cli.ok("seqr", "status", standby.address, "--json"))
        (namespace,) = found["namespaces"]
        assert (namespace["role"], namespace["leader"]) == ("standby", leader.address)
        assert namespace["others"] == [leader.address]
        assert f"{standby.address} ".encode() in cli.ok("seqr", "status")  # the leader's
        doctor = cli("doctor")
        assert f"{leader.address}, announced in the store, answers" in doctor.out.decode()
        assert "leader)" in doctor.out.decode()
        assert standby.stop() == 0
        assert leader.stop() == 0
