"""The command seqr: runs a sequencer, shows its status, or forgets it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import click

from zlog import SequencerUnavailable
from zlog.admin import Credentials, announced_sequencer, forget_sequencer, sequencer_status
from zlog.cli.command import CommandGroup
from zlog.cli.output import Output, note
from zlog.cli.parameters import (
    FILE,
    json_option,
    listen_option,
    number_option,
    seconds_option,
    tls_options,
)
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.tables import details, table
from zlog.cli.units import human_bytes, size
from zlog.seqr import service
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT, LEASE_SECONDS_MAX, LEASE_SECONDS_MIN
from zlog.seqr.limits import Limits
from zlog.seqr.security import Security

_LABELS = (
    "address",
    "role",
    "version",
    "uptime_s",
    "connections",
    "outstanding",
    "grants",
    "grants_per_second",
)
_LIMITS = Limits()


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    examples="""
    zlog --store ceph://logs seqr
    zlog --store ceph://logs seqr --listen 0.0.0.0:7460 --advertise seq1.example.com:7460
    zlog --store ceph://logs seqr --tls-cert seq1.pem --token-file /etc/zlog/token
    zlog seqr status 127.0.0.1:7460
    zlog seqr forget 127.0.0.1:7460
    """,
)
@listen_option(service.LISTEN_DEFAULT, "Listen on this address.")
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    help="Address that clients connect to.  [default: the address of --listen]",
)
@click.option(
    "--also",
    multiple=True,
    metavar="POOL[/NAMESPACE]",
    help="Serve another pool or namespace of the cluster too; may be repeated.",
)
@seconds_option(
    "--lease",
    LEASE_SECONDS_DEFAULT,
    LEASE_SECONDS_MIN,
    LEASE_SECONDS_MAX,
    "Wait this long for a leader that does not answer, then elect another one.",
)
@tls_options
@click.option(
    "--tls-client-ca",
    type=FILE,
    help="Accept only clients whose certificate is signed by one of these (PEM).",
)
@click.option(
    "--token-file",
    type=FILE,
    help="Accept only clients that have one of the tokens in this file, one per line."
    "  [default: sequencer_token_file in the store's URL, else $ZLOG_SEQUENCER_TOKEN_FILE]",
)
@click.option(
    "--token-optional",
    is_flag=True,
    help="Accept clients without a token too, while you distribute tokens.",
)
@number_option(
    "--connections", _LIMITS.connections_max, 1, 65536, "Limit of simultaneous connections."
)
@number_option(
    "--connections-per-address",
    _LIMITS.connections_per_address_max,
    1,
    65536,
    "Limit of simultaneous connections from one IP address.",
)
@seconds_option(
    "--idle",
    _LIMITS.idle_s_max,
    1,
    30 * 86400,
    "Close a connection that has been idle for this long.",
)
@click.option(
    "--scrub",
    type=size,
    default=_LIMITS.scrub_bytes_s_max,
    metavar="SIZE",
    help="Amount of data per second that a leader audits in the background. 0 disables the audit."
    "  [default: 4M]",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve metrics for Prometheus at this address, without authentication.",
)
@click.pass_context
def seqr(
    ctx: click.Context,
    listen: str,
    advertise: str | None,
    also: tuple[str, ...],
    lease: float,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    token_file: str | None,
    token_optional: bool,
    connections: int,
    connections_per_address: int,
    idle: float,
    scrub: int,
    metrics: str | None,
) -> None:
    """Run a sequencer, show its status, or forget it.

    A sequencer grants positions to writers, which makes appends faster. Clients find it through the
    store. It keeps nothing on disk, so you can stop and start it at any time. It runs until SIGTERM
    or Ctrl-C. An embedded store does not need a sequencer.

    A pool can have several sequencers. One of them leads, and if it fails, another takes over.
    """
    if ctx.invoked_subcommand is not None:
        return
    session = ctx.ensure_object(Session)
    _check_needs_one(session.url)
    try:
        service.run(
            listen,
            advertise,
            session.url,
            limits=replace(
                _LIMITS,
                connections_max=connections,
                connections_per_address_max=connections_per_address,
                idle_s_max=idle,
                scrub_bytes_s_max=scrub,
            ),
            also=also,
            lease_seconds=lease,
            security=Security(
                certificate=tls_cert or "",
                key=tls_key or "",
                client_ca=tls_client_ca or "",
                token_file=token_file or Credentials.of(session.url).token_file,
                token_optional=token_optional,
            ),
            metrics=metrics,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@seqr.command(
    examples="""
    zlog seqr status                     # the sequencer of the store
    zlog seqr status 127.0.0.1:7460 --json
    """,
)
@click.argument("address", metavar="[[tls://]HOST:PORT]", required=False)
@json_option("Print one JSON object.")
@pass_session
def status(session: Session, address: str | None, as_json: bool) -> None:
    """Show a sequencer's load, the leader and the standbys."""
    address = address or _announced(session)
    with usage_errors():
        found = sequencer_status(address, url=_url_of(session), timeout=session.timeout)
    with Output() as out:
        if as_json:
            out.line(to_json(found))
        else:
            _show(out, found)


