"""The command forward: delivers the entries of a spool to their log."""

from __future__ import annotations

import time

import click

from zlog import Spool, StoreTimeout
from zlog.cli.command import Command
from zlog.cli.output import Output, note, say
from zlog.cli.parameters import json_option
from zlog.cli.render import entries_of, to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.signals import terminable
from zlog.cli.template import iso

_POLL_SECONDS = 1.0


@click.command(
    cls=Command,
    examples="""
    zlog forward /var/spool/app
    zlog forward /var/spool/app --follow
    """,
)
@click.argument("directory", metavar="DIR", type=click.Path())
@click.option(
    "-f",
    "--follow",
    "on",
    is_flag=True,
    help="Wait for more entries, and for the log while it is unavailable, until stopped.",
)
@json_option("Print the result as a JSON object.")
@pass_session
def forward(session: Session, directory: str, on: bool, as_json: bool) -> None:
    """Deliver the entries of a spool to their log.

    The spool has recorded the store and the name of the log. If another process delivers already,
    the command waits for it. The command fails, and the entries stay in the spool, if the log
    refuses them or if no entry was delivered within the time limit (--timeout).
    """
    with (
        terminable(),
        Output() as out,
        Spool(directory, always=True, timeout=session.timeout, mac_key=session.mac_key) as spool,
    ):
        try:
            _deliver(spool, session.timeout, on=on)
        finally:
            stat = spool.stat()
            if as_json:
                fields = {**stat._asdict(), "oldest": stat.oldest and iso(stat.oldest)}
                out.line(to_json({"delivered": spool.delivered, **fields}))
            delivered = f"delivered {entries_of(spool.delivered)} to log {stat.log!r}"
            note(f"{delivered}; {entries_of(stat.entries)} in the spool")


def _deliver(spool: Spool, timeout: float | None, *, on: bool) -> None:
    """Deliver all entries, or with ``on`` all later ones too. Raises StoreTimeout if none was."""
    left = spool.stat().entries
    while True:
        try:
            spool.flush(timeout=timeout)
            if not on:
                return
            time.sleep(_POLL_SECONDS)
        except StoreTimeout as error:
            before, left = left, spool.stat().entries
            if not on and left >= before:
                raise
            say(f"{entries_of(left)} in the spool: {error}")
