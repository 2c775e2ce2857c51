"""The command completion: scripts that make shells complete commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from zlog.cli.command import Command
from zlog.cli.output import Output


@click.command(
    cls=Command,
    examples="""
    eval "$(zlog completion bash)"       # in ~/.bashrc
    eval "$(zlog completion zsh)"        # in ~/.zshrc
    zlog completion fish > ~/.config/fish/completions/zlog.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a completion script for a shell.

    The script completes commands, options, and the names of logs, cursors, producers and objects.
    """
    made = get_completion_class(shell)
    assert made is not None  # click knows the three
    with Output() as out:
        out.line(made(ctx.find_root().command, {}, "zlog", "_ZLOG_COMPLETE").source().strip())
