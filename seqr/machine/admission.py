"""Who is let in: what the sequencer says to a connection before it serves it.

Nothing is opened, looked up or allocated for a stranger beyond its connection, and that ends after
``hello_s_max``.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from zlog._sequencer.frames import FRAME, PROTOCOL_VERSION, Code, Kind, RawFrame
from zlog._sequencer.token import Pair, Token, new_challenge, same


class Reason(str, enum.Enum):
    """Why a connection was refused or closed, in one word, as STATUS counts it."""

    LIMIT = "limit"
    TLS = "tls"
    CERTIFICATE = "certificate"
    TOKEN = "token"  # noqa: S105  # a word
    MALFORMED = "malformed"
    SILENT = "silent"
    STALLED = "stalled"
    IDLE = "idle"


class Greeting:
    """How far one connection has come.

    Life: new → challenged, if it has to show a token → over.

    Args:
        certified: whether it has shown a certificate, or need not.
    """

    __slots__ = ("certified", "challenge", "number")

    def __init__(self, *, certified: bool = True) -> None:
        self.certified = certified
        self.number = 0
        self.challenge: Pair | None = None


class Verdict(NamedTuple):
    """What follows from a frame: it may be let in, be sent away for a reason, or have to go on."""

    answer: bytes
    admitted: bool = False
    reason: Reason | None = None
    detail: str = ""


class Admission:
    """The rules for all connections.

    Args:
        tokens: of which a client must show that it knows one; without any, no client is asked.
        optional: also let in those who say that they have none.
    """

    def __init__(self, tokens: tuple[Token, ...] = (), *, optional: bool = False) -> None:
        self._tokens = tokens
        self._optional = optional

    def hear(self, greeting: Greeting, frame: RawFrame) -> Verdict:
        """Judge a frame from a connection that has not been let in."""
        if greeting.challenge is not None:
            return self._hear_proof(greeting, greeting.challenge, frame)
        kind, code, handle, request, version, number = frame
        if kind != Kind.HELLO or code or handle:
            return Verdict(b"", reason=Reason.MALFORMED, detail="no HELLO")
        if version != PROTOCOL_VERSION:
            return Verdict(
                _hello(Code.BAD_VERSION, request, Pair(PROTOCOL_VERSION, 0)),
                reason=Reason.MALFORMED,
                detail=f"protocol version {version}",
            )
        if not greeting.certified:
            return Verdict(
                _hello(Code.CERTIFICATE_WANTED, request, Pair(0, 0)),
                reason=Reason.CERTIFICATE,
                detail="no client's certificate",
            )
        if self._tokens and (number or not self._optional):
            greeting.number, greeting.challenge = number, new_challenge()
            return Verdict(_hello(Code.TOKEN_WANTED, request, greeting.challenge))
        return Verdict(_hello(Code.OK, request, Pair(PROTOCOL_VERSION, 0)), admitted=True)

    def _hear_proof(self, greeting: Greeting, challenge: Pair, frame: RawFrame) -> Verdict:
        kind, _, _, request, a, b = frame
        if kind != Kind.PROVE:
            return Verdict(b"", reason=Reason.TOKEN, detail="no token")
        found = None
        for token in self._tokens:  # all of them, so that the time tells nothing
            if same(token.client_proof(greeting.number, challenge), Pair(a, b)):
                found = token
        if found is None:
            answer = FRAME.pack(Kind.PROVE, Code.TOKEN_WRONG, 0, request, 0, 0)
            return Verdict(answer, reason=Reason.TOKEN, detail="a wrong token")
        proof = found.server_proof(greeting.number, challenge)
        return Verdict(FRAME.pack(Kind.PROVE, Code.OK, 0, request, *proof), admitted=True)


def _hello(code: Code, request: int, pair: Pair) -> bytes:
    return FRAME.pack(Kind.HELLO, code, 0, request, *pair)
