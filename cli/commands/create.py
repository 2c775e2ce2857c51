"""The command create: creates a log."""

from __future__ import annotations

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.parameters import settings_option, stripe_options
from zlog.cli.parameters import unit as unit_of
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.limits import UNIT_DEFAULT, WIDTH_DEFAULT, WIDTH_MAX


@click.command(
    cls=Command,
    examples="""
    zlog create orders
    zlog --store ceph://logs create orders --width 16
    zlog create orders --compression zstd
    head -c 32 /dev/urandom > key && zlog create orders --mac-key-file key
    """,
)
@log_argument
@click.option(
    "--width",
    type=click.IntRange(1, WIDTH_MAX),
    default=WIDTH_DEFAULT,
    show_default=True,
    help="Stripe objects that positions are spread over. More objects take more writes in parallel"
    " and make range reads costlier.",
)
@click.option(
    "--unit",
    type=unit_of,
    metavar="N",
    help="Positions in a row that lie in one stripe object, a power of two. More of them make"
    f" fewer operations of small batches.  [default: {UNIT_DEFAULT}; 1 without the object class]",
)
@stripe_options
@settings_option("A setting that is stored with the log, for its users; may be repeated.")
@click.option("--exist-ok", is_flag=True, help="Succeed if the log exists.")
@pass_session
def create(
    session: Session,
    log: str,
    width: int,
    unit: int | None,
    stripe_bytes: int | None,
    stripe_records: int | None,
    compression: str | None,
    options: dict[str, str],
    exist_ok: bool,
) -> None:
    """Create a log.

    With --mac-key-file each of its entries gets a MAC of that key, for its whole life.
    """
    with session.connect(create=True) as store, usage_errors():
        try:
            zlog.Log.create(
                store,
                log,
                width=width,
                unit=unit,
                stripe_bytes=stripe_bytes,
                stripe_records=stripe_records,
                compression=compression,
                options=options,
                timeout=session.timeout,
                mac_key=session.mac_key,
            ).close()
        except zlog.LogExists:
            if not exist_ok:
                raise
            if session.mac_key is not None:  # opening compares it with the log's
                zlog.Log.open(store, log, timeout=session.timeout, mac_key=session.mac_key).close()
            note(f"log {log!r} exists in {store.url}")
        else:
            note(f"created log {log!r} in {store.url}")
