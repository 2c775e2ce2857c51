"""Who gets in by a token, for both clients and both event loops, over real sockets."""

from __future__ import annotations

import struct

import pytest

from zlog._sequencer import Credentials
from zlog._sequencer.frames import FRAME, Code, Kind
from zlog._sequencer.token import Pair, Token, read_tokens
from zlog.errors import SequencerRefused
from zlog.seqr.security import Security

from ..support.programs import REPOSITORY
from .fakes import (
    ORDERS,
    Desk,
    ScriptedServer,
    read_frames,
    request,
)

SECRET, OTHER = "3f1c-the-right-one-9b", "77aa-quite-another-02"


def test_every_token_in_file_is_accepted(call, serve, token):
    """So that a token can be replaced without an interruption."""
    server = serve(Security(token_file=token(SECRET, "", OTHER)))
    for secret in (SECRET, OTHER):
        client = call.connect(server.address, Credentials(token_file=token(secret)))
        assert call(client.status)["connections"] >= 1


@pytest.mark.parametrize(
    ("lines", "says"), [((), "requires a token"), ((OTHER,), "does not use this client's token")]
)
def test_missing_or_wrong_token_is_refused(call, serve, store, token, lines, says):
    server = serve(Security(token_file=token(SECRET)))
    credentials = Credentials(token_file=token(*lines) if lines else "")
    client = call.connect(server.address, credentials)
    for ask in (client.status, lambda deadline: client.next(ORDERS, 1, 0, deadline)):
        with pytest.raises(SequencerRefused, match=says) as caught:
            call(ask)
        assert not caught.value.retryable
        assert "sequencer_token_file" in caught.value.hint
    assert store.takeovers == 0


def test_refused_client_does_not_reconnect_repeatedly(call):
    knocks = []

    def refuse(connected):
        knocks.append(read_frames(connected))
        connected.sendall(FRAME.pack(Kind.HELLO, Code.TOKEN_WANTED, 0, 0, 1, 2))

    server = ScriptedServer(refuse)
    client = call.connect(server.address)
    for _ in range(20):
        with pytest.raises(SequencerRefused, match="requires a token"):
            call(client.next, ORDERS, 1, 0)
    server.join()
    assert len(knocks) == 1


def test_client_refuses_sequencer_without_token(call, serve, token):
    server = serve(Security())
    client = call.connect(server.address, Credentials(token_file=token(SECRET)))
    with pytest.raises(SequencerRefused, match="does not ask for the token"):
        call(client.status)


def test_client_refuses_sequencer_with_false_proof(call, token):
    def pretend(connected):
        read_frames(connected)
        connected.sendall(FRAME.pack(Kind.HELLO, Code.TOKEN_WANTED, 0, 0, 1, 2))
        ((_, _, _, number, a, b),) = read_frames(connected)
        connected.sendall(FRAME.pack(Kind.PROVE, Code.OK, 0, number, a, b))  # the client's own

    server = ScriptedServer(pretend)
    client = call.connect(server.address, Credentials(token_file=token(SECRET)))
    with pytest.raises(SequencerRefused, match="asks for a token, but could not prove"):
        call(client.status)
    server.join()


def test_optional_token_refuses_only_wrong_tokens(call, serve, token):
    server = serve(Security(token_file=token(SECRET), token_optional=True))
    assert call(call.connect(server.address).status)["connections"] == 1
    right = call.connect(server.address, Credentials(token_file=token(SECRET)))
    assert call(right.status)["connections"] == 2
    wrong = call.connect(server.address, Credentials(token_file=token(OTHER)))
    with pytest.raises(SequencerRefused, match="does not use this client's token"):
        call(wrong.status)


@pytest.mark.parametrize("content", ["", "\n \n", "short"])
def test_unusable_token_file_is_refused(call, serve, tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content)
    server = serve(Security())
    client = call.connect(server.address, Credentials(token_file=str(path)))
    with pytest.raises(SequencerRefused, match=str(path)):
        call(client.status)
    with pytest.raises(ValueError, match=str(path)):
        Security(token_file=str(path)).admission()


def test_token_is_never_shown(token):
    (secret,) = read_tokens(token(SECRET))
    assert SECRET not in repr(secret) + str(secret)
    with pytest.raises(ValueError, match="16 bytes") as caught:
        Token(b"short-secret")
    assert "short-secret" not in str(caught.value)


def test_documented_proof_matches_implementation():
    page = REPOSITORY / "docs" / "formats" / "sequencer.md"
    proof = Token(b"an example of a token").client_proof(1, Pair(2, 3))
    assert f"```\n{struct.pack('<QQ', *proof).hex()}\n```" in page.read_text()


def test_proof_is_invalid_on_another_connection(token):
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
