"""The interface of a peer: a log that can be emptied, appended to and read, perhaps in a server."""

from __future__ import annotations

import importlib
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.measure import Slice, repeat
from bench.usage import Processes

_START_SECONDS = 60.0

STEP = 1024
"""The number of entries that a reader takes at once."""


class Missing(Exception):
    """A peer can't be measured here. The message says why."""


class Peer(ABC):
    """A running peer.

    Raises:
        Missing: it can't be run here.

    Attributes:
        name: its name in the table.
        how: its version and settings, and how its client is used.
        server: its processes; empty for a library.
        has_queue: whether it has :meth:`queue`.
    """

    name: str
    how: str
    server = Processes(())
    has_queue = False
    _reading: Callable[[], int] | None = None

    @abstractmethod
    def __init__(self, folder: Path, tools: Path, stack: ExitStack) -> None: ...

    @abstractmethod
    def empty(self) -> None:
        """Replace the log by a new one."""

    @abstractmethod
    def append(self, entries: Sequence[bytes]) -> None:
        """Append entries durably."""

    @abstractmethod
    def reader(self) -> Callable[[], int]:
        """Return a function that takes the next entries and returns their number, 0 at the end."""

    def queue(self, entries: Sequence[bytes]) -> Callable[[int], int]:
        """Replace the log by a queue of entries.

        Returns a function that takes up to a number of entries for one of several workers,
        acknowledges them durably, and returns how many there were.
        """
        raise NotImplementedError

    def read(self, seconds: float) -> Slice:
        """Read the log repeatedly, from where the last call stopped."""
        return repeat(self._take, seconds)

    def _take(self) -> int:
        taken = self._reading() if self._reading else 0
        if not taken:
            self._reading = self.reader()
            taken = self._reading()
        return taken


def client(*modules: str) -> tuple[Any, ...]:
    """Import the modules of a client.

    Raises:
        Missing: a module is not installed.
    """
    try:
        return tuple(map(importlib.import_module, modules))
    except ImportError as error:
        raise Missing(f"Python has no {error.name}") from error


def versions(*distributions: str) -> str:
    """Return the names and versions of Python packages."""
    return ", ".join(f"{name} {version(name)}" for name in distributions)


def program(name: str, folder: Path) -> str:
    """Find a program in a folder or in PATH.

    Raises:
        Missing: the program does not exist.
    """
    found = shutil.which(name, path=str(folder)) or shutil.which(name)
    if not found:
        raise Missing(f"{name} is not installed")
    return found


def said(*words: str) -> str:
    """Run a program and return its output.

    Raises:
        Missing: the program fails.
    """
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{Path(words[0]).name} failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def free_port() -> int:
    """Return a port of this machine that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@contextmanager
def server(folder: Path, port: int, *words: str) -> Iterator[Processes]:
    """Run a server during a ``with`` block.

    Raises:
        Missing: the server ended at once.
    """
    log = folder / "said"
    with log.open("wb") as file:
        process = subprocess.Popen(
            words, cwd=folder, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )

    def listens() -> bool:
        if process.poll() is not None:
            raise Missing(f"{Path(words[0]).name} ended: {log.read_text()[-500:].strip()}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    try:
        end = time.monotonic() + _START_SECONDS
        while not listens():
            if time.monotonic() > end:
                raise Missing(f"{Path(words[0]).name} does not listen: {log.read_text()[-500:]}")
            time.sleep(0.02)
        yield Processes((process.pid,))
    finally:
        process.kill()  # the server's data is not kept
        process.wait()
