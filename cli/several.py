"""Commands for one log or several: the arguments LOG..., and the options --match and --dry-run."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import click

import zlog
from zlog import LogNotFound, StoreUnavailable, ZlogError
from zlog.cli.exit_codes import ExitCode, Failure, exit_code_of
from zlog.cli.hints import hint_of
from zlog.cli.names import LOG_NAME, Name, note_log
from zlog.cli.output import Output, about, note, say
from zlog.cli.parameters import pattern
from zlog.cli.session import Session, pass_session
from zlog.names import check_log_name

F = TypeVar("F", bound=Callable[..., Any])

_PAGE = 10_000

_PATTERN = re.compile(r"[*?\[,]")

Confirm = Callable[[zlog.Store, Sequence[str]], bool]


def selection_options(
    command: F, dry_run: str = "Only print the names of the logs, one per line."
) -> F:
    """Add the options that select logs, as the parameters ``match`` and ``dry_run``."""
    command = click.option("--dry-run", is_flag=True, help=dry_run)(command)
    return click.option(
        "--match",
        multiple=True,
        type=pattern,
        metavar="PATTERN",
        help="Also include all logs whose name matches this pattern, such as 'orders-*'; may be"
        " repeated.",
    )(command)


def each_log(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments LOG... and the selecting options, and call a command for each log.

    The command gets the session, and the log's name as ``log``. It may return an exit code.
    """

    def with_each(
        session: Session,
        /,
        logs: tuple[str, ...],
        match: tuple[str, ...],
        dry_run: bool,
        **others: Any,
    ) -> int:
        action = functools.partial(command, session, **others)
        return for_each(session, logs, match, action, dry_run=dry_run)

    decorated = selection_options(pass_session(functools.update_wrapper(with_each, command)))
    return click.argument("logs", metavar="LOG...", nargs=-1, type=LOG_NAME)(decorated)


def each_open_log(command: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same as :func:`each_log` for a command that gets only the open log."""

    def with_open(session: Session, /, log: str, **others: Any) -> Any:
        with session.open_log(log) as opened:
            return command(log=opened, **others)

    return each_log(functools.update_wrapper(with_open, command))


def for_each(
    session: Session,
    logs: Sequence[str],
    patterns: Sequence[str],
    action: Callable[..., int | None],
    *,
    dry_run: bool = False,
    confirm: Confirm | None = None,
) -> int:
    """Call ``action(log=NAME)`` for each log that is named or matches a pattern.

    If one log is named, its errors are raised. Otherwise the failure of one log is reported, and
    the others follow, unless the store is unavailable.

    Args:
        confirm: a function that asks the user whether to continue with all the logs.

    Returns:
        the first exit code other than 0.
    """
    if not (logs or patterns):
        raise click.UsageError("Missing argument 'LOG...': name logs, or give --match PATTERN.")
    with session.connect() as store, session.sharing(store):
        names = list(dict.fromkeys((*logs, *_matching(session, store, patterns))))
        if dry_run:
            with Output() as out:
                for name in names:
                    out.line(name)
            return ExitCode.OK
        if confirm is not None and not confirm(store, names):
            return ExitCode.FAILURE
        if not patterns and len(names) == 1:
            session.log = names[0]
            return action(log=names[0]) or ExitCode.OK
        codes = [_one_of_several(name, action, named=name in logs) for name in names]
    failed = [code for code in codes if code]
    (say if failed else note)(f"{len(codes):,} logs, {len(failed):,} failed")
    return next(iter(failed), ExitCode.OK)


def _matching(session: Session, store: zlog.Store, patterns: Sequence[str]) -> Iterator[str]:
    for each in patterns:
        found = [name for name in log_names(session, store) if fnmatchcase(name, each)]
        if not found:
            raise Failure(
                f"no log matches {each!r}", ExitCode.NO_SUCH_LOG, "`zlog ls` lists the logs."
            )
        yield from found


class _Selection(Name):
    """The name of a log, or a selection of logs."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a name or a pattern."""
        if not _PATTERN.search(value):
            return super().convert(value, param, ctx)
        for part in value.split(","):
            pattern(part)
        return value


LOG_SELECTION = _Selection("log", check_log_name, LOG_NAME.known)
"""A log's name, several names with commas, or a pattern."""


def selection_argument(command: F) -> F:
    """Add the argument LOG, which may select several logs."""

    def note(ctx: click.Context, param: click.Parameter, word: str) -> str:
        return word if is_selection(word) else note_log(ctx, param, word)

    return click.argument("log", metavar="LOG", type=LOG_SELECTION, callback=note)(command)


def is_selection(word: str) -> bool:
    """Whether the argument may select several logs."""
    return bool(_PATTERN.search(word))


def selected_names(session: Session, store: zlog.Store, word: str) -> list[str]:
    """Return the logs of a selection. Raises Failure if a pattern matches no log."""
    names = [LOG_NAME(part) for part in word.split(",") if not is_selection(part)]
    patterns = [part for part in word.split(",") if is_selection(part)]
    return list(dict.fromkeys((*names, *_matching(session, store, patterns))))


def open_selected(
    session: Session, store: zlog.Store, stack: ExitStack, word: str, hole_timeout: zlog.Timeout
) -> dict[str, zlog.Log]:
    """Open the logs of a selection, without those that were removed after they were listed."""
    found = {}
    for name in selected_names(session, store, word):
        try:
            opening = session.open_log(name, hole_timeout=hole_timeout)
            found[name] = stack.enter_context(opening)
        except LogNotFound as error:
            if name in word.split(","):
                raise
            report_unfinished_removal(error, name)
    return found


def report_unfinished_removal(error: LogNotFound, name: str) -> None:
    """Report a listed log if its removal is not finished."""
    if error.removing:
        say(f"{error}. {hint_of(error, name)}")


def is_pattern(word: str) -> bool:
    """Whether a selection is one pattern."""
    return is_selection(word) and "," not in word


def log_names(session: Session, store: zlog.Store) -> Iterator[str]:
    """Iterate over the names of a store's logs in order, in pages."""
    after: str | None = ""
    while after is not None:
        page = zlog.Log.list(store, after=after, count=_PAGE, timeout=session.timeout)
        yield from page
        after = page[-1] if len(page) == _PAGE else None


def _one_of_several(name: str, action: Callable[..., int | None], *, named: bool) -> int:
    with about(name):
        try:
            return action(log=name) or ExitCode.OK
        except ZlogError as error:
            if isinstance(error, LogNotFound) and not named:
                report_unfinished_removal(error, name)
                return ExitCode.OK
            code = exit_code_of(error)
            if isinstance(error, StoreUnavailable) and code == ExitCode.UNREACHABLE:
                raise
            say(f"{error}. {hint_of(error, name)}")
            return code
