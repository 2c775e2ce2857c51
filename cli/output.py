"""Output: data goes to stdout, byte for byte, and messages go to stderr."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
from collections.abc import Iterator
from typing import BinaryIO

import click

_BUFFER_BYTES = 1 << 16

_MESSAGE_MAX = 1000
"""Limit of the characters of a message."""


class OutputClosed(Exception):
    """The reader of stdout has ended. The command then ends without a message."""


class OutputFailed(OSError):
    """Stdout cannot be written, because its disk is full or it was closed from the start."""


class Output:
    """Writes to stdout through a buffer, which is flushed at the end of the ``with`` block.

    Methods raise OutputClosed if the reader of stdout is gone, and OutputFailed for other errors.
    """

    def __init__(self, stream: BinaryIO | None = None) -> None:
        standard = None if sys.stdout is None else sys.stdout.buffer
        self._stream: BinaryIO | None = stream or standard
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_terminal(self) -> bool:
        """Whether a terminal shows the data."""
        return self._stream is not None and self._stream.isatty()

    def check(self) -> None:
        """Raise OutputFailed if stdout is closed, before there is anything to print."""
        if self._stream is None:
            raise OutputFailed(errno.EBADF, "closed", "stdout")

    def write(self, data: bytes) -> None:
        """Write bytes."""
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _BUFFER_BYTES:
            self.flush()

    def line(self, text: str) -> None:
        """Write a line of text."""
        self.write(text.encode("utf-8", "surrogateescape") + b"\n")

    def flush(self) -> None:
        """Write the buffer to stdout."""
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not issubclass(kind, (OutputClosed, OutputFailed)):
            self.flush()


def _write(stream: BinaryIO, data: bytes) -> None:
    """Write all data, even if another library has made the stream non-blocking."""
    rest = memoryview(data)
    while True:
        try:
            while rest:
                rest = rest[stream.write(rest) or 0 :]  # unbuffered: a part, or None
                if rest:
                    _wait_until_writable(stream)
            stream.flush()
        except BlockingIOError as error:  # buffered; the buffer has the rest of its bytes
            rest = rest[error.characters_written :]
            _wait_until_writable(stream)
        else:
            return


def _wait_until_writable(stream: BinaryIO) -> None:
    poll = select.poll()
    poll.register(stream, select.POLLOUT)
    poll.poll()


def escaped(text: str, *, keep: str = "") -> str:
    r"""Return the text with its unprintable characters escaped, as in ``\x1b``.

    Args:
        keep: unprintable characters that are left as they are.
    """
    return "".join(
        character
        if character.isprintable() or character in keep
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def shortened(message: str) -> str:
    """Return a message that fits a screen, even if it quotes long input."""
    half = _MESSAGE_MAX // 2
    return message if len(message) <= _MESSAGE_MAX else f"{message[:half]} … {message[-half:]}"


_subject = ""


@contextlib.contextmanager
def about(log: str) -> Iterator[None]:
    """Let the messages in a ``with`` block begin with a log's name."""
    global _subject
    _subject = log
    try:
        yield
    finally:
        _subject = ""


def subject() -> str:
    """Return the log's name in a ``with`` block of :func:`about`, or an empty text."""
    return _subject


def labelled(text: str) -> str:
    """Return a line, which begins with the log's name in a ``with`` block of :func:`about`."""
    return f"{_subject}: {text}" if _subject else text


def say(text: str) -> None:
    """Print a message on stderr, unless its terminal was lost."""
    printed = labelled(escaped(shortened(text), keep="\n\t"))
    with contextlib.suppress(OSError):
        click.echo(f"zlog: {printed}", err=True)


def note(text: str) -> None:
    """Print a message on stderr if it is a terminal, since scripts do not need it."""
    if stderr_is_terminal():
        say(text)


def stderr_is_terminal() -> bool:
    """Whether stderr is a terminal. It is None if it was closed from the start."""
    return sys.stderr is not None and sys.stderr.isatty()


def hold_descriptors() -> None:
    """Open /dev/null as each standard stream that is closed.

    Otherwise the next file that is opened, such as a store's, could become file descriptor 2, and a
    library would write its error messages into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one


def silence_stdout() -> None:
    """Redirect Python's own flush at exit to nowhere, after the reader has ended."""
    if sys.stdout is None:
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except OSError:  # also io.UnsupportedOperation: stdout is not a file
        pass
