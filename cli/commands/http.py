"""The command http: serves logs to programs in every language."""

from __future__ import annotations

import logging
from contextlib import ExitStack

import click

from zlog import ZlogError
from zlog.admin import how_to_install, is_loopback, parse_host_port, reachable_at
from zlog.cli.command import Command
from zlog.cli.output import say
from zlog.cli.parameters import FILE, listen_option, number_option, seconds_option, tls_options
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.units import size

LISTEN_DEFAULT = "127.0.0.1:7463"


@click.command(
    cls=Command,
    examples="""
    zlog http
    zlog --store ceph://logs http --listen 0.0.0.0:7463 --tokens tokens --tls-cert http.pem
    """,
)
@listen_option(LISTEN_DEFAULT, "Serve HTTP at this address.")
@click.option(
    "--tokens",
    type=FILE,
    help="Accept only requests with a token from this file, which has lines of the form 'NAME"
    " sha256:HEX RIGHTS PATTERNS'. Addresses other than loopback need it.",
)
@tls_options
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Let pages of this origin use the server; '*' means all. May be repeated.",
)
@click.option(
    "--body-max", type=size, default="8MiB", show_default=True, help="Maximum size of a body."
)
@number_option("--connections", 4000, 1, 1_000_000, "Maximum number of connections.")
@number_option("--waits", 2000, 1, 1_000_000, "Maximum number of waiting readers of each token.")
@number_option("--rate", 100_000, 1, 10_000_000, "Maximum requests in a second of each token.")
@seconds_option("--poll-time", 15.0, 0.1, 300.0, "Answer a long-poll without data after this.")
@seconds_option("--events-time", 60.0, 1.0, 86400.0, "End an event stream after this.")
@click.option(
    "--metrics", metavar="HOST:PORT", help="Serve metrics for Prometheus at /metrics there."
)
@click.option("--access-log", is_flag=True, help="Print a line of JSON for each request.")
@pass_session
def http(
    session: Session,
    listen: str,
    tokens: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    origins: tuple[str, ...],
    body_max: int,
    connections: int,
    waits: int,
    rate: int,
    poll_time: float,
    events_time: float,
    metrics: str | None,
    access_log: bool,
) -> None:
    """Serve logs over HTTP.

    The server speaks the Durable Streams Protocol 1.0 at /v1/stream/PATH, and has a plain API for
    all logs at /v1/logs, which /openapi.json describes. It keeps no state: run several on one store
    behind a load balancer. It runs until Ctrl-C or SIGTERM.
    """
    try:
        from zlog.web import Access, Limits, Service, check_certificate, serve
        from zlog.web import listen as listen_at
    except ImportError as error:
        raise ZlogError(
            f"serving HTTP needs more packages ({error})", hint=how_to_install("http")
        ) from error
    with usage_errors():
        host, port = parse_host_port(listen)
        access = Access(tokens)
        check_certificate(tls_cert, tls_key)
    if access.open and not is_loopback(host):
        raise click.UsageError(f"{host} is not a loopback address, so give --tokens FILE")
    limits = Limits(
        body_bytes=body_max,
        poll_seconds=poll_time,
        events_seconds=events_time,
        waits=waits,
        rate=rate,
        connections=connections,
    )
    if access_log:
        logging.basicConfig(level=logging.INFO, format="%(message)s")
    with ExitStack() as stack:
        store = stack.enter_context(session.connect(create=True))
        listening = stack.enter_context(listen_at(host, port))
        service = Service(
            store,
            access,
            limits,
            timeout=session.timeout,
            origins=origins,
            access_log=access_log,
        )
        if metrics is not None:
            from zlog.metrics import serve as serve_metrics

            with usage_errors():
                where = stack.enter_context(serve_metrics(metrics, [service]))
            say(f"metrics at http://{where}/metrics")
        scheme = "http" if tls_cert is None else "https"
        say(f"serving {scheme}://{reachable_at(host, listening)}/v1/")
        if tls_cert is None and not is_loopback(host):
            say("without TLS, tokens and entries are sent unencrypted; use --tls-cert")
        serve(service, listening, tls_cert, tls_key)
