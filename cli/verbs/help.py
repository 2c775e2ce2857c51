"""The verb help: what ``--help`` shows, for those who ask so."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from zlog.cli.output import Output
from zlog.cli.verb import Verb, Verbs


def _find(ctx: click.Context, words: tuple[str, ...]) -> click.Context:
    """Return the context of a verb, as if the words had called it.

    Raises:
        click.UsageError: there is no such verb.
    """
    for word in words:
        group = ctx.command
        if not isinstance(group, Verbs):
            raise click.UsageError(f"{ctx.command_path!r} has no verbs of its own.", ctx)
        ctx = click.Context(group.find(ctx, word), parent=ctx, info_name=word)
    return ctx


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        found = _find(ctx.find_root(), ctx.params["words"])
    except click.UsageError:
        return []
    verb = found.command
    return verb.shell_complete(found, incomplete) if isinstance(verb, Verbs) else []


@click.command(
    cls=Verb,
    examples="""
    zlog help
    zlog help append
    zlog help cursor set
    """,
)
@click.argument("words", metavar="[VERB]...", nargs=-1, shell_complete=_complete)
@click.pass_context
def help(ctx: click.Context, words: tuple[str, ...]) -> None:  # noqa: A001  # the verb's name
    """Show the help of a verb, or list the verbs."""
    with Output() as out:
        out.line(_find(ctx.find_root(), words).get_help())
