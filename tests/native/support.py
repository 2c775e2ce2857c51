"""Calls of class methods in a line each, and processes that do them."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence

import zlog
from zlog._native import messages
from zlog._native.completions import CompletionQueue
from zlog._native.replies import decode_read
from zlog._native.writes import Request, encode_write, encode_writes
from zlog.store import Store

OBJECT = "object"
FILES = {"data.mdb", "lock.mdb", "reserve", "sequencer"}
"""Of a store that was written to."""

WRITER = b"0123456789abcdef"
SECONDS = 30.0
"""How long anything may take before a test gives up."""


def seal(store: Store, epoch: int = 1) -> None:
    """Make the object, whose stripe has a width of one."""
    code, _ = store.execute(OBJECT, "seal", messages.seal(epoch, 1, 0, True), SECONDS)
    assert code == 0


def write_request(positions: Sequence[int], data: bytes = b"data", epoch: int = 1) -> bytes:
    """Encode a write of the same data at every position."""
    return encode_write(epoch, 1, WRITER, 1, positions, list(positions), [data] * len(positions))


def reply_to(log: zlog.Log, index: int, positions: Sequence[int]) -> bytes:
    """What one object of a log in its first epoch answers to a read."""
    ref = list(log.view.objects())[index]
    request = messages.read(1, False, 1 << 20, ref.striping.packed, positions)
    code, reply = log.store.execute(ref.name, "read", request)
    assert code == 0
    return reply


def requests(entries: Sequence[bytes]) -> Iterator[Request]:
    """Encode writes of one entry each, from position 0 on, in memory that stores share."""
    for position in range(len(entries)):
        ((_, request),) = encode_writes(
            1, 1, WRITER, 1, position, position, entries[position : position + 1]
        )
        yield request


def write(store: Store, positions: Sequence[int], data: bytes = b"data") -> int:
    """Write, and return the code."""
    return store.execute(OBJECT, "write", write_request(positions, data), SECONDS)[0]


def read(store: Store, positions: Sequence[int]) -> list[bytes | None]:
    """Return the entry at every position; None where nothing was written."""
    request = messages.read(1, False, 1 << 25, 1, positions)
    code, reply = store.execute(OBJECT, "read", request, SECONDS)
    assert code == 0
    entries = decode_read(reply, positions, None)
    assert len(entries) == len(positions)
    return [entries.data(i) if entries.state(i) == 0 else None for i in range(len(entries))]


def answers(queue: CompletionQueue, count: int) -> dict[int, tuple[int, bytes]]:
    """Wait for that many results, and return their codes and replies by token."""
    found: dict[int, tuple[int, bytes]] = {}
    while len(found) < count:
        assert queue.wait(SECONDS)
        found.update((token, (code, bytes(reply))) for token, code, reply in queue.drain())
    return found


def interrupt_soon() -> None:
    """Send this process a Ctrl-C while its main thread waits."""
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()


def start(code: str, *arguments: object, launcher: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a Python process with pipes; ``sys.argv`` has the arguments.

    Isolated (-I), so that it imports the installed package and not the working directory.
    """
    python = [*launcher, sys.executable, "-I", "-c"]
    return subprocess.Popen(
        [*python, textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for a process that must succeed, and return its output."""
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    return output


def run(code: str, *arguments: object, launcher: Sequence[str] = ()) -> str:
    """Run a Python process that must succeed, and return its output."""
    return finish(start(code, *arguments, launcher=launcher))
