"""How entries and gaps are printed: as bytes, by a format, as JSON lines, or for eyes."""

from __future__ import annotations

import functools
import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import click

from zlog import Entry, Fill, Gap, GapKind, Loss
from zlog.cli.output import Output, escaped, say
from zlog.cli.template import HELP, Template, iso

_UNSAFE = re.compile("[\x80-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters of JSON that may end a line, control a terminal, or have no UTF-8."""


class Renderer(Protocol):
    """Prints what a reader gets."""

    def entry(self, entry: Entry) -> None:
        """Print an entry."""

    def gap(self, gap: Gap) -> None:
        """Show positions that hold no entry."""


def show(items: Renderer, item: Entry | Gap) -> bool:
    """Print an entry or a gap; returns False when it is data that the store has lost."""
    if isinstance(item, Entry):
        items.entry(item)
        return True
    items.gap(item)
    return item.kind not in (GapKind.LOST, GapKind.UNREADABLE, GapKind.FORGED)


def entries_of(count: int) -> str:
    """Return a number of entries in words."""
    return "1 entry" if count == 1 else f"{count:,} entries"


class Bytes:
    """Each entry's bytes and nothing else but what ends each; gaps are told on stderr."""

    def __init__(self, out: Output, render: Callable[[Entry], bytes]) -> None:
        self._out = out
        self._render = render

    def entry(self, entry: Entry) -> None:
        """Print an entry."""
        self._out.write(self._render(entry))

    def gap(self, gap: Gap) -> None:
        """Tell of the gap, after the data before it."""
        self._out.flush()
        say(f"gap: {gap}")


class JsonLines:
    """One object per entry or gap. Data that is not UTF-8 comes as ``data_b64``."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def entry(self, entry: Entry) -> None:
        """Print an entry."""
        fields: dict[str, object] = {
            "position": entry.position,
            "timestamp": iso(entry.timestamp),
        }
        if entry.tags:
            fields["tags"] = sorted(entry.tags)
        try:
            fields["data"] = entry.data.decode()
        except UnicodeDecodeError:
            fields["data_b64"] = b64encode(entry.data).decode()
        self._out.line(to_json(fields))

    def gap(self, gap: Gap) -> None:
        """Print a gap."""
        fields = {"gap": gap.kind.value, "position": gap.position, "end": gap.end}
        self._out.line(to_json({**fields, **gap_details(gap)}))


def gap_details(gap: Gap) -> dict[str, object]:
    """Return what is known of a gap beside its kind, for JSON."""
    detail = gap.detail
    if isinstance(detail, Fill):
        return {"by": detail.by, "at": iso(detail.at), "why": detail.why.value}
    if isinstance(detail, Loss):
        return {"why": detail.why.value, "objects": detail.objects}
    return {}


class Terminal:
    """A line per entry in which nothing can upset the terminal; gaps are dimmed."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def entry(self, entry: Entry) -> None:
        """Print an entry."""
        self._out.line(printable(entry.data))

    def gap(self, gap: Gap) -> None:
        """Print a gap."""
        self._out.line(click.style(f"-- {gap} --", dim=True))


def printable(data: bytes) -> str:
    r"""Return bytes as text of one line or more; what would not print is shown as ``\x1b``."""
    return escaped(data.decode("utf-8", "backslashreplace"), keep="\n\t")


def to_json(fields: Any) -> str:
    """Return JSON on one line."""
    text = json.dumps(fields, ensure_ascii=False, separators=(", ", ": "))
    return text if text.isascii() else _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@dataclass(frozen=True)
class Style:
    """What the user said about how entries are printed.

    Attributes:
        as_json: JSON lines.
        template: by this format.
        null: bytes, each entry followed by NUL.
        raw: bytes and nothing else.
    """

    as_json: bool = False
    template: Template | None = None
    null: bool = False
    raw: bool = False

    def renderer(self, out: Output) -> Renderer:
        """Return what prints so; with nothing said, it depends on who reads."""
        if self.as_json:
            return JsonLines(out)
        if self.template is not None:
            return Bytes(out, self.template.render)
        if self.raw:
            return Bytes(out, lambda entry: entry.data)
        if self.null:
            return Bytes(out, lambda entry: entry.data + b"\0")
        if out.is_terminal:
            return Terminal(out)
        return Bytes(out, lambda entry: entry.data + b"\n")


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


def style_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say how entries are printed, as one argument ``style``."""

    @functools.wraps(command)
    def with_style(
        *args: Any,
        as_json: bool,
        template: Template | None,
        null: bool,
        raw: bool,
        **others: Any,
    ) -> Any:
        if sum((as_json, template is not None, null, raw)) > 1:
            raise click.UsageError("--json, --format, --null and --raw exclude each other")
        return command(*args, style=Style(as_json, template, null, raw), **others)

    options = (
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
    for option in reversed(options):
        with_style = option(with_style)
    return with_style
