"""Who gets in: tokens and TLS, for both clients and both event loops, over real sockets."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlog._base.sequencer import Grant
from zlog._sequencer import Credentials
from zlog._sequencer.frames import FRAME, Code, Kind
from zlog._sequencer.token import Pair, Token, read_tokens
from zlog.errors import SequencerRefused, SequencerUnavailable
from zlog.seqr.limits import Limits
from zlog.seqr.machine.admission import Admission
from zlog.seqr.security import Security

from ..support.certificates import Authority
from ..support.programs import REPOSITORY
from .fakes import (
    HELLO,
    ORDERS,
    Desk,
    ScriptedServer,
    ServerThread,
    open_request,
    read_frames,
    request,
)
from .test_clients import Caller

SECRET, OTHER = "3f1c-the-right-one-9b", "77aa-quite-another-02"


@pytest.fixture(params=["blocking", "aio"])
def call(request):
    caller = Caller(request.param)
    yield caller
    caller.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def serve(request, store):
    """Starts servers; without TLS each test runs with both event loops."""
    loops = asyncio if request.param == "asyncio" else pytest.importorskip("uvloop")
    running = []

    def serve(security: Security, limits: Limits | None = None) -> ServerThread:
        new_loop = (asyncio if security.certificate else loops).new_event_loop
        running.append(ServerThread(store, limits=limits, new_loop=new_loop, security=security))
        return running[-1]

    yield serve
    for server in running:
        server.stop()


@pytest.fixture
def token(tmp_path):
    """Writes a token file of these lines; returns its path."""

    def token(*lines: str) -> str:
        path = tmp_path / f"token{len([*tmp_path.iterdir()])}"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    return token


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"), "authority")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"), "stranger")


# Tokens


def test_with_the_same_token_both_sides_are_content(call, serve, token):
    server = serve(Security(token_file=token(SECRET)))
    client = call.connect(server.address, Credentials(token_file=token(SECRET)))
    assert call(client.next, ORDERS, 3, 0) == Grant(1, 0)
    assert call(client.next, ORDERS, 1, 1) == Grant(1, 3)


def test_any_line_of_the_sequencers_file_lets_a_client_in(call, serve, token):
    """So that a token can be replaced without an interruption."""
    server = serve(Security(token_file=token(SECRET, "", OTHER)))
    for secret in (SECRET, OTHER):
        client = call.connect(server.address, Credentials(token_file=token(secret)))
        assert call(client.status)["connections"] >= 1


@pytest.mark.parametrize(("lines", "says"), [((), "wants a token"), ((OTHER,), "another token")])
def test_who_does_not_know_the_token_gets_nowhere(call, serve, store, token, lines, says):
    server = serve(Security(token_file=token(SECRET)))
    credentials = Credentials(token_file=token(*lines) if lines else "")
    client = call.connect(server.address, credentials)
    for ask in (client.status, lambda deadline: client.next(ORDERS, 1, 0, deadline)):
        with pytest.raises(SequencerRefused, match=says) as caught:
            call(ask)
        assert not caught.value.retryable
        assert "sequencer_token_file" in caught.value.hint
    assert store.takeovers == 0


def test_a_refused_client_does_not_knock_again_and_again(call):
    knocks = []

    def refuse(connected):
        knocks.append(read_frames(connected))
        connected.sendall(FRAME.pack(Kind.HELLO, Code.TOKEN_WANTED, 0, 0, 1, 2))

    server = ScriptedServer(refuse)
    client = call.connect(server.address)
    for _ in range(20):
        with pytest.raises(SequencerRefused, match="wants a token"):
            call(client.next, ORDERS, 1, 0)
    server.join()
    assert len(knocks) == 1


def test_a_client_with_a_token_refuses_a_sequencer_without(call, serve, token):
    server = serve(Security())
    client = call.connect(server.address, Credentials(token_file=token(SECRET)))
    with pytest.raises(SequencerRefused, match="does not ask for the token"):
        call(client.status)


def test_a_client_refuses_a_sequencer_that_only_says_that_it_knows_the_token(call, token):
    def pretend(connected):
        read_frames(connected)
        connected.sendall(FRAME.pack(Kind.HELLO, Code.TOKEN_WANTED, 0, 0, 1, 2))
        ((_, _, _, number, a, b),) = read_frames(connected)
        connected.sendall(FRAME.pack(Kind.PROVE, Code.OK, 0, number, a, b))  # the client's own

    server = ScriptedServer(pretend)
    client = call.connect(server.address, Credentials(token_file=token(SECRET)))
    with pytest.raises(SequencerRefused, match="does not know the token"):
        call(client.status)
    server.join()


def test_an_optional_token_lets_those_without_in_and_wrong_ones_not(call, serve, token):
    server = serve(Security(token_file=token(SECRET), token_optional=True))
    assert call(call.connect(server.address).status)["connections"] == 1
    right = call.connect(server.address, Credentials(token_file=token(SECRET)))
    assert call(right.status)["connections"] == 2
    wrong = call.connect(server.address, Credentials(token_file=token(OTHER)))
    with pytest.raises(SequencerRefused, match="another token"):
        call(wrong.status)


@pytest.mark.parametrize("content", ["", "\n \n", "short"])
def test_a_token_file_that_is_of_no_use(call, serve, tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content)
    server = serve(Security())
    client = call.connect(server.address, Credentials(token_file=str(path)))
    with pytest.raises(SequencerRefused, match=str(path)):
        call(client.status)
    with pytest.raises(ValueError, match=str(path)):
        Security(token_file=str(path)).admission()


def test_a_token_shows_itself_nowhere(token):
    (secret,) = read_tokens(token(SECRET))
    assert SECRET not in repr(secret) + str(secret)
    with pytest.raises(ValueError, match="16 bytes") as caught:
        Token(b"short-secret")
    assert "short-secret" not in str(caught.value)


def test_proofs_differ_by_side_number_challenge_and_token():
    one, other = Token(SECRET.encode()), Token(OTHER.encode())
    proofs = {
        one.client_proof(1, Pair(2, 3)),
        one.server_proof(1, Pair(2, 3)),
        one.client_proof(2, Pair(2, 3)),
        one.client_proof(1, Pair(3, 2)),
        other.client_proof(1, Pair(2, 3)),
    }
    assert len(proofs) == 5


def test_the_documented_proof_is_the_real_one():
    page = REPOSITORY / "docs" / "formats" / "sequencer.md"
    proof = Token(b"an example of a token").client_proof(1, Pair(2, 3))
    assert f"```\n{struct.pack('<QQ', *proof).hex()}\n```" in page.read_text()


def test_a_proof_is_of_no_use_on_another_connection(token):
    """Every connection is challenged anew, and sending a proof again is of no use."""
    desk = Desk(admission=Security(token_file=token(SECRET)).admission())
    hello = request(Kind.HELLO, a=1, b=99)
    first, second = desk.connect(greet=False), desk.connect(greet=False)
    for connection in (first, second):
        desk.send(connection, hello)
    challenge, another = (Pair(*desk.take(each)[0][4:6]) for each in (first, second))
    assert challenge != another
    proof = Token(SECRET.encode()).client_proof(99, challenge)
    prove = request(Kind.PROVE, 1, a=proof.a, b=proof.b)
    desk.send(second, prove)
    assert desk.take(second)[0].code == Code.TOKEN_WRONG
    assert desk.closed() == [second]
    desk.send(first, prove)
    assert desk.take(first)[0].code == Code.OK


@pytest.mark.parametrize("kind", [k for k in Kind if k is not Kind.PROVE])
def test_before_the_proof_nothing_else_is_understood(token, kind):
    desk = Desk(admission=Security(token_file=token(SECRET)).admission())
    stranger = desk.connect(greet=False)
    desk.send(stranger, HELLO, request(kind, 1, a=24), open_request())
    assert [reply.code for reply in desk.take(stranger)] == [Code.TOKEN_WANTED]
    assert desk.closed() == [stranger]
    assert not desk.wanted()


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.builds(
                lambda kind, number, a, b: request(kind, number, a=a, b=b),
                st.integers(0, 255),
                st.integers(0, 9),
                st.integers(0, 2**64 - 1),
                st.integers(0, 2**64 - 1),
            ),
            st.just(HELLO),
        ),
        max_size=12,
    )
)
def test_no_bytes_get_a_stranger_past_the_greeting(chunks):
    desk = Desk(admission=Admission((Token(SECRET.encode()),)))
    stranger = desk.connect(greet=False)
    for chunk in chunks:
        desk.send_directly(stranger, chunk)
    assert not stranger.greeted
    assert not desk.wanted()
    assert {reply.code for reply in desk.take(stranger)} <= {
        Code.TOKEN_WANTED,
        Code.TOKEN_WRONG,
        Code.BAD_VERSION,
    }


# TLS


def test_over_tls_everything_works_as_without(call, serve, authority, token):
    security = Security(certificate=authority.sign("seqr"), token_file=token(SECRET))
    server = serve(security)
    assert server.address.startswith("tls://")
    shown = Credentials(ca=authority.certificate, token_file=token(SECRET))
    client = call.connect(server.address, shown)
    for turn in range(50):
        assert call(client.next, ORDERS, 2, 1 if turn else 0) == Grant(1, 2 * turn)
    server.cut()
    assert call(client.next, ORDERS, 1, 1) == Grant(1, 100)


def test_a_stop_ends_connections_that_do_not_answer(serve, authority):
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


def test_threads_share_a_connection_with_tls(serve, authority):
    server = serve(Security(certificate=authority.sign("seqr")))
    caller = Caller("blocking")
    client = caller.connect(server.address, Credentials(ca=authority.certificate))
    granted: list[int] = []

    def work() -> None:
        granted.extend(caller(client.next, ORDERS, 1, 0).position for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(granted) == [*range(1600)]
    assert caller(client.status)["connections"] == 1
    caller.close()


def test_a_certificate_of_a_stranger_is_refused(call, serve, authority, stranger):
    server = serve(Security(certificate=stranger.sign("seqr")))
    client = call.connect(server.address, Credentials(ca=authority.certificate))
    with pytest.raises(SequencerRefused, match="not trusted here") as caught:
        call(client.status)
    assert "sequencer_ca" in caught.value.hint


def test_a_certificate_of_another_host_is_refused(call, serve, authority):
    server = serve(Security(certificate=authority.sign("elsewhere", "DNS:elsewhere.example")))
    client = call.connect(server.address, Credentials(ca=authority.certificate))
    with pytest.raises(SequencerRefused, match="not trusted here"):
        call(client.status)


def test_a_client_needs_the_right_certificate_where_one_is_wanted(
    call, serve, store, authority, stranger
):
    server = serve(Security(certificate=authority.sign("seqr"), client_ca=authority.certificate))
    trusted = Credentials(ca=authority.certificate)
    with pytest.raises(SequencerRefused, match="wants a client's certificate"):
        call(call.connect(server.address, trusted).status)
    wrong = Credentials(ca=authority.certificate, certificate=stranger.sign("client"))
    with pytest.raises(SequencerUnavailable):
        call(call.connect(server.address, wrong).next, ORDERS, 1, 0)
    assert store.takeovers == 0
    right = Credentials(ca=authority.certificate, certificate=authority.sign("client"))
    assert call(call.connect(server.address, right).next, ORDERS, 1, 0) == Grant(1, 0)


def test_plain_text_at_a_sequencer_with_tls_gets_no_answer(call, serve, authority):
    server = serve(Security(certificate=authority.sign("seqr")))
    with pytest.raises(SequencerUnavailable, match="ended") as caught:
        call(call.connect(server.address.replace("tls", "tcp")).status)
    assert "tls://HOST:PORT" in caught.value.hint


def test_an_unfinished_handshake_takes_a_place_only_for_a_while(serve, authority):
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


def test_files_that_can_not_be_used_are_told(call, serve, authority, tmp_path):
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
        with pytest.raises(ValueError, match="no certificate with its private key is there"):
            security.context()
    with pytest.raises(ValueError, match="sequencer's own"):
        Security(client_ca=authority.certificate)
    server = serve(Security(certificate=authority.sign("seqr")))
    with pytest.raises(SequencerRefused, match="can't speak TLS"):
        call(call.connect(server.address, Credentials(ca=str(garbage))).status)


def test_old_versions_of_tls_are_not_spoken(serve, authority):
    server = serve(Security(certificate=authority.sign("seqr")))
    context = ssl.create_default_context(cafile=authority.certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(server.where) as plain, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


# Limits and what is said about them


def test_connections_of_one_address_are_bounded(call, serve):
    server = serve(Security(), Limits(connections_per_address_max=1))
    first = call.connect(server.address)
    assert call(first.status)["connections"] == 1
    with pytest.raises(SequencerUnavailable, match=r"too many connections|ended"):
        call(call.connect(server.address).status)
    assert call(first.status)["closed"]["limit"] == 1


def test_those_who_are_not_greeted_yet_are_bounded(serve):
    server = serve(Security(), Limits(greeting_max=1))
    with socket.create_connection(server.where) as first:
        with socket.create_connection(server.where) as second:
            assert read_frames(second)[0][:2] == (Kind.HELLO, Code.LIMIT)
        first.sendall(HELLO)
        assert read_frames(first)[0][1] == Code.OK
        with socket.create_connection(server.where) as third:
            third.sendall(HELLO)
            assert read_frames(third)[0][1] == Code.OK


def test_an_idle_connection_is_closed_and_made_again(call, serve):
    server = serve(Security(), Limits(idle_s_max=0.1))
    client = call.connect(server.address)
    assert call(client.next, ORDERS, 1, 0).position == 0
    with socket.create_connection(server.where) as idle:
        idle.settimeout(10)
        idle.sendall(HELLO)
        assert len(read_frames(idle)) == 1
        assert idle.recv(1) == b""
    assert call(client.next, ORDERS, 1, 0).position == 1
    assert call(client.status)["closed"]["idle"] >= 1


def test_what_waits_on_all_connections_is_bounded():
    desk = Desk(Limits(outstanding_max=2))
    first, second = desk.client(), desk.client()
    desk.send(first, *(request(Kind.WAIT, n, a=9, b=1000) for n in range(2)))
    desk.send(second, request(Kind.WAIT, 7, a=9, b=1000))
    assert [reply.code for reply in desk.take(second)] == [Code.LIMIT]
    assert desk.machine.status(desk.now)["outstanding"] == 2
    desk.machine.disconnect(first)
    assert desk.machine.status(desk.now)["outstanding"] == 0
    desk.send(second, request(Kind.WAIT, 8, a=9, b=1000))
    assert desk.take(second) == []
    desk.send(second, request(Kind.NEXT, 9, a=10, b=1))
    assert desk.machine.status(desk.now)["outstanding"] == 0


def test_a_crowd_of_strangers_leaves_few_lines_in_the_log(serve, caplog, token):
    server = serve(Security(token_file=token(SECRET)))
    with caplog.at_level(logging.DEBUG):
        for _ in range(30):
            with socket.create_connection(server.where) as stranger:
                stranger.sendall(HELLO + request(Kind.PROVE, 1, a=5, b=6))
                assert [frame[1] for frame in read_frames(stranger, 2)] == [
                    Code.TOKEN_WANTED,
                    Code.TOKEN_WRONG,
                ]
    lines = [record.getMessage() for record in caplog.records if "closed" in record.getMessage()]
    assert lines == ["closed a connection reason=token peer=127.0.0.1: a wrong token"]
