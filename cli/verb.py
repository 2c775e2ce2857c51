"""What all verbs have in common: examples in their help, and global options in any place."""

from __future__ import annotations

from typing import Any

import click

from zlog.cli.parameters import or_none, seconds
from zlog.cli.session import Session


def _note_global(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Note a global option where it was given, before or behind the verb."""
    session = ctx.ensure_object(Session)
    if value is None or value is False:
        return
    if param.name == "timeout":
        session.timeout = or_none(value)
    elif param.name == "store":
        session.store = value
    else:
        session.debug = True


def global_options(*, hidden: bool) -> list[click.Option]:
    """Return the options that stand before or behind the verb."""
    return [
        click.Option(
            ["--store"],
            metavar="URL",
            help="ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME], file:///PATH or mem://."
            "  [default: $ZLOG_STORE, else a store in your data directory]",
            expose_value=False,
            callback=_note_global,
            hidden=hidden,
        ),
        click.Option(
            ["--timeout"],
            type=seconds,
            metavar="SECONDS",
            help="How long one call may take, or 'never'.  [default: 30]",
            expose_value=False,
            callback=_note_global,
            hidden=hidden,
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            help="Show the traceback of errors.",
            expose_value=False,
            callback=_note_global,
            hidden=hidden,
        ),
    ]


class Verb(click.Command):
    """A verb.

    Args:
        examples: command lines for ``--help``, one per line; ``#`` begins a remark.
        others: click's own.
    """

    def __init__(self, *args: Any, examples: str, **others: Any) -> None:
        super().__init__(*args, **others)
        self.examples = examples
        self.params += global_options(hidden=True)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)


class VerbGroup(click.Group):
    """A verb with verbs of its own, such as ``bench append``."""

    command_class = Verb

    def __init__(self, *args: Any, examples: str, **others: Any) -> None:
        super().__init__(*args, **others)
        self.examples = examples
        self.params += global_options(hidden=True)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)


def write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    """Write command lines as they are, without wrapping them."""
    with formatter.section("Examples"):
        for line in examples.strip().splitlines():
            formatter.write(f"{'':>{formatter.current_indent}}{line.strip()}\n")
