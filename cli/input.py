"""Input from stdin and files, read as it arrives."""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import click

_CHUNK_BYTES = 1 << 18

_HEED_SECONDS = 0.5
"""How long a signal may go unnoticed. It does not end a blocking call if it arrives just before the
call or in another thread."""


class BadInput(click.ClickException):
    """A part of the input is not a valid entry. Entries before it were appended."""


def too_long(bytes_max: int) -> str:
    """Return why an entry is refused, for messages."""
    return f"exceeds {bytes_max} bytes, the limit of --max-bytes or of the log (`zlog info`)"


def load_json(text: str | bytes) -> Any:
    """Parse a line of JSON. Raises ValueError if it is invalid or nested too deeply."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.pos + 1}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"not JSON: byte {error.start + 1} is not UTF-8") from error
    except RecursionError:
        raise ValueError("not JSON that zlog can read: it has too many levels") from None


def _open(path: str) -> BinaryIO:
    if path != "-":
        return Path(path).open("rb")
    if sys.stdin is None:  # it was closed when Python started
        raise OSError(errno.EBADF, "closed", "stdin")
    return sys.stdin.buffer


def check_readable(path: str) -> None:
    """Raise OSError if a file cannot be read.

    Commands check all their files before they start. They do not keep the files open, since there
    may be more than a process can open. Pipes and devices are not opened, since this could block or
    lose data.
    """
    mode = stat.S_IFREG if path == "-" else os.stat(path).st_mode  # noqa: PTH116  # "" is no path
    if stat.S_ISREG(mode):
        Input(path).close()
    elif stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    elif not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


class Input:
    """A file, or stdin for the path ``-``."""

    def __init__(self, path: str) -> None:
        self.name = "stdin" if path == "-" else path
        self._file = _open(path)
        self._poll = select.poll()
        self._descriptor: int | None = None
        with suppress(OSError):  # io.UnsupportedOperation: it has no descriptor
            self._descriptor = self._file.fileno()
            self._poll.register(self._descriptor, select.POLLIN)

    @property
    def is_terminal(self) -> bool:
        """Whether the input is typed at a terminal."""
        return self._file.isatty()

    @property
    def size(self) -> int | None:
        """The number of bytes, if it is known."""
        if self._descriptor is None:
            return None
        found = os.fstat(self._descriptor)
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def ready(self, seconds: float) -> bool:
        """Wait for input. Returns whether there is any."""
        if self._descriptor is None:
            return True
        return bool(self._poll.poll(max(0.0, seconds) * 1000))

    def read(self) -> bytes:
        """Return bytes as soon as there are any, or none at the end of the input."""
        if self._descriptor is None:
            return self._file.read(_CHUNK_BYTES)
        while not self.ready(_HEED_SECONDS):
            pass
        return os.read(self._descriptor, _CHUNK_BYTES)

    def read_all(self, bytes_max: int) -> bytes:
        """Return everything. Raises BadInput if it exceeds ``bytes_max``."""
        parts: list[bytes] = []
        left = bytes_max
        while chunk := self.read():
            parts.append(chunk)
            left -= len(chunk)
            if left < 0:
                raise BadInput(f"{self.name} {too_long(bytes_max)}")
        return b"".join(parts)

    def close(self) -> None:
        """Close the file; stdin stays open."""
        if self.name != "stdin":
            self._file.close()
