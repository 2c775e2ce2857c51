"""The greeting: what both sides check at the beginning of a connection to a sequencer."""

from __future__ import annotations

import ssl

from zlog._base.deadline import Deadline
from zlog._base.sequencer import NotConnected, OtherProtocol
from zlog._sequencer.credentials import reason_of
from zlog._sequencer.frames import PROTOCOL_VERSION, Code, Kind, Reply
from zlog._sequencer.link import Link, LinkLost
from zlog._sequencer.token import Pair, Token, new_number, same
from zlog.errors import SequencerBusy, SequencerRefused, SequencerTimeout, SequencerUnavailable

CONNECT_SECONDS_MAX = 1.0
"""The time limit of an attempt to connect, including the greeting."""

_PROOF_HINT = (
    "Specify the file with the sequencer's token: sequencer_token_file=PATH in the store's URL,"
    " or the variable ZLOG_SEQUENCER_TOKEN_FILE."
)
_CERTIFICATE_HINT = (
    "Specify a certificate and its key: sequencer_cert=PATH and sequencer_key=PATH in the"
    " store's URL, or the variables ZLOG_SEQUENCER_CERT and ZLOG_SEQUENCER_KEY."
)
_CA_HINT = (
    "Specify the certificate authority that signed the sequencer's certificate:"
    " sequencer_ca=PATH in the store's URL, or the variable ZLOG_SEQUENCER_CA. The certificate"
    " must name the host in the address."
)
_TLS_HINT = (
    "If the sequencer uses TLS, its address is tls://HOST:PORT. If it requires certificates, it may"
    " not trust this client's. The sequencer's log says why it closed the connection."
)


async def greet(link: Link, address: str, token: Token | None, deadline: Deadline) -> None:
    """Exchange HELLO messages. If there is a token, each side proves that it knows the token.

    Raises:
        SequencerRefused: one side requires a token or a certificate that the other lacks.
        SequencerBusy: the sequencer has too many connections.
        SequencerUnavailable: the peer is not a sequencer, or is about to stop.
    """
    number = 0 if token is None else new_number()
    try:
        reply = await link.call(Kind.HELLO, 0, PROTOCOL_VERSION, number, b"", deadline)
    except LinkLost as error:
        error.hint = _TLS_HINT
        raise
    _check_hello(address, reply)
    if reply.code == Code.TOKEN_WANTED:
        if token is None:
            raise SequencerRefused(f"{address} requires a token", hint=_PROOF_HINT)
        await _prove(link, address, token, number, Pair(reply.a, reply.b), deadline)
    elif token is not None:
        raise SequencerRefused(
            f"{address} does not ask for the token, so it may be the wrong sequencer",
            hint="Start the sequencer with the same token (`zlog seqr --token-file PATH`), or use"
            " no token in this client.",
        )


async def _prove(
    link: Link, address: str, token: Token, number: int, challenge: Pair, deadline: Deadline
) -> None:
    proof = token.client_proof(number, challenge)
    reply = await link.call(Kind.PROVE, 0, proof.a, proof.b, b"", deadline)
    if reply.kind != Kind.PROVE or reply.code != Code.OK:
        raise SequencerRefused(f"{address} does not use this client's token", hint=_PROOF_HINT)
    if not same(Pair(reply.a, reply.b), token.server_proof(number, challenge)):
        raise SequencerRefused(
            f"{address} asks for a token, but could not prove that it has it",
            hint="Another program listens at this address. Stop it, or correct the"
            " sequencer's address.",
        )


def _check_hello(address: str, reply: Reply) -> None:
    if reply.kind != Kind.HELLO:
        raise SequencerUnavailable(f"{address} is not a zlog sequencer")
    if reply.code in (Code.OK, Code.TOKEN_WANTED):
        return
    if reply.code == Code.BAD_VERSION:
        raise OtherProtocol(
            f"{address} speaks protocol version {reply.a}, which this client does not support",
            hint="Install the same version of zlog on both sides.",
        )
    if reply.code == Code.CERTIFICATE_WANTED:
        raise SequencerRefused(f"{address} requires a client certificate", hint=_CERTIFICATE_HINT)
    if reply.code == Code.LIMIT:
        raise SequencerBusy(f"{address} has too many connections, or too many from this host")
    raise SequencerUnavailable(f"{address} is about to stop")


def connect_error(address: str, error: Exception, deadline: Deadline) -> SequencerUnavailable:
    """Return the exception for a failed attempt to connect.

    It is a SequencerTimeout only if the deadline of the whole call has passed.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return SequencerRefused(
            f"{address} has a certificate that this client does not trust: {error.verify_message}",
            hint=_CA_HINT,
        )
    if deadline.expired:
        return SequencerTimeout(f"{address} did not accept a connection in time")
    reason = reason_of(error) or "no answer in time"
    tls = address.startswith("tls://")
    hint = _TLS_HINT if tls and not isinstance(error, TimeoutError) else None
    failed = NotConnected(f"can't connect to {address}: {reason}", hint=hint)
    failed.refused = isinstance(error, ConnectionRefusedError)
    return failed
