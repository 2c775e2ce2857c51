"""A progress bar on stderr, for long work and only on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from zlog.cli.output import stderr_is_terminal

_DELAY_SECONDS = 1.0


class Progress:
    """A context manager that shows a progress bar if its block takes longer than a second.

    Args:
        total: the amount of work; None if it is not known yet, in which case no bar is shown.
        hidden: whether to show no bar, because the command prints data on the same terminal.
    """

    def __init__(self, total: int | None, label: str, *, hidden: bool = False) -> None:
        self._total = total
        self._label = label
        self._hidden = hidden or not stderr_is_terminal()
        self._due = time.monotonic() + _DELAY_SECONDS
        self._done = 0
        self._bar: Any = None

    def advance(self, count: int) -> None:
        """Note progress."""
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
        """Note the total progress and the amount of work."""
        self._total = total
        self.advance(done - self._done)

    def give_way(self) -> None:
        """Clear the bar for a line of text. The next progress shows it again."""
        if self._bar is not None:
            click.echo("\r\x1b[K", err=True, nl=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*error)
