"""Names of logs, cursors and producers on the command line, which shells can complete."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

import zlog
from zlog.cli.session import Session, pass_session
from zlog.names import check_cursor_name, check_log_name, check_producer_name

F = TypeVar("F", bound=Callable[..., Any])

_COMPLETION_SECONDS = 2.0


class Name(click.ParamType):  # type: ignore[type-arg]  # generic in type stubs only
    """A click type for the names of logs, cursors or producers, with shell completion.

    Args:
        kind: ``log``, ``cursor`` or ``producer``.
        check: a function that returns a valid name, and raises ValueError for an invalid one.
        known: a function that reads from the store the names that the shell can suggest.
    """

    def __init__(
        self,
        kind: str,
        check: Callable[[str], str],
        known: Callable[[Session, click.Context], Iterable[str]],
    ) -> None:
        self.name = kind
        self._check = check
        self.known = known

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        try:
            return self._check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin with a word, or none if the store does not answer soon."""
        session = replace(ctx.ensure_object(Session), timeout=_COMPLETION_SECONDS)
        try:
            names = [*self.known(session, ctx)]
        except (zlog.ZlogError, click.ClickException, OSError):
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _logs(session: Session, _ctx: click.Context) -> list[str]:
    with session.connect() as store:
        return zlog.Log.list(store, timeout=session.timeout)


def _cursors(session: Session, ctx: click.Context) -> list[str]:
    with session.open_log(log_named(ctx)) as log:
        return [cursor.name for cursor in log.cursors()]


def _producers(session: Session, ctx: click.Context) -> list[str]:
    with session.open_log(log_named(ctx)) as log:
        return [producer.name for producer in log.producers()]


def log_named(ctx: click.Context) -> str:
    """Return the log that precedes the completed word, or raise click.UsageError."""
    # After an option that still lacks its value, click does not parse the arguments.
    name = ctx.params.get("log") or next(iter(ctx.args), None)
    if name is None:
        raise click.UsageError("name the log first")
    return str(LOG_NAME.convert(name, None, ctx))


LOG_NAME = Name("log", check_log_name, _logs)
LOG_NAME_UNCHECKED = Name("log", str, _logs)
"""For arguments that need not be names of logs."""

CURSOR_NAME = Name("cursor", check_cursor_name, _cursors)
PRODUCER_NAME = Name("producer", check_producer_name, _producers)


def pass_log(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument LOG, and pass the opened log as ``log``."""

    def with_log(session: Session, /, log: str, **others: Any) -> Any:
        with session.open_log(log) as opened:
            return command(log=opened, **others)

    return log_argument(pass_session(functools.update_wrapper(with_log, command)))


def log_argument(command: F) -> F:
    """Add the argument LOG."""
    return click.argument("log", metavar="LOG", type=LOG_NAME, callback=note_log)(command)


def note_log(ctx: click.Context, _param: click.Parameter, name: str) -> str:
    """Note the command's log for hints."""
    ctx.ensure_object(Session).log = name
    return name
