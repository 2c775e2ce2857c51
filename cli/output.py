"""Where words and data go: data to stdout, byte for byte, and everything else to stderr."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
from types import TracebackType
from typing import BinaryIO

import click

_BUFFER_BYTES = 1 << 16

_MESSAGE_MAX = 1000
"""Characters of a message."""


class OutputClosed(Exception):
    """The reader of stdout is gone; the command ends without a message."""


class OutputFailed(OSError):
    """What stdout leads to takes no more: a full disk, or stdout was closed from the start."""


class Output:
    """Data on its way to stdout, gathered so that a write carries many entries.

    Use it as a context manager: what is left goes out at the end, also when the command failed
    halfway.

    Raises, from every method that writes: OutputClosed when the reader is gone, OutputFailed when
    the file can't take more.
    """

    def __init__(self, stream: BinaryIO | None = None) -> None:
        standard = None if sys.stdout is None else sys.stdout.buffer
        self._stream: BinaryIO | None = stream or standard
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads this as it is written."""
        return self._stream is not None and self._stream.isatty()

    def check(self) -> None:
        """Raise OutputFailed if stdout is closed, before there is anything to print."""
        if self._stream is None:
            raise OutputFailed(errno.EBADF, "closed", "stdout")

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
        """Hand everything over to the reader."""
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if data:
            self.check()
        if self._stream is None:
            return
        try:
            _write(self._stream, data)
        except BrokenPipeError:
            raise OutputClosed from None
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror, "stdout") from error

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or not issubclass(kind, (OutputClosed, OutputFailed)):
            self.flush()


def _write(stream: BinaryIO, data: bytes) -> None:
    """Write all of it, also to a slow reader of what another library has made non-blocking."""
    rest = memoryview(data)
    while True:
        try:
            while rest:
                rest = rest[stream.write(rest) or 0 :]  # unbuffered: a part, or None
                if rest:
                    _wait_for_room(stream)
            stream.flush()
        except BlockingIOError as error:  # buffered; the buffer has the rest of what it took
            rest = rest[error.characters_written :]
            _wait_for_room(stream)
        else:
            return


def _wait_for_room(stream: BinaryIO) -> None:
    room = select.poll()
    room.register(stream, select.POLLOUT)
    room.poll()


def escaped(text: str, *, keep: str = "") -> str:
    r"""Return text in which a character that would not print is shown as ``\x1b``.

    Args:
        text: to print.
        keep: characters that stay as they are.
    """
    return "".join(
        character
        if character.isprintable() or character in keep
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def shortened(message: str) -> str:
    """Return a message that fits a screen, however long the input is that it quotes."""
    half = _MESSAGE_MAX // 2
    return message if len(message) <= _MESSAGE_MAX else f"{message[:half]} … {message[-half:]}"


def say(text: str) -> None:
    """Print a message on stderr. A terminal that was lost takes nothing."""
    printed = escaped(shortened(text), keep="\n\t")
    with contextlib.suppress(OSError):
        click.echo(f"zlog: {printed}", err=True)


def note(text: str) -> None:
    """Tell the user something if stderr is a terminal; scripts need no remarks."""
    if stderr_is_terminal():
        say(text)


def stderr_is_terminal() -> bool:
    """Whether a person reads stderr. Python has none (None) where it was closed from the start."""
    return sys.stderr is not None and sys.stderr.isatty()


def hold_descriptors() -> None:
    """Keep the numbers of closed standard streams from the files that will be opened.

    Else a store's file may get number 2, and what a library writes to stderr goes into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def silence_stdout() -> None:
    """Let Python's own flush at exit go nowhere, after the reader has gone."""
    if sys.stdout is None:
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except OSError:  # also io.UnsupportedOperation: stdout is no file, so nothing will be flushed
        pass
