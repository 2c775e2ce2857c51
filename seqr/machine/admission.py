"""The checks that a connection must pass before it is served.

Until a connection has passed them, the sequencer does no work for it. A connection that does not
pass them within ``hello_s_max`` seconds is closed.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from zlog._sequencer.frames import FRAME, PROTOCOL_VERSION, Code, Kind, RawFrame
from zlog._sequencer.token import Pair, Token, new_challenge, same


class Reason(str, enum.Enum):
    """Why a connection was refused or closed, as STATUS counts it."""

    LIMIT = "limit"
    TLS = "tls"
    CERTIFICATE = "certificate"
    TOKEN = "token"  # noqa: S105  # a word
    MALFORMED = "malformed"
    SILENT = "silent"
    STALLED = "stalled"
    IDLE = "idle"


@dataclass(slots=True)
class Greeting:
    """The state of the checks that a new connection must pass before its first request.

    Attributes:
        certified: whether the client has shown a certificate or does not need one.
        number: the random number in the client's HELLO.
        challenge: the challenge to the client, if it must prove that it knows a token.
    """

    certified: bool = True
    number: int = 0
    challenge: Pair | None = None


class Verdict(NamedTuple):
    """The result of a check: admit the connection, close it for a reason, or wait for a frame."""

    answer: bytes
    admitted: bool = False
    reason: Reason | None = None
    detail: str = ""


class Admission:
    """The rules that decide which connections are served.

    Args:
        tokens: the valid tokens. If there are any, a client must prove that it knows one.
        optional: whether clients that have no token are also admitted.
    """

    def __init__(self, tokens: tuple[Token, ...] = (), *, optional: bool = False) -> None:
        self._tokens = tokens
        self._optional = optional

    def check(self, greeting: Greeting, frame: RawFrame) -> Verdict:
        """Check a frame from a connection that was not admitted yet."""
        if greeting.challenge is not None:
            return self._check_proof(greeting, greeting.challenge, frame)
        kind, code, handle, request, version, number = frame
        if kind != Kind.HELLO or code or handle:
            return Verdict(b"", reason=Reason.MALFORMED, detail="no HELLO")
        if version != PROTOCOL_VERSION:
            answer = _hello(Code.BAD_VERSION, request, Pair(PROTOCOL_VERSION, 0))
            return Verdict(answer, False, Reason.MALFORMED, f"protocol version {version}")
        if not greeting.certified:
            answer = _hello(Code.CERTIFICATE_WANTED, request, Pair(0, 0))
            return Verdict(answer, False, Reason.CERTIFICATE, "no client certificate")
        if self._tokens and (number or not self._optional):
            greeting.number, greeting.challenge = number, new_challenge()
            return Verdict(_hello(Code.TOKEN_WANTED, request, greeting.challenge))
        return Verdict(_hello(Code.OK, request, Pair(PROTOCOL_VERSION, 0)), admitted=True)

    def _check_proof(self, greeting: Greeting, challenge: Pair, frame: RawFrame) -> Verdict:
        kind, _, _, request, a, b = frame
        if kind != Kind.PROVE:
            return Verdict(b"", reason=Reason.TOKEN, detail="no token")
        found = None
        for token in self._tokens:  # all of them, so that the time discloses nothing
            if same(token.client_proof(greeting.number, challenge), Pair(a, b)):
                found = token
        if found is None:
            answer = FRAME.pack(Kind.PROVE, Code.TOKEN_WRONG, 0, request, 0, 0)
            return Verdict(answer, reason=Reason.TOKEN, detail="wrong token")
        proof = found.server_proof(greeting.number, challenge)
        return Verdict(FRAME.pack(Kind.PROVE, Code.OK, 0, request, *proof), admitted=True)


def _hello(code: Code, request: int, pair: Pair) -> bytes:
    return FRAME.pack(Kind.HELLO, code, 0, request, *pair)
