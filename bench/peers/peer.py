"""What a peer is: a log that can be emptied, appended to and read, and perhaps a server of it."""

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
"""Entries that a reader takes at once."""


class Missing(Exception):
    """A peer can't be measured here; the message says why."""


class Peer(ABC):
    """One peer, running.

    Args:
        folder: where it keeps its logs.
        tools: a folder with servers that PATH has not.
        stack: ends it.

    Raises:
        Missing: it can't be run here.

    Attributes:
        name: what the table calls it.
        how: its version and settings, and how its client is used.
        server: its processes; none where it is a library.
    """

    name: str
    how: str
    server = Processes(())
    _reading: Callable[[], int] | None = None

    @abstractmethod
    def __init__(self, folder: Path, tools: Path, stack: ExitStack) -> None: ...

    @abstractmethod
    def empty(self) -> None:
        """Begin a new log in place of the last one."""

    @abstractmethod
    def append(self, entries: Sequence[bytes]) -> None:
        """Append entries; they are durable when it returns."""

    @abstractmethod
    def reader(self) -> Callable[[], int]:
        """Return what takes the next entries of the log and tells how many, 0 at its end."""

    def read(self, seconds: float) -> Slice:
        """Read the log from its beginning to its end, again and again, on from the last time."""
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
        Missing: it is not installed.
    """
    try:
        return tuple(map(importlib.import_module, modules))
    except ImportError as error:
        raise Missing(f"Python has no {error.name}") from error


def versions(*distributions: str) -> str:
    """Name Python packages with their versions."""
    return ", ".join(f"{name} {version(name)}" for name in distributions)


def program(name: str, folder: Path) -> str:
    """Find a program, in a folder or in PATH.

    Raises:
        Missing: it is not there.
    """
    found = shutil.which(name, path=str(folder)) or shutil.which(name)
    if not found:
        raise Missing(f"{name} is not installed")
    return found


def said(*words: str) -> str:
    """Run a program to its end; returns what it says.

    Raises:
        Missing: it fails.
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
    """Run a server for the length of a ``with`` block.

    Args:
        folder: it works in; what it says is in ``said`` there.
        port: at which it will listen.
        words: its command line.

    Raises:
        Missing: it ended at once.
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
        process.kill()  # what it has stored is not kept
        process.wait()
