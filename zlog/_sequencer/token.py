"""The shared secret of sequencers and their clients, and how each shows that it knows it.

The secret never travels. Who connects sends a number of its own with HELLO; the sequencer answers
with a challenge that it uses once; then the client sends a proof, and the sequencer, if that is
right, one of its own. A proof is the first half of HMAC-SHA256, keyed with the secret, over who
gives it, the client's number and the challenge; so it is of no use on another connection, and
neither side's can be sent back to it as the other's.

This keeps strangers out. It does not protect what follows on the connection: TLS does that.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from pathlib import Path
from typing import NamedTuple

TOKEN_BYTES_MIN = 16
"""An eavesdropper on a handshake can try out secrets at leisure: a short one would be found."""

TOKEN_FILE_BYTES_MAX = 64 << 10

_CLIENT, _SERVER = b"zlog sequencer 1: client", b"zlog sequencer 1: server"

_PAIR = struct.Struct("<QQ")
_NUMBER = struct.Struct("<Q")


class Pair(NamedTuple):
    """16 bytes as the last two fields of a frame: a challenge or a proof."""

    a: int
    b: int


class Token:
    """One secret. It shows itself nowhere: not in a repr, not in an error."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) < TOKEN_BYTES_MIN:
            raise ValueError(f"a token has {TOKEN_BYTES_MIN} bytes or more, not {len(secret)}")
        self._secret = secret

    def __repr__(self) -> str:
        return "Token(…)"

    def __reduce__(self) -> str:
        raise TypeError("a token is not copied or pickled")

    def client_proof(self, number: int, challenge: Pair) -> Pair:
        """Return what a client answers to a challenge."""
        return self._proof(_CLIENT, number, challenge)

    def server_proof(self, number: int, challenge: Pair) -> Pair:
        """Return what a sequencer answers to a client's right proof."""
        return self._proof(_SERVER, number, challenge)

    def _proof(self, who: bytes, number: int, challenge: Pair) -> Pair:
        message = who + _NUMBER.pack(number) + _PAIR.pack(*challenge)
        return Pair(*_PAIR.unpack(hmac.digest(self._secret, message, "sha256")[: _PAIR.size]))


def same(one: Pair, other: Pair) -> bool:
    """Compare two proofs in a time that tells nothing about them."""
    return hmac.compare_digest(_PAIR.pack(*one), _PAIR.pack(*other))


def new_number() -> int:
    """Return a client's own number for one connection: random, and not zero."""
    return secrets.randbits(64) or 1


def new_challenge() -> Pair:
    """Return a sequencer's challenge for one connection."""
    return Pair(secrets.randbits(64), secrets.randbits(64))


def read_tokens(path: str) -> tuple[Token, ...]:
    """Read a token file: a token on each line, blanks around it and empty lines left out.

    A client uses the first one. A sequencer takes any of them.

    Raises:
        OSError: reading it fails.
        ValueError: there is none in it, or one that is too short.
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
