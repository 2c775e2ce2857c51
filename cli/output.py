"""Where words and data go: data to stdout, byte for byte, and everything else to stderr."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import BinaryIO

import click

_BUFFER_BYTES = 1 << 16


class OutputClosed(Exception):
    """Nobody reads stdout any more; the command ends without a word."""


class Output:
    """Data on its way to stdout, gathered so that a write carries many entries.

    Use it as a context manager: what is left goes out at the end, also when the command failed
    half-way.

    Raises, from every method that writes: OutputClosed when the reader is gone, OSError when the
    file can't take more (a full disk).
    """

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = sys.stdout.buffer if stream is None else stream
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads this as it is written."""
        return self._stream.isatty()

    def write(self, data: bytes) -> None:
        """Put bytes out, as they are."""
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _BUFFER_BYTES:
            self.flush()

    def line(self, text: str) -> None:
        """Put a line of text out."""
        self.write(text.encode("utf-8", "surrogateescape") + b"\n")

    def flush(self) -> None:
        """Hand everything over to whoever reads."""
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        try:
            if data:
                self._stream.write(data)
            self._stream.flush()
        except BrokenPipeError:
            raise OutputClosed from None

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or not issubclass(kind, OutputClosed):
            self.flush()


def say(text: str) -> None:
    """Tell the user something, on stderr."""
    click.echo(f"zlog: {text}", err=True)


def note(text: str) -> None:
    """Tell a person something; scripts, whose stderr is no terminal, are spared it."""
    if sys.stderr.isatty():
        say(text)


def silence_stdout() -> None:
    """Let Python's own flush at exit go nowhere, after the reader has gone."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except OSError:  # also io.UnsupportedOperation: stdout is no file, so nothing will be flushed
        pass
