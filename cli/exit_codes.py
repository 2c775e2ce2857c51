"""Exit codes, and the exceptions that cause them."""

from __future__ import annotations

import enum

from zlog import (
    AppendRefused,
    ClassNotLoaded,
    Conflict,
    Fenced,
    Invalidated,
    KeyNeeded,
    LogExists,
    LogNotFound,
    MacsMissing,
    NotWritten,
    SequencerUnavailable,
    StoreReadOnly,
    StoreUnavailable,
    WrongKey,
    ZlogError,
)
from zlog.cli.output import say


class ExitCode(enum.IntEnum):
    """The exit codes of commands."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NO_SUCH_LOG = 3
    NO_ENTRY = 4
    LOG_EXISTS = 5
    UNREACHABLE = 6
    CLASS_NOT_LOADED = 7
    APPEND_REFUSED = 8
    KEY_REFUSED = 9
    NOT_HELD = 10
    CONFLICT = 11
    HUNG_UP = 129
    """The code of shells for a process that SIGHUP ended."""
    INTERRUPTED = 130
    """The code of shells for a process that SIGINT (Ctrl-C) ended."""
    OUTPUT_CLOSED = 141
    """The reader of stdout has ended. Shells use this code for SIGPIPE."""
    TERMINATED = 143
    """The code of shells for a process that SIGTERM ended."""


class Failure(ZlogError):
    """A failure of a command with an exit code of its own."""

    def __init__(self, message: str, code: ExitCode, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.code = code


_CODES: tuple[tuple[tuple[type[Exception], ...], ExitCode], ...] = (
    ((LogNotFound,), ExitCode.NO_SUCH_LOG),
    ((NotWritten, Invalidated), ExitCode.NO_ENTRY),
    ((LogExists,), ExitCode.LOG_EXISTS),
    ((AppendRefused, Fenced), ExitCode.APPEND_REFUSED),
    ((Conflict,), ExitCode.CONFLICT),
    ((KeyNeeded, WrongKey, MacsMissing), ExitCode.KEY_REFUSED),
    ((ClassNotLoaded,), ExitCode.CLASS_NOT_LOADED),  # before its base StoreUnavailable
    ((StoreReadOnly, StoreUnavailable, SequencerUnavailable), ExitCode.UNREACHABLE),
)


def exit_code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an exception that ended the command."""
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, Failure):
        return error.code
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), ExitCode.FAILURE)


def exit_code_of_reading(log: str, *, intact: bool) -> ExitCode:
    """Return the exit code of a command that printed a log. Warns if entries are lost."""
    if intact:
        return ExitCode.OK
    say(f"some entries are lost or forged; `zlog check {log}` shows which")
    return ExitCode.FAILURE
