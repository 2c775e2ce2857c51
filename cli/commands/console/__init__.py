"""The command console: a page in the browser that shows the logs of a store."""

from __future__ import annotations

import click

from zlog import ZlogError
from zlog.admin import how_to_install
from zlog.cli.command import Command
from zlog.cli.parameters import (
    FILE,
    interval_option,
    listen_option,
    match_option,
    tls_options,
)
from zlog.cli.session import Session, pass_session, usage_errors

LISTEN_DEFAULT = "127.0.0.1:7462"


@click.command(
    cls=Command,
    examples="""
    zlog console
    zlog --store ceph://logs console --allow-changes
    zlog console --listen 0.0.0.0:7462 --token-file token --tls-cert console.pem
    """,
)
@listen_option(LISTEN_DEFAULT, "Serve the page at this address.")
@click.option(
    "--token-file",
    type=FILE,
    help="Accept only browsers that send the token in this file.  [default: no token on loopback,"
    " else a random token, which is printed]",
)
@tls_options
@click.option(
    "--allow-changes",
    is_flag=True,
    help="Allow the page to append, fill, trim, change layouts and remove cursors.",
)
@interval_option(2.0, "While a browser shows the logs, update them this often.")
@match_option
@pass_session
def console(
    session: Session,
    listen: str,
    token_file: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    allow_changes: bool,
    interval: float,
    match: str,
) -> None:
    """Serve a web page that shows the logs.

    The page lists all logs. For each log, it shows the entries, positions, cursors and layouts,
    follows the tail, and can run an audit. It also shows the sequencers and the doctor's report.
    The page loads nothing from other servers. The console is read-only unless you start it with
    --allow-changes. It runs until Ctrl-C or SIGTERM.
    """
    try:
        from zlog.cli.commands.console.access import Access
        from zlog.cli.commands.console.server import serve
    except ImportError as error:
        raise ZlogError(
            f"the console needs the packages starlette and uvicorn ({error})",
            hint=how_to_install("console"),
        ) from error
    with usage_errors():
        access = Access.of(listen, token_file, tls_cert, tls_key, changes=allow_changes)
    with session.connect() as store:
        serve(session, store, access, interval, match)
