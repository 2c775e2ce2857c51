"""The command create: creates a log."""

from __future__ import annotations

from typing import Any

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.parameters import settings_option, stripe_options, stripe_unit_option, width_option
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.limits import STRIPE_UNIT_DEFAULT, WIDTH_DEFAULT


@click.command(
    cls=Command,
    examples="""
    zlog create orders
    zlog --store ceph://logs create orders --width 16
    zlog create orders --compression zstd
    zlog create orders --ordering object           # conditional appends in one round trip
    head -c 32 /dev/urandom > key && zlog create orders --mac-key-file key
    """,
)
@log_argument
@width_option(
    "Spread positions over this many stripe objects. More objects take more writes in parallel and"
    f" make range reads slower.  [default: {WIDTH_DEFAULT}]"
)
@stripe_unit_option(
    "Store N consecutive positions, a power of two, in one stripe object before the next object's"
    " turn. A larger stripe unit makes small batches take fewer operations."
    f"  [default: {STRIPE_UNIT_DEFAULT}; 1 without the object class]"
)
@stripe_options
@settings_option
@click.option("--exist-ok", is_flag=True, help="Succeed if the log already exists.")
@pass_session
def create(session: Session, /, log: str, exist_ok: bool, **options: Any) -> None:
    """Create a log.

    If a template matches the log's name (`zlog template`), it provides the settings that you do not
    give. With --mac-key-file, each entry gets a MAC made with this key. You cannot change this
    later.
    """
    with session.connect(create=True) as store, usage_errors():
        try:
            zlog.Log.create(
                store, log, **options, timeout=session.timeout, mac_key=session.mac_key
            ).close()
        except zlog.LogExists:
            if not exist_ok:
                raise
            if session.mac_key is not None:  # opening compares it with the log's
                zlog.Log.open(store, log, timeout=session.timeout, mac_key=session.mac_key).close()
            note(f"log {log!r} already exists in {store.url}")
        else:
            note(f"created log {log!r} in {store.url}")
