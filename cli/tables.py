"""Columns, and bold text on terminals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

from zlog.cli.output import Output, escaped
from zlog.cli.render import to_json


def bold(out: Output, text: str) -> str:
    """Return text in bold if a terminal shows it."""
    return click.style(text, bold=True) if out.is_terminal else text


def details(out: Output, rows: Iterable[tuple[str, str]]) -> None:
    """Print a line for each row: its label in bold, and its value."""
    shown = [*rows]
    width = max(len(label) for label, _ in shown)
    for label, value in shown:
        out.line(f"{bold(out, label.ljust(width))}  {escaped(value)}")


def table(
    out: Output,
    head: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    *,
    head_always: bool = False,
) -> None:
    """Print columns, under a head on a terminal or if ``head_always``."""
    with_head = out.is_terminal or head_always
    cells_of = (tuple(escaped(cell) for cell in row) for row in rows)
    shown = [head, *cells_of] if with_head else [*cells_of]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)] if shown else []
    for index, row in enumerate(shown):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        line = "  ".join(cells).rstrip()
        out.line(bold(out, line) if index == 0 and with_head else line)


def print_rows(
    rows: Iterable[Mapping[str, object]], head: Mapping[str, str], *, as_json: bool
) -> None:
    """Print rows, either as JSON objects with all fields, or as a table of the fields in ``head``.

    Args:
        rows: the rows; each maps the names of its fields to their values.
        head: maps the name of each shown field to the title of its column.
        as_json: whether to print JSON.
    """
    with Output() as out:
        if as_json:
            for row in rows:
                out.line(to_json(row))
            return
        cells = (tuple("-" if row[key] is None else str(row[key]) for key in head) for row in rows)
        table(out, tuple(head.values()), cells)
