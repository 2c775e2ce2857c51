"""Proves that sequencer and client know the same token, which is a shared secret.

The token is never sent. The client sends a random number with HELLO, and the sequencer answers with
a challenge. The client then sends a proof, and if it is right, the sequencer sends its own. A proof
is the first half of an HMAC-SHA256 with the token as key. It covers the side that sends the proof,
the client's number and the challenge, so it is useless on another connection or for the other side.

The token authenticates both sides, but only TLS protects the rest of the connection.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from pathlib import Path
from typing import NamedTuple

TOKEN_BYTES_MIN = 16
"""The minimum length. A shorter secret could be guessed from an observed handshake."""

TOKEN_FILE_BYTES_MAX = 64 << 10

_CLIENT, _SERVER = b"zlog sequencer 1: client", b"zlog sequencer 1: server"

_PAIR = struct.Struct("<QQ")
_NUMBER = struct.Struct("<Q")


class Pair(NamedTuple):
    """A challenge or a proof: 16 bytes, which are the last two fields of a frame."""

    a: int
    b: int


class Token:
    """A secret. It appears in no repr and no error."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) < TOKEN_BYTES_MIN:
            raise ValueError(
                f"a token must have {TOKEN_BYTES_MIN} bytes or more, not {len(secret)}"
            )
        self._secret = secret

    def __repr__(self) -> str:
        return "Token(…)"

    def __reduce__(self) -> str:
        raise TypeError("a token cannot be copied or pickled")

    def client_proof(self, number: int, challenge: Pair) -> Pair:
        """Return the proof that a client sends."""
        return self._proof(_CLIENT, number, challenge)

    def server_proof(self, number: int, challenge: Pair) -> Pair:
        """Return the proof that a sequencer sends."""
        return self._proof(_SERVER, number, challenge)

    def _proof(self, who: bytes, number: int, challenge: Pair) -> Pair:
        message = who + _NUMBER.pack(number) + _PAIR.pack(*challenge)
        return Pair(*_PAIR.unpack(hmac.digest(self._secret, message, "sha256")[: _PAIR.size]))


def same(one: Pair, other: Pair) -> bool:
    """Compare two proofs in constant time."""
    return hmac.compare_digest(_PAIR.pack(*one), _PAIR.pack(*other))


def new_number() -> int:
    """Return a random number, not zero, that a client uses for one connection."""
    return secrets.randbits(64) or 1


def new_challenge() -> Pair:
    """Return a challenge that a sequencer uses for one connection."""
    return Pair(secrets.randbits(64), secrets.randbits(64))


def read_tokens(path: str) -> tuple[Token, ...]:
    """Read a token file with one token per line. Empty lines and surrounding spaces are ignored.

    A client uses the first token. A sequencer accepts all of them.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has no token, or a token is too short.
    """
    with Path(path).open("rb") as file:
        content = file.read(TOKEN_FILE_BYTES_MAX + 1)
    if len(content) > TOKEN_FILE_BYTES_MAX:
        raise ValueError(f"token file {path} is larger than {TOKEN_FILE_BYTES_MAX >> 10} KiB")
    lines = [line.strip() for line in content.splitlines()]
    if not any(lines):
        raise ValueError(f"token file {path} is empty")
    try:
        return tuple(Token(line) for line in lines if line)
    except ValueError as error:
        raise ValueError(f"token file {path}: {error}") from None
