"""Where bytes come from: stdin and files, read as they come."""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import sys
from pathlib import Path
from typing import Any, BinaryIO

import click

_CHUNK_BYTES = 1 << 18

_HEED_SECONDS = 0.5
"""How long a signal may go unheeded: one that comes just before a call that blocks, or to another
thread, does not end that call."""


class BadInput(click.ClickException):
    """A part of the input is no valid entry; those before were appended."""


def load_json(text: str | bytes) -> Any:
    """Return the value that a line of JSON has.

    Raises:
        ValueError: it is not JSON, or has more levels than this program can read.
    """
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
    if sys.stdin is None:  # so Python has it where it was closed from the start
        raise OSError(errno.EBADF, "closed", "stdin")
    return sys.stdin.buffer


def check_readable(path: str) -> None:
    """Raise OSError if there is no such file; one that may give its bytes once is not opened.

    Files are checked ahead of all reading rather than kept open: there may be thousands.
    """
    if not path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if path == "-" or Path(path).is_file():
        Input(path).close()
    elif Path(path).is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    else:
        Path(path).stat()
        if not os.access(path, os.R_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), path)


class Input:
    """A file or stdin, read as it comes.

    Args:
        path: of the file; ``-`` is stdin.
    """

    def __init__(self, path: str) -> None:
        self.name = "stdin" if path == "-" else path
        self._file = _open(path)
        self._poll = select.poll()
        self._descriptor = self._descriptor_or_none()

    def _descriptor_or_none(self) -> int | None:
        try:
            descriptor = self._file.fileno()
        except OSError:  # io.UnsupportedOperation: no file of the system's
            return None
        self._poll.register(descriptor, select.POLLIN)
        return descriptor

    @property
    def is_terminal(self) -> bool:
        """Whether a person types this."""
        return self._file.isatty()

    @property
    def size(self) -> int | None:
        """How many bytes there are to come; None if that is unknown."""
        if self._descriptor is None:
            return None
        found = os.fstat(self._descriptor)
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def ready(self, seconds: float) -> bool:
        """Wait until there is something to read; returns whether there is."""
        if self._descriptor is None:
            return True
        return bool(self._poll.poll(max(0.0, seconds) * 1000))

    def read(self) -> bytes:
        """Return some bytes, as soon as there are any; none at the end."""
        if self._descriptor is None:
            return self._file.read(_CHUNK_BYTES)
        while not self.ready(_HEED_SECONDS):
            pass
        return os.read(self._descriptor, _CHUNK_BYTES)

    def read_all(self, bytes_max: int) -> bytes:
        """Return everything.

        Raises:
            BadInput: it is more than that many bytes.
        """
        parts: list[bytes] = []
        left = bytes_max
        while chunk := self.read():
            parts.append(chunk)
            left -= len(chunk)
            if left < 0:
                raise BadInput(f"{self.name} exceeds --max-bytes ({bytes_max})")
        return b"".join(parts)

    def close(self) -> None:
        """Close the file; stdin stays open."""
        if self.name != "stdin":
            self._file.close()
