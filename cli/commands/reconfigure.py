"""The command reconfigure: changes a log's layout and settings while it is in use."""

from __future__ import annotations

from typing import Any

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.output import note
from zlog.cli.parameters import settings_option, stripe_options, stripe_unit_option, width_option
from zlog.cli.session import Session, usage_errors
from zlog.cli.several import each_log


@click.command(
    cls=Command,
    examples="""
    zlog reconfigure orders --width 16
    zlog reconfigure orders --stripe-bytes 64M --stripe-records 50000
    zlog reconfigure orders --compression zstd     # for new entries
    zlog reconfigure orders --ordering object      # no sequencer, and width 1
    zlog reconfigure orders --roll                 # a new stripe of the same width
    zlog reconfigure orders --rescue               # a new stripe where the entries end
    zlog reconfigure --match 'web-*' --compression zstd
    zlog reconfigure orders --option team=billing --unset owner
    """,
)
@each_log
@width_option("End the live stripe, and spread later positions over this many stripe objects.")
@stripe_unit_option(
    "End the live stripe, and store N consecutive positions (a power of two) per object."
)
@click.option("--roll", is_flag=True, help="End the live stripe and start a new one.")
@click.option(
    "--rescue",
    is_flag=True,
    help="Like --roll. If the tail is far above the log's entries, start the new stripe where the"
    " entries end.",
)
@stripe_options
@settings_option
@click.option("--unset", multiple=True, metavar="KEY", help="Remove a setting; may be repeated.")
def reconfigure(
    session: Session,
    /,
    log: str,
    roll: bool,
    rescue: bool,
    options: dict[str, str],
    unset: tuple[str, ...],
    hole_timeout: zlog.Timeout,
    **changes: Any,
) -> None:
    """Change a log's ordering, striping or settings while it is in use.

    The change delays appends by a few milliseconds, and existing entries stay where they are.
    Repeating the command has no further effect, except that --roll starts a new stripe each time.
    """
    stored = {**options, **dict.fromkeys(unset)}
    changed = hole_timeout is not ... or any(each is not None for each in changes.values())
    if not (changed or stored or roll or rescue):
        raise click.UsageError("nothing to change: see `zlog help reconfigure`")
    with session.open_log(log) as opened, usage_errors():
        before = opened.view
        view = opened.reconfigure(options=stored, hole_timeout=hole_timeout, **changes)
        if rescue or (roll and view.live_stripe == before.live_stripe):
            view = opened.roll(rescue=rescue)
        if view.epoch == before.epoch:
            asked = (changes[name] for name in ("width", "stripe_unit", "ordering"))
            stripes = any(each is not None for each in asked)
            again = "; --roll starts a new stripe anyway" if stripes else ""
            note(f"it has these settings already{again}")
        elif view.live_stripe == before.live_stripe:
            note("settings changed")
        else:
            stripe = view.live_stripe
            spread = f"width {stripe.width}, stripe unit {stripe.stripe_unit}"
            if view.ordered != before.ordered:
                by = "its object" if view.ordered else "a sequencer"
                spread = f"ordered by {by}, {spread}"
            note(f"{spread} from position {stripe.start} on")
