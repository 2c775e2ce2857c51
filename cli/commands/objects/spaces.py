"""Spaces of a log and the names of their objects, as the commands of objects take them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from zlog.cli.exit_codes import ExitCode, Failure
from zlog.cli.names import Name, log_named
from zlog.cli.session import Session, usage_errors

if TYPE_CHECKING:
    from zlog.objects import Space

F = TypeVar("F", bound=Callable[..., Any])

SPACE_DEFAULT = "default"

space_option = click.option(
    "--space",
    metavar="NAME",
    default=SPACE_DEFAULT,
    show_default=True,
    help="The space with the objects.",
)


@contextmanager
def open_space(session: Session, log: str, name: str, *, create: bool = False) -> Iterator[Space]:
    """Open a space, and close it at the end of the ``with`` block.

    The space's errors, including those raised in the block, become a Failure with a hint for the
    user. An invalid name raises UsageError.

    Args:
        session: the global options of the command.
        log: the name of the log with the space.
        name: the name of the space.
        create: whether to create the space if it does not exist.
    """
    try:
        from zlog import objects  # not every installation has its requirements
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    try:
        with (
            session.open_log(log) as opened,
            usage_errors(),
            objects.Space.open(opened, name, create=create) as space,
        ):
            yield space
    except objects.SpaceNotFound as error:
        hint = (
            f"`zlog objects put {log} …` creates it. `zlog cursor ls {log}` lists objects.NAME for"
        )
        raise Failure(str(error), ExitCode.NO_SUCH_LOG, f"{hint} each space.") from error
    except objects.UnknownObjectType as error:
        hint = "This command knows only zlog's own types. Use Python with the space's classes."
        raise Failure(str(error), ExitCode.FAILURE, hint) from error
    except objects.WrongType as error:
        hint = f"`zlog objects ls {log}` shows the types."
        raise Failure(str(error), ExitCode.FAILURE, hint) from error
    except objects.PastLost as error:
        hint = error.hint
        if error.resume is not None:
            hint = f"Use --from {error.resume} or a later position."
        raise Failure(str(error), ExitCode.NO_ENTRY, hint) from error
    except objects.OutcomeUnknown as error:
        hint = "Read the object before you repeat the command."
        raise Failure(str(error), ExitCode.UNREACHABLE, hint) from error
    except objects.LockTimeout as error:
        hint = "Give a longer --wait, or omit it to wait without a limit."
        raise Failure(str(error), ExitCode.NOT_HELD, hint) from error
    except objects.LockLost as error:
        hint = "Run the command again. Its place in the queue is lost."
        raise Failure(str(error), ExitCode.NOT_HELD, hint) from error


def _objects(session: Session, ctx: click.Context) -> list[str]:
    with open_space(session, log_named(ctx), ctx.params.get("space") or SPACE_DEFAULT) as space:
        return sorted(space.local.objects())


OBJECT_NAME = Name("object", str, _objects)
