"""The wire in literal bytes: a conversation with an object of each kind.

Each block of testdata/golden/*.txt is a command, as in a transcript, with the request that it makes
(>) and what is answered to it (<).

These are the format. A change that makes a test of them fail breaks every client and every OSD that
is out there; it needs a new version of the message, not other bytes here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .objects import Store
from .replies import code_name
from .transcript import parse_file

CONVERSATIONS = sorted((Path(__file__).parent / "testdata" / "golden").glob("*.txt"))


@dataclass(frozen=True)
class Exchange:
    """A method, its request, and the answer: the code's name and the reply."""

    method: str
    request: bytes
    code: str
    reply: bytes

    def __str__(self) -> str:
        return f"{self.method}\n> {self.request.hex(' ')}\n< {self.code} {self.reply.hex(' ')}"


class Taped:
    """A store that keeps what has passed last."""

    passed: Exchange

    def __init__(self, store: Store) -> None:
        self._store = store

    def execute(self, object: str, method: str, payload: bytes) -> tuple[int, bytes]:
        """See `Store`."""
        code, reply = self._store.execute(object, method, payload)
        self.passed = Exchange(method, payload, code_name(code), reply)
        return code, reply


def conversation(path: Path) -> list[tuple[str, Exchange | None]]:
    """The commands, and what has to pass; None where nothing does."""
    blocks, _ = parse_file(path.read_text())
    return [(block.command, _expected(block.command, block.expected)) for block in blocks]


def _expected(command: str, lines: list[str]) -> Exchange | None:
    if not lines:
        return None
    sent, _, answered = " ".join(lines).removeprefix(">").partition("<")
    code, _, reply = answered.strip().partition(" ")
    return Exchange(command.split()[0], bytes_of(sent), code, bytes_of(reply))


def exchanges() -> list[Exchange]:
    """All that passes in all conversations."""
    found = [each for path in CONVERSATIONS for _, each in conversation(path)]
    return [each for each in found if each is not None]


def bytes_of(text: str) -> bytes:
    """Hexadecimal with spaces and `# comments` at the ends of lines."""
    return bytes.fromhex(" ".join(line.partition("#")[0] for line in text.splitlines()))
