"""Write what pages take from elsewhere. Run it when a verb has changed, or peers were measured.

Each verb's usage, help, options and examples stand in cli.md between two marks and come from the
same objects as its `--help`; compare.md has the first of each of the peers' tables in
performance.md. What stands outside of the marks is written by hand and stays.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from zlog.cli.main import command as zlog_command

PAGE = Path(__file__).with_name("cli.md")
COMPARE = PAGE.with_name("compare.md")
PERFORMANCE = PAGE.with_name("performance.md")

_WIDTH = 100
_PEERS = re.compile(
    r"(?P<begin><!-- peers, (?P<group>\w+): begin [^\n]*-->\n)"
    r"(?P<body>.*?)(?=<!-- peers, \w+: end)",
    re.DOTALL,
)
_MARKED = re.compile(r"<!-- begin (?P<name>[a-z -]+) -->\n.*?<!-- end -->", re.DOTALL)


def verbs(
    command: click.Command = zlog_command, name: str = "zlog"
) -> Iterator[tuple[str, click.Command]]:
    """Go through the command and all its verbs, each with the words that call it."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            verb = command.get_command(context, word)
            assert verb is not None
            yield from verbs(verb, f"{name} {word}")


def render(text: str) -> str:
    """Return a page with every marked part written anew.

    Raises:
        KeyError: a mark names no verb.
    """
    known = dict(verbs())
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


def compare(text: str, performance: str) -> str:
    """Return the page that compares, with the peers' tables as the page on performance has them.

    Raises:
        KeyError: that page has no such table.
    """
    bodies = {each["group"]: each["body"] for each in _PEERS.finditer(performance)}
    return _PEERS.sub(lambda mark: mark["begin"] + _short(bodies[mark["group"]]), text)


def _short(body: str) -> str:
    """Return when the tables were measured and the first of them, without rows of zlog alone."""
    found = re.search(r"^measured (\S+) .*; zlog (\w+);", body, re.MULTILINE)
    table = re.search(r"(?:^\|.*\n)+", body, re.MULTILINE)
    assert found is not None
    assert table is not None
    rows = [row for row in table[0].splitlines() if not row.endswith("| – |")]
    return "\n".join(["", *rows, "", f"Measured {found[1]}, zlog at commit {found[2]}.", "", ""])


def main() -> None:
    """Write the pages anew."""
    PAGE.write_text(render(PAGE.read_text()))
    COMPARE.write_text(compare(COMPARE.read_text(), PERFORMANCE.read_text()))


if __name__ == "__main__":
    main()
