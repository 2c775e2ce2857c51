"""The command console: a page in the browser that shows the logs of a store."""

from __future__ import annotations

from pathlib import Path

import click

from zlog import ZlogError
from zlog.admin import how_to_install
from zlog.cli.command import Command
from zlog.cli.parameters import FiniteRange
from zlog.cli.session import Session, pass_session, usage_errors

LISTEN_DEFAULT = "127.0.0.1:7462"

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    cls=Command,
    examples="""
    zlog console
    zlog --store ceph://logs console --allow-changes
    zlog console --listen 0.0.0.0:7462 --token-file token --tls-cert console.pem
    """,
)
@click.option(
    "--listen",
    default=LISTEN_DEFAULT,
    show_default=True,
    metavar="HOST:PORT",
    help="Serve the page there; port 0 takes a free port.",
)
@click.option(
    "--token-file",
    type=_FILE,
    help="Serve only browsers that know the token in this file.  [default: none on loopback, else"
    " one that is made up and printed]",
)
@click.option("--tls-cert", type=_FILE, help="Speak TLS with this certificate (PEM).")
@click.option(
    "--tls-key", type=_FILE, help="Private key of the certificate (PEM).  [default: in its file]"
)
@click.option(
    "--allow-changes",
    is_flag=True,
    help="Let the page append, fill, trim, change layouts and remove cursors.",
)
@click.option(
    "--interval",
    type=FiniteRange(0.1),
    default=2.0,
    metavar="SECONDS",
    show_default=True,
    help="Look at all logs this often, while a browser shows them.",
)
@click.option(
    "--match", default="*", metavar="PATTERN", help="Only logs with such names, as of files."
)
@pass_session
def console(
    session: Session,
    listen: str,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    allow_changes: bool,
    interval: float,
    match: str,
) -> None:
    """Serve a page for the browser that shows the logs.

    All logs at a glance; of one log its positions from all of them down to single entries, a live
    tail, cursors, layouts and an audit; sequencers and the doctor. The page needs nothing from
    elsewhere. Without --allow-changes it can't change a log: the store refuses that. It serves
    until Ctrl-C or SIGTERM.
    """
    try:
        from zlog.cli.commands.console.access import Access
        from zlog.cli.commands.console.server import serve
    except ImportError as error:
        raise ZlogError(
            f"the console needs Starlette and uvicorn ({error})", hint=how_to_install("console")
        ) from error
    with usage_errors():
        access = Access.of(listen, token_file, tls_cert, tls_key, changes=allow_changes)
    with session.connect() as store:
        serve(session, store, access, interval, match)
