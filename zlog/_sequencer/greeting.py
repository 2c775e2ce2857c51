"""How a connection to a sequencer begins: what is checked before anything is asked of it."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from zlog._base.deadline import Deadline
from zlog._base.sequencer import NotConnected, OtherProtocol, parse_address
from zlog._sequencer.frames import PROTOCOL_VERSION, Code, Kind, Reply
from zlog._sequencer.link import Link, LinkLost
from zlog._sequencer.reasons import reason_of
from zlog._sequencer.token import Pair, Token, new_number, same
from zlog.errors import SequencerBusy, SequencerRefused, SequencerTimeout, SequencerUnavailable

CONNECT_SECONDS_MAX = 1.0
"""How long one attempt to connect, and to get through the greeting, may take."""

_REFUSED_SECONDS = 5.0
"""How long a refusal stands before another attempt is made."""

_BUSY_SECONDS = 1.0
"""The same where the sequencer only has no room."""

_PROOF_HINT = (
    "Name the file with the sequencer's token: sequencer_token_file=PATH in the store's URL, or"
    " the variable ZLOG_SEQUENCER_TOKEN_FILE."
)
_CERTIFICATE_HINT = (
    "Name a certificate and its key: sequencer_cert=PATH and sequencer_key=PATH in the store's"
    " URL, or the variables ZLOG_SEQUENCER_CERT and ZLOG_SEQUENCER_KEY."
)
_CA_HINT = (
    "Name who signs the sequencer's certificate: sequencer_ca=PATH in the store's URL, or the"
    " variable ZLOG_SEQUENCER_CA. The certificate must name the host in the address."
)
_TLS_HINT = (
    "If it serves TLS, its address is tls://HOST:PORT; if it wants certificates, this client's may"
    " be one that it does not trust. The sequencer's log says why it closed the connection."
)


class Refusal:
    """The last refusal of one sequencer: for a while it need not be asked again.

    Args:
        clock: tells seconds, and never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._error: SequencerRefused | None = None
        self._until = 0.0

    def note(self, error: SequencerRefused) -> None:
        """Remember that it refused just now, or was refused."""
        self._error = error
        busy = isinstance(error, SequencerBusy)
        self._until = self._clock() + (_BUSY_SECONDS if busy else _REFUSED_SECONDS)

    def check(self) -> None:
        """Raise the refusal again while it stands."""
        if self._error is not None and self._clock() < self._until:
            raise type(self._error)(str(self._error), hint=self._error.hint)


async def greet(link: Link, address: str, token: Token | None, deadline: Deadline) -> None:
    """Say HELLO, and show each other the token where there is one.

    Raises:
        SequencerRefused: one side wants a token or a certificate and the other has none, or a
            wrong one.
        SequencerBusy: it has no room for another connection.
        SequencerUnavailable: it is no sequencer, or about to stop.
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
            raise SequencerRefused(f"{address} wants a token", hint=_PROOF_HINT)
        await _prove(link, address, token, number, Pair(reply.a, reply.b), deadline)
    elif token is not None:
        raise SequencerRefused(
            f"{address} does not ask for the token, so nothing shows that it is the right one",
            hint="Give the sequencer the same token (`zlog seqr --token-file PATH`), or this"
            " client none.",
        )


async def _prove(
    link: Link, address: str, token: Token, number: int, challenge: Pair, deadline: Deadline
) -> None:
    proof = token.client_proof(number, challenge)
    reply = await link.call(Kind.PROVE, 0, proof.a, proof.b, b"", deadline)
    if reply.kind != Kind.PROVE or reply.code != Code.OK:
        raise SequencerRefused(f"{address} has another token than this client", hint=_PROOF_HINT)
    if not same(Pair(reply.a, reply.b), token.server_proof(number, challenge)):
        raise SequencerRefused(
            f"{address} does not know the token that it asks for",
            hint="Something else than the store's sequencer listens there: stop it.",
        )


def _check_hello(address: str, reply: Reply) -> None:
    if reply.kind != Kind.HELLO:
        raise SequencerUnavailable(f"{address} is no zlog sequencer")
    if reply.code in (Code.OK, Code.TOKEN_WANTED):
        return
    if reply.code == Code.BAD_VERSION:
        raise OtherProtocol(
            f"{address} speaks version {reply.a} of the protocol",
            hint="Install the same version of zlog on both sides.",
        )
    if reply.code == Code.CERTIFICATE_WANTED:
        raise SequencerRefused(f"{address} wants a client's certificate", hint=_CERTIFICATE_HINT)
    if reply.code == Code.LIMIT:
        raise SequencerBusy(f"{address} has too many connections, or too many from this host")
    raise SequencerUnavailable(f"{address} is about to stop")


def connect_error(address: str, error: Exception, deadline: Deadline) -> SequencerUnavailable:
    """Return what to raise when an attempt to connect failed, or took too long.

    It is a time-out only if the whole call's time is up; else there is time for another attempt.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return SequencerRefused(
            f"{address} shows a certificate that is not trusted here: {error.verify_message}",
            hint=_CA_HINT,
        )
    if deadline.expired:
        return SequencerTimeout(f"{address} did not accept a connection in time")
    reason = reason_of(error) or "no answer in time"
    hint = _TLS_HINT if _speaks_tls(address) and not isinstance(error, TimeoutError) else None
    refused = isinstance(error, ConnectionRefusedError)
    return NotConnected(f"can't connect to {address}: {reason}", hint=hint, refused=refused)


def _speaks_tls(address: str) -> bool:
    try:
        return parse_address(address).tls
    except ValueError:
        return False
