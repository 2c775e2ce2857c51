"""The classes of commands, with examples in the help and global options in any place."""

from __future__ import annotations

import re
from typing import Any

import click

from zlog.cli.parameters import FILE, call_seconds, or_none
from zlog.cli.session import Session
from zlog.cli.suggestions import suggested_commands, suggested_options
from zlog.limits import TIMEOUT_SECONDS


def _note_global(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store a global option, given before or after the command."""
    session = ctx.ensure_object(Session)
    if value is None or value is False:
        return
    setattr(session, str(param.name), or_none(value) if param.name == "timeout" else value)


def _global(*words: str, **others: Any) -> click.Option:
    return click.Option(words, expose_value=False, callback=_note_global, **others)


def global_options(*, hidden: bool) -> list[click.Option]:
    """Return the options that may come before or after the command."""
    return [
        _global(
            "--store",
            metavar="URL",
            help="ceph://POOL[/NAMESPACE][?conf=PATH&id=NAME], file:///PATH[?mode=ro] or mem://."
            "  [default: $ZLOG_STORE, else a store in your data directory]",
            hidden=hidden,
        ),
        _global(
            "--timeout",
            type=call_seconds,
            metavar="SECONDS",
            help=f"Time limit of each call, or 'never'.  [default: {TIMEOUT_SECONDS:g}]",
            hidden=hidden,
        ),
        _global(
            "--mac-key-file",
            type=FILE,
            metavar="FILE",
            help="File with the key of the log's MACs.  [default: $ZLOG_MAC_KEY_FILE]",
            hidden=hidden,
        ),
        _global(
            "--debug",
            is_flag=True,
            help="Print the traceback of an error, and the call that failed.",
            hidden=hidden,
        ),
    ]


def ceph_options() -> list[click.Option]:
    """Return the options of Ceph's own tools for a store, which precede the command."""
    return [
        _global(
            "-p", "--pool", metavar="POOL", help="Use a store on Ceph: the pool, as for `rados`."
        ),
        _global("-N", "--namespace", metavar="NAMESPACE", help="Namespace in the pool."),
        _global("-c", "--conf", metavar="PATH", help="The cluster's configuration file."),
        _global("-n", "--name", metavar="NAME", help="Ceph user, such as client.app."),
    ]


class Command(click.Command):
    """A click command that also accepts zlog's global options.

    Args:
        examples: command lines for ``--help``, one per line.
    """

    def __init__(self, *args: Any, examples: str, **others: Any) -> None:
        super().__init__(*args, **others)
        self.examples = examples
        self.params += global_options(hidden=True)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and suggest an option for one of another tool."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            word = error.option_name
            if guess := suggested_options(word, self):
                raise click.UsageError(f"No such option {word!r}.{guess}", ctx) from None
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(self.examples, formatter)
        super().format_epilog(ctx, formatter)


class SignedCommand(Command):
    """A command with arguments that may begin with a minus sign, such as the range ``-10:@1h``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a space before such arguments, so that click does not parse them as options."""
        options = [param for param in self.params if isinstance(param, click.Option)]
        valued = {word for option in options if not option.is_flag for word in option.opts}
        shielded = [
            f" {word}" if re.match(r"-\d", word) and before not in valued else word
            for before, word in zip(["", *args], args, strict=False)
        ]
        return super().parse_args(ctx, shielded)


class Group(click.Group):
    """A group that suggests a command if the named one does not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or raise click.UsageError."""
        word = args[0]
        known = word.startswith("-") or ctx.resilient_parsing or self.get_command(ctx, word)
        if not known:
            guess = suggested_commands(word, self.list_commands(ctx))
            raise click.UsageError(f"No such command {word!r}.{guess}", ctx)
        return super().resolve_command(ctx, args)


class CommandGroup(Command, Group):
    """A command with commands of its own, such as ``bench append``."""

    command_class = Command


def write_examples(examples: str, formatter: click.HelpFormatter) -> None:
    """Write command lines without wrapping them."""
    with formatter.section("Examples"):
        for line in examples.strip().splitlines():
            formatter.write(f"{'':>{formatter.current_indent}}{line.strip()}\n")
