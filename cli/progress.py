"""A progress bar for long work: on stderr, only for a person, and only when it takes a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

import click

from zlog.cli.output import stderr_is_terminal

_DELAY_SECONDS = 1.0


class Progress:
    """Shows how much of the work is done, as a context manager around it.

    Args:
        total: how much there is to do; None if that is unknown so far; then nothing is shown.
        label: what is being done.
        hidden: show nothing, since data goes to the same terminal.
    """

    def __init__(self, total: int | None, label: str, *, hidden: bool = False) -> None:
        self._total = total
        self._label = label
        self._hidden = hidden or not stderr_is_terminal()
        self._due = time.monotonic() + _DELAY_SECONDS
        self._done = 0
        self._bar: Any = None

    def advance(self, count: int) -> None:
        """Note that so much more of the work is done."""
        if self._hidden or not self._total:
            return
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
        elif time.monotonic() >= self._due:
            self._bar = click.progressbar(
                length=self._total, label=self._label, file=sys.stderr, show_pos=True
            )
            self._bar.__enter__()
            self._bar.update(self._done)

    def reach(self, done: int, total: int) -> None:
        """Note how much of the work is done, and how much there is."""
        self._total = total
        self.advance(done - self._done)

    def give_way(self) -> None:
        """Take the bar away for a line of text; it comes back when the work goes on."""
        if self._bar is not None:
            click.echo("\r\x1b[K", err=True, nl=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)
