"""Write the generated parts of pages. Run it when a command or a metric changed.

Each command's usage, help, options and examples in cli.md come from the same objects as its
`--help`, and the tables of metrics.md from the metrics that Prometheus gets. Text outside the marks
is written by hand and stays as it is.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

import zlog
import zlog.metrics
from zlog.cli.commands.exporter import Exporter
from zlog.cli.main import command as zlog_command
from zlog.cli.watch import Watch
from zlog.seqr.metrics import Lag, metrics_of

PAGE = Path(__file__).with_name("cli.md")
METRICS = PAGE.with_name("metrics.md")

_WIDTH = 100
_MARKED = re.compile(r"<!-- begin (?P<name>[a-z -]+) -->\n.*?<!-- end -->", re.DOTALL)


def commands(
    command: click.Command = zlog_command, name: str = "zlog"
) -> Iterator[tuple[str, click.Command]]:
    """Go through the command and all commands in it, each with the words that call it."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            inner = command.get_command(context, word)
            assert inner is not None
            yield from commands(inner, f"{name} {word}")


def render(text: str) -> str:
    """Return a page with every marked part written anew.

    Raises:
        KeyError: a mark names no command.
    """
    known = dict(commands())
    return _MARKED.sub(lambda mark: _section(mark["name"], known[mark["name"]]), text)


def _section(name: str, command: click.Command) -> str:
    parts = [_usage(name, command), *_help(command), *_options(command), *_examples(command)]
    return "\n\n".join([f"<!-- begin {name} -->", *parts, "<!-- end -->"])


def _usage(name: str, command: click.Command) -> str:
    pieces = command.collect_usage_pieces(click.Context(command))
    return f"    {' '.join([name, *pieces])}"


def _help(command: click.Command) -> Iterator[str]:
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield textwrap.fill(" ".join(paragraph.split()), _WIDTH, break_on_hyphens=False)


def _options(command: click.Command) -> Iterator[str]:
    options = [
        option
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    ]
    if options:
        yield "\n".join(_option(option) for option in options)


def _option(option: click.Option) -> str:
    names = ", ".join(option.opts)
    if not option.is_flag:
        names += f" {option.metavar or option.type.name.upper().split()[0]}"
    text = (option.help or "").replace("\\", "\\\\").replace("  [", " [")
    if option.show_default:
        shown = option.show_default if isinstance(option.show_default, str) else option.default
        text += f" [default: {shown}{_range(option.type)}]"
    return textwrap.fill(
        f"- `{names}`: {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )


def _range(kind: object) -> str:
    if not isinstance(kind, (click.IntRange, click.FloatRange)) or None in (kind.min, kind.max):
        return ""
    return f"; {kind.min} to {kind.max}"


def _examples(command: click.Command) -> Iterator[str]:
    examples = getattr(command, "examples", "")
    if examples:
        yield f"```sh\n{inspect.cleandoc(examples)}\n```"


def metrics() -> dict[str, list[Any]]:
    """Return the families of metrics of a sequencer, of the exporter and of a client."""
    status: dict[str, Any] = {
        "version": "",
        "address": "",
        "closed": {},
        "namespaces": (),
        "logs": (),
    }
    with zlog.connect("mem://") as store:
        exporter = Exporter(Watch(store, "*", 1, 1, None))
    return {
        "sequencer": [*metrics_of(defaultdict[str, Any](int, status)), *Lag().collect()],
        "exporter": [*exporter.collect()],
        "client": [*zlog.metrics._Tallies().collect()],
    }


def tabulate(text: str) -> str:
    """Return the page of metrics with its tables written again.

    Raises:
        KeyError: a mark names no table.
    """
    known = metrics()
    return _MARKED.sub(
        lambda mark: "\n".join(
            [f"<!-- begin {mark['name']} -->", *_rows(known[mark["name"]]), "<!-- end -->"]
        ),
        text,
    )


def _rows(families: Iterable[Any]) -> Iterator[str]:
    yield "| metric | type | labels | meaning |"
    yield "| --- | --- | --- | --- |"
    endings = {"counter": "_total", "info": "_info"}
    for family in families:
        labels = family._labelnames
        if family.type == "info":
            labels = family.samples[0].labels
        name = f"`{family.name}{endings.get(family.type, '')}`"
        yield f"| {name} | {family.type} | {', '.join(labels)} | {family.documentation} |"


def main() -> None:
    """Write the pages."""
    PAGE.write_text(render(PAGE.read_text()))
    METRICS.write_text(tabulate(METRICS.read_text()))


if __name__ == "__main__":
    main()
