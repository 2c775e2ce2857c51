"""The command reconfigure: another width, other options, while the log is used."""

from __future__ import annotations

import click

from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.parameters import settings_option, stripe_options
from zlog.cli.parameters import unit as unit_of
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.limits import WIDTH_MAX


@click.command(
    cls=Command,
    examples="""
    zlog reconfigure orders --width 16
    zlog reconfigure orders --stripe-bytes 64M --stripe-records 50000
    zlog reconfigure orders --compression zstd     # of what is appended from now on
    zlog reconfigure orders --roll                 # a new stripe, of the same kind
    zlog reconfigure orders --rescue               # where the entries end
    zlog reconfigure orders --option team=billing --unset owner
    """,
)
@log_argument
@click.option(
    "--width",
    type=click.IntRange(1, WIDTH_MAX),
    help="End the live stripe, and spread later positions over this many stripe objects.",
)
@click.option(
    "--unit",
    type=unit_of,
    metavar="N",
    help="The same, with this many positions in a row in one stripe object: a power of two.",
)
@click.option(
    "--roll",
    is_flag=True,
    help="End the live stripe and start the next one, even of the same kind.",
)
@click.option(
    "--rescue",
    is_flag=True,
    help="As --roll; if the tail was moved far away from the log's entries, go on where these end.",
)
@stripe_options
@settings_option("A setting that is stored with the log; may be repeated.")
@click.option("--unset", multiple=True, metavar="KEY", help="Remove a setting; may be repeated.")
@pass_session
def reconfigure(
    session: Session,
    log: str,
    width: int | None,
    unit: int | None,
    roll: bool,
    rescue: bool,
    stripe_bytes: int | None,
    stripe_records: int | None,
    compression: str | None,
    options: dict[str, str],
    unset: tuple[str, ...],
) -> None:
    """Change a log's width, unit or settings while it is in use.

    Appends wait for some milliseconds, and written entries stay where they are. A setting that has
    its new value already is left alone, so the command may be repeated; --roll starts a new stripe
    each time.
    """
    changes = {**options, **dict.fromkeys(unset)}
    given = (width, unit, stripe_bytes, stripe_records, compression)
    if all(each is None for each in given) and not (changes or roll or rescue):
        raise click.UsageError("nothing to change: see `zlog help reconfigure`")
    with session.open_log(log) as opened, usage_errors():
        before = opened.view
        view = opened.reconfigure(
            width=width,
            unit=unit,
            stripe_bytes=stripe_bytes,
            stripe_records=stripe_records,
            compression=compression,
            options=changes,
        )
        if rescue or (roll and view.live_stripe == before.live_stripe):
            view = opened.roll(rescue=rescue)
        if view.epoch == before.epoch:
            stripes = width is not None or unit is not None
            again = "; --roll starts a new stripe all the same" if stripes else ""
            note(f"log {log!r} has these settings already{again}")
        elif view.live_stripe == before.live_stripe:
            note(f"log {log!r}: settings changed")
        else:
            stripe = view.live_stripe
            spread = f"width {stripe.width}, unit {stripe.unit}"
            note(f"log {log!r}: {spread} from position {stripe.start} on")
