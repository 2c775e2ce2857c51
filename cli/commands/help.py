"""The command help: shows what ``--help`` shows."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from zlog.cli.command import Command, Group
from zlog.cli.output import Output


def _find(ctx: click.Context, words: tuple[str, ...]) -> click.Context:
    """Return the context of the command with a path such as ``cursor ls``, or raise UsageError."""
    for word in words:
        group = ctx.command
        if not isinstance(group, Group):
            raise click.UsageError(f"{ctx.command_path!r} has no commands of its own.", ctx)
        name, command, _ = group.resolve_command(ctx, [word])
        assert command is not None
        ctx = click.Context(command, parent=ctx, info_name=name)
    return ctx


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        found = _find(ctx.find_root(), ctx.params["words"])
    except click.UsageError:
        return []
    command = found.command
    return command.shell_complete(found, incomplete) if isinstance(command, Group) else []


@click.command(
    cls=Command,
    examples="""
    zlog help
    zlog help append
    zlog help cursor set
    """,
)
@click.argument("words", metavar="[COMMAND]...", nargs=-1, shell_complete=_complete)
@click.pass_context
def help(ctx: click.Context, words: tuple[str, ...]) -> None:  # noqa: A001  # the command's name
    """Show the help of a command, or list all commands."""
    with Output() as out:
        out.line(_find(ctx.find_root(), words).get_help())
