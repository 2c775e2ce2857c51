"""Write the generated parts of cli.md. Run it after a change of a command.

The usage, help, options and examples of each command are between two marks in cli.md, and come from
the same objects as its `--help`. Text outside the marks is written by hand and stays as it is.
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

_WIDTH = 100
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


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(PAGE.read_text()))


if __name__ == "__main__":
    main()
