"""TLS and certificates, for both clients, over real sockets."""

from __future__ import annotations

import socket
import ssl

import pytest

from zlog._base.sequencer import Grant
from zlog._sequencer import Credentials
from zlog.errors import SequencerBusy, SequencerRefused, SequencerUnavailable
from zlog.seqr.limits import Limits
from zlog.seqr.security import Security

from .callers import Caller
from .fakes import (
    HELLO,
    ORDERS,
    read_frames,
)

SECRET = "3f1c-the-right-one-9b"


def test_client_works_and_reconnects_over_tls(call, serve, authority, token):
    security = Security(certificate=authority.sign("seqr"), token_file=token(SECRET))
    server = serve(security)
    assert server.address.startswith("tls://")
    shown = Credentials(ca=authority.certificate, token_file=token(SECRET))
    client = call.connect(server.address, shown)
    for turn in range(50):
        assert call(client.next, ORDERS, 2, 1 if turn else 0) == Grant(1, 2 * turn)
    server.cut()
    assert call(client.next, ORDERS, 1, 1) == Grant(1, 100)


def test_connection_limit_is_reported_over_tls(call, serve, authority):
    server = serve(
        Security(certificate=authority.sign("seqr")), Limits(connections_per_address_max=1)
    )
    shown = Credentials(ca=authority.certificate)
    first = call.connect(server.address, shown)
    assert call(first.status)["connections"] == 1
    with pytest.raises(SequencerBusy, match="too many connections"):
        call(call.connect(server.address, shown).status)
    assert call(first.status)["closed"]["limit"] == 1


def test_stop_closes_unresponsive_tls_connections(serve, authority):
    server = serve(Security(certificate=authority.sign("seqr")))
    context = ssl.create_default_context(cafile=authority.certificate)
    with (
        socket.create_connection(server.where) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as deaf,
    ):
        deaf.sendall(HELLO)
        assert len(read_frames(deaf)) == 1
        server.call("stop")  # which TLS would have the other side confirm
        deaf.settimeout(10)
        while deaf.recv(1024):
            pass


def test_a_certificate_of_another_authority_or_host_is_refused(call, serve, authority, untrusted):
    elsewhere = authority.sign("elsewhere", "DNS:elsewhere.example")
    for certificate in (untrusted.sign("seqr"), elsewhere):
        server = serve(Security(certificate=certificate))
        client = call.connect(server.address, Credentials(ca=authority.certificate))
        with pytest.raises(
            SequencerRefused, match="a certificate that this client does not trust"
        ) as caught:
            call(client.status)
        assert "sequencer_ca" in caught.value.hint


def test_server_requires_trusted_client_certificate(call, serve, store, authority, untrusted):
    server = serve(Security(certificate=authority.sign("seqr"), client_ca=authority.certificate))
    trusted = Credentials(ca=authority.certificate)
    with pytest.raises(SequencerRefused, match="requires a client certificate"):
        call(call.connect(server.address, trusted).status)
    wrong = Credentials(ca=authority.certificate, certificate=untrusted.sign("client"))
    with pytest.raises(SequencerUnavailable):
        call(call.connect(server.address, wrong).next, ORDERS, 1, 0)
    assert store.takeovers == 0
    right = Credentials(ca=authority.certificate, certificate=authority.sign("client"))
    assert call(call.connect(server.address, right).next, ORDERS, 1, 0) == Grant(1, 0)


def test_plain_text_client_is_refused_over_tls(call, serve, authority):
    server = serve(Security(certificate=authority.sign("seqr")))
    with pytest.raises(SequencerUnavailable, match="ended") as caught:
        call(call.connect(server.address.replace("tls", "tcp")).status)
    assert "tls://HOST:PORT" in caught.value.hint


def test_unfinished_handshakes_time_out(serve, authority):
    limits = Limits(hello_s_max=0.2, greeting_max=2)
    server = serve(Security(certificate=authority.sign("seqr")), limits)
    caller = Caller("blocking")
    silent = [socket.create_connection(server.where) for _ in range(2)]
    for each in silent:
        each.settimeout(10)
        assert each.recv(1) == b""
        each.close()
    client = caller.connect(server.address, Credentials(ca=authority.certificate))
    assert caller(client.status)["closed"]["silent"] + caller(client.status)["closed"]["tls"] == 2
    caller.close()


def test_unusable_certificate_files_are_reported(call, serve, authority, tmp_path):
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("nothing")
    for security in (
        Security(certificate=str(garbage)),
        Security(certificate=str(tmp_path / "missing")),
        Security(certificate=authority.sign("seqr"), client_ca=str(garbage)),
    ):
        with pytest.raises(ValueError, match="can't speak TLS"):
            security.context()
    alone = authority.certificate
    for security in (Security(certificate=alone), Security(certificate=alone, key=alone)):
        with pytest.raises(
            ValueError, match="the file must contain a certificate and its private key"
        ):
            security.context()
    with pytest.raises(ValueError, match="needs the sequencer's certificate"):
        Security(client_ca=authority.certificate)
    server = serve(Security(certificate=authority.sign("seqr")))
    with pytest.raises(SequencerRefused, match="can't speak TLS"):
        call(call.connect(server.address, Credentials(ca=str(garbage))).status)


def test_old_tls_versions_are_refused(serve, authority):
    server = serve(Security(certificate=authority.sign("seqr")))
    context = ssl.create_default_context(cafile=authority.certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(server.where) as plain, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(plain, server_hostname="127.0.0.1")