@seqr.command(
    examples="""
    zlog seqr forget 10.0.0.5:7460
    zlog seqr forget tls://seq1.example.com:7460
    """,
)
@click.argument("address", metavar="[tls://]HOST:PORT")
@pass_session
def forget(session: Session, address: str) -> None:
    """Remove a sequencer that no longer exists from the store.

    Use this after a sequencer has crashed and will not return: writers then stop looking for it,
    and its logs continue without it. You need not do this if it was ended by SIGTERM or if another
    sequencer leads. The command refuses to remove a sequencer that still answers.
    """
    with session.connect() as store, usage_errors():
        forgotten = forget_sequencer(store, address, timeout=session.timeout)
    if forgotten.announced:
        note(f"{address} is no longer announced")
    for log in forgotten.logs:
        note(f"log {log!r} continues without it")


def _url_of(session: Session) -> str:
    """Return the URL with the credentials, if one is given; an address needs no store."""
    try:
        return session.url
    except click.UsageError:
        return ""


def _check_needs_one(url: str) -> None:
    if urlsplit(url).scheme != "ceph":
        raise click.UsageError(f"{url} needs no sequencer: its users share one through the store")


def _announced(session: Session) -> str:
    _check_needs_one(session.url)
    with session.connect() as store:
        address = announced_sequencer(store, timeout=session.timeout)
        if not address:
            raise SequencerUnavailable(
                f"no sequencer has announced itself in {store.url}",
                hint="Start one with `zlog seqr`.",
            )
    return address


def _show(out: Output, found: dict[str, Any]) -> None:
    closed = [f"{reason} {count}" for reason, count in found.get("closed", {}).items() if count]
    shown = [(label.replace("_", " "), str(found.get(label, ""))) for label in _LABELS]
    details(out, [*shown, ("closed", ", ".join(closed) or "none")])
    namespaces = [
        (
            _name_of(namespace) or "-",
            namespace["role"],
            namespace["leader"] or "?",
            f"{namespace['lease_left_s']:.1f} s",
            ", ".join(namespace["others"]) or "-",
            _scrubbed(namespace["scrub"]),
        )
        for namespace in found.get("namespaces", [])
    ]
    if namespaces:
        out.line("")
        head = ("NAMESPACE", "ROLE", "LEADER", "LEASE", "OTHERS", "SCRUB")
        table(out, head, namespaces, head_always=True)
    rows = [
        (_name_of(log, "log"), *(str(log[key]) for key in ("epoch", "tail", "granted")))
        for log in found.get("logs", [])
    ]
    if rows:
        out.line("")
        table(out, ("LOG", "EPOCH", "TAIL", "GRANTED"), rows, head_always=True)


def _scrubbed(scrub: dict[str, Any]) -> str:
    """Return the progress of the leader's audit."""
    if not scrub["bytes"]:
        return "-"
    return (
        f"{human_bytes(scrub['bytes'])}, {scrub['repaired']} repaired, {scrub['damaged']} damaged"
    )


def _name_of(fields: dict[str, Any], *more: str) -> str:
    return "/".join(fields[key] for key in ("pool", "namespace", *more) if fields[key])
