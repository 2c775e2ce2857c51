"""The command seqr: runs a sequencer, asks one how it is, or forgets one that is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import click

from zlog import SequencerUnavailable
from zlog.admin import Credentials, announced_sequencer, forget_sequencer, sequencer_status
from zlog.cli.command import CommandGroup
from zlog.cli.output import Output, note
from zlog.cli.parameters import FiniteRange, json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.tables import bold, table
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
_FILE = click.Path(exists=True, dir_okay=False)


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
@click.option(
    "--listen",
    default=service.LISTEN_DEFAULT,
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; port 0 takes a free port.",
)
@click.option(
    "--advertise",
    metavar="HOST:PORT",
    help="Address at which clients reach it.  [default: the address it listens on]",
)
@click.option(
    "--also",
    multiple=True,
    metavar="POOL[/NAMESPACE]",
    help="Another pool or namespace of the cluster to offer it in; may be repeated.",
)
@click.option(
    "--lease",
    type=FiniteRange(LEASE_SECONDS_MIN, LEASE_SECONDS_MAX),
    default=LEASE_SECONDS_DEFAULT,
    show_default=True,
    metavar="SECONDS",
    help="How long a leader that stops answering remains the leader.",
)
@click.option(
    "--tls-cert",
    type=_FILE,
    help="Speak TLS with this certificate (PEM).",
)
@click.option(
    "--tls-key", type=_FILE, help="Private key of the certificate (PEM).  [default: in its file]"
)
@click.option(
    "--tls-client-ca",
    type=_FILE,
    help="Serve only clients whose certificate one of these (PEM) has signed.",
)
@click.option(
    "--token-file",
    type=_FILE,
    help="Serve only clients that know a token in this file, one per line."
    "  [default: as clients: sequencer_token_file in the store's URL, else"
    " $ZLOG_SEQUENCER_TOKEN_FILE]",
)
@click.option(
    "--token-optional", is_flag=True, help="Also serve clients without a token, while they get one."
)
@click.option(
    "--connections",
    type=click.IntRange(1, 65536),
    default=_LIMITS.connections_max,
    show_default=True,
    help="Limit of connections.",
)
@click.option(
    "--connections-per-address",
    type=click.IntRange(1, 65536),
    default=_LIMITS.connections_per_address_max,
    show_default=True,
    help="Limit of connections from one IP address.",
)
@click.option(
    "--idle",
    type=FiniteRange(1, 30 * 86400),
    default=_LIMITS.idle_s_max,
    show_default=True,
    metavar="SECONDS",
    help="Close connections that are idle for this long.",
)
@click.option(
    "--scrub",
    type=size,
    default=_LIMITS.scrub_bytes_s_max,
    metavar="SIZE",
    help="Data that a leader audits in the background per second; 0: none.  [default: 4M]",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve metrics for Prometheus there, to all who can connect.",
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
    """Run a sequencer, show the status of one, or forget one.

    A sequencer hands out positions, which makes appends faster. Clients of the store find it by
    themselves. It keeps nothing on disk and can be stopped and started at any time. It serves until
    SIGTERM or Ctrl-C. An embedded store needs none.

    Several sequencers can run for one pool: one leads, the others stand by and take over from it.
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
    zlog seqr status                     # of the sequencer that the store names
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
    """Forget a sequencer that is gone for good.

    It is no longer offered to writers, and the logs that name it continue without it. This is not
    needed after SIGTERM, nor once another sequencer leads. A sequencer that answers stays.
    """
    with session.connect() as store, usage_errors():
        forgotten = forget_sequencer(store, address, timeout=session.timeout)
    if forgotten.offered:
        note(f"{address} is no longer offered")
    for log in forgotten.logs:
        note(f"log {log!r} continues without it")


def _url_of(session: Session) -> str:
    """Return the URL that may name what to show and to trust; an address needs no store."""
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
    for label in _LABELS:
        text = f"{label.replace('_', ' '):17}"
        out.line(f"{bold(out, text)}  {found.get(label, '')}")
    closed = [f"{reason} {count}" for reason, count in found.get("closed", {}).items() if count]
    out.line(f"{bold(out, 'closed           ')}  {', '.join(closed) or 'none'}")
    namespaces = [
        (
            _name_of(namespace),
            namespace["role"],
            namespace["leader"] or "?",
            f"{namespace['lease_left_s']:.1f} s",
            ", ".join(namespace["others"]) or "-",
            _scrubbed(namespace.get("scrub")),
        )
        for namespace in found.get("namespaces", [])
    ]
    if namespaces:
        out.line("")
        head = ("NAMESPACE", "ROLE", "LEADER", "LEASE", "OTHERS", "SCRUB")
        table(out, head, namespaces, head_always=True)
    rows = [
        (
            "/".join(part for part in (log["pool"], log["namespace"], log["log"]) if part),
            str(log["epoch"]),
            str(log["tail"]),
            str(log["granted"]),
        )
        for log in found.get("logs", [])
    ]
    if rows:
        out.line("")
        table(out, ("LOG", "EPOCH", "TAIL", "GRANTED"), rows, head_always=True)


def _scrubbed(scrub: dict[str, Any] | None) -> str:
    """Say what the leader's audit has done; an older sequencer tells of none."""
    if not scrub or not scrub["bytes"]:
        return "-"
    return f"{human_bytes(scrub['bytes'])}, {scrub['healed']} healed, {scrub['damaged']} damaged"


def _name_of(namespace: dict[str, Any]) -> str:
    return "/".join(part for part in (namespace["pool"], namespace["namespace"]) if part) or "-"
