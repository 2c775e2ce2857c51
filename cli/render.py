"""Printing entries and gaps: as bytes, in a format, as JSON lines, or for a terminal."""

from __future__ import annotations

import functools
import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from zlog import Entry, Fill, Gap, GapKind, Loss
from zlog.cli.output import Output, escaped, labelled, say, subject
from zlog.cli.parameters import together
from zlog.cli.template import HELP, Template, iso

_UNSAFE = re.compile("[\x80-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters of JSON that may end a line, control a terminal, or have no UTF-8."""

Renderer = Callable[[Entry | Gap], bool]
"""Prints an item. Returns False if it is data that the store has lost."""


def entries_of(count: int) -> str:
    """Return a number of entries in words."""
    return "1 entry" if count == 1 else f"{count:,} entries"


def entry_fields(entry: Entry) -> dict[str, object]:
    """Return an entry for JSON. Data that is not UTF-8 is ``data_b64``."""
    shown: dict[str, object] = {"position": entry.position, "timestamp": iso(entry.timestamp)}
    if entry.tags:
        shown["tags"] = sorted(entry.tags)
    try:
        shown["data"] = entry.data.decode()
    except UnicodeDecodeError:
        shown["data_b64"] = b64encode(entry.data).decode()
    return shown


def _gap_fields(gap: Gap) -> dict[str, object]:
    where = {"gap": gap.kind.value, "position": gap.position, "end": gap.end}
    return {**where, **gap_details(gap)}


def _with_log(fields: dict[str, object]) -> dict[str, object]:
    return {"log": subject(), **fields} if subject() else fields


def gap_details(gap: Gap) -> dict[str, object]:
    """Return the details of a gap for JSON."""
    detail = gap.detail
    if isinstance(detail, Fill):
        return {"by": detail.by, "at": iso(detail.at), "why": detail.why.value}
    if isinstance(detail, Loss):
        return {"why": detail.why.value, "objects": detail.objects}
    return {}


def printable(data: bytes) -> str:
    r"""Return bytes as text, with unprintable characters as ``\x1b``."""
    return escaped(data.decode("utf-8", "backslashreplace"), keep="\n\t")


def to_json(value: Any, default: Callable[[Any], object] | None = None) -> str:
    """Return JSON on one line. The default converts values that JSON lacks."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=default)
    return text if text.isascii() else _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@dataclass(frozen=True)
class Style:
    """How the user wants entries to be printed.

    Attributes:
        as_json: whether to print JSON lines.
        template: the format of an entry; None if the user gave none.
        null: whether to print a NUL after the bytes of each entry.
        raw: whether to print only the bytes.
    """

    as_json: bool = False
    template: Template | None = None
    null: bool = False
    raw: bool = False

    def renderer(self, out: Output) -> Renderer:
        """Return the function that prints items. By default, it depends on the output."""
        if self.as_json:
            return _renderer(
                lambda entry: out.line(to_json(_with_log(entry_fields(entry)))),
                lambda gap: out.line(to_json(_with_log(_gap_fields(gap)))),
            )
        if not (self.template or self.raw or self.null) and out.is_terminal:
            return _renderer(
                lambda entry: out.line(labelled(printable(entry.data))),
                lambda gap: out.line(click.style(f"-- {labelled(str(gap))} --", dim=True)),
            )
        render: Callable[[Entry], bytes]
        if self.template:
            render = self.template.render
        elif self.raw or self.null:
            end = b"" if self.raw else b"\0"
            render = lambda entry: entry.data + end  # noqa: E731
        else:
            render = lambda entry: labelled("").encode() + entry.data + b"\n"  # noqa: E731

        def report(gap: Gap) -> None:
            out.flush()  # the data before the gap
            say(f"gap: {gap}")

        return _renderer(lambda entry: out.write(render(entry)), report)


def _renderer(entry: Callable[[Entry], None], gap: Callable[[Gap], None]) -> Renderer:
    def show(item: Entry | Gap) -> bool:
        if isinstance(item, Entry):
            entry(item)
            return True
        gap(item)
        return item.kind not in (GapKind.LOST, GapKind.UNREADABLE, GapKind.FORGED)

    return show


def _template(word: str) -> Template:
    try:
        template = Template(word)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if template.constant:
        raise click.BadParameter(
            f"{word!r} has no token, such as %s, and would print every entry as the same text; for"
            " JSON lines, use --json"
        )
    return template


_STYLE_OPTIONS = together(
    click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line."),
    click.option("--format", "template", type=_template, metavar="FORMAT", help=HELP),
    click.option(
        "-z", "--null", is_flag=True, help="Print a NUL after each entry instead of a newline."
    ),
    click.option(
        "-r",
        "--raw",
        is_flag=True,
        help="Print the bytes of the entries, and nothing between them.",
    ),
)


def style_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how entries are printed, as one argument ``style``."""

    @functools.wraps(command)
    def with_style(*args: Any, **others: Any) -> Any:
        given = [others.pop(field.name) for field in fields(Style)]
        if sum(map(bool, given)) > 1:
            raise click.UsageError("--json, --format, --null and --raw cannot be combined")
        return command(*args, style=Style(*given), **others)

    return _STYLE_OPTIONS(with_style)
