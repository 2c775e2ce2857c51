"""The sequencer as a process: what ``zlog seqr`` runs."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from zlog import store as stores
from zlog._base.sequencer import format_address, parse_host_port
from zlog._sequencer.credentials import Credentials
from zlog._sequencer.reasons import reason_of
from zlog.distribution import version
from zlog.errors import ZlogError
from zlog.seqr.election.activation import Activation
from zlog.seqr.election.candidate import Role
from zlog.seqr.election.election import Election
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT, LEASE_SECONDS_MAX, LEASE_SECONDS_MIN
from zlog.seqr.limits import Limits
from zlog.seqr.metrics import served
from zlog.seqr.namespaces import Namespace, Stores
from zlog.seqr.registration import Registration
from zlog.seqr.security import OPEN_TO_ALL, Security
from zlog.seqr.server import Server, bind
from zlog.store import Store

_logger = logging.getLogger(__name__)

LISTEN_DEFAULT = "127.0.0.1:7460"
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_NOT_OURS = (errno.EADDRNOTAVAIL, errno.EACCES)
"""What the system answers to a wish to listen where this process may not."""
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104  # refused as an address for clients, not bound


def run(
    listen: str = LISTEN_DEFAULT,
    advertise: str | None = None,
    store: str | None = None,
    limits: Limits | None = None,
    also: Sequence[str] = (),
    lease_seconds: float = LEASE_SECONDS_DEFAULT,
    security: Security = OPEN_TO_ALL,
    metrics: str | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then hand the logs over and return.

    Of the sequencers of one namespace one leads, and the others stand by.

    Args:
        listen: ``HOST:PORT`` to listen on; port 0 takes any that is free.
        advertise: ``HOST:PORT`` at which clients reach it; by default what it listens on.
        store: URL of the store whose logs it serves; None for the default store. It offers itself
            there, and serves the logs of the cluster's other pools to clients that ask for them.
        limits: see there.
        also: ``POOL[/NAMESPACE]`` of the same cluster in which it offers itself too.
        lease_seconds: how long a leader that does not answer remains the leader.
        security: what it shows and demands.
        metrics: ``HOST:PORT`` at which Prometheus finds what it counts; None for nowhere.

    Raises:
        ValueError: an address or URL is invalid, or clients could not reach it; the lease
            is shorter or longer than is of use; or a file of ``security`` is invalid.
        ZlogError: the address is in use or another machine's, or the store is not usable.
    """
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    # uvloop does not start TLS on a connection that it has just accepted.
    loop = asyncio.new_event_loop() if security.certificate else new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(
            _serve(
                listen,
                advertise,
                store,
                limits or Limits(),
                also,
                lease_seconds,
                security,
                metrics,
            )
        )
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        for number in _STOP_SIGNALS:  # uvloop would keep them for itself
            loop.remove_signal_handler(number)
        asyncio.set_event_loop(None)
        loop.close()


def _bind(host: str, port: int) -> socket.socket:
    """Bind the address to listen on.

    Raises:
        ZlogError: another program has it, or this machine has not.
        OSError: another failure.
    """
    where = f"{host}:{port}"
    try:
        return bind(host, port)
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno in _NOT_OURS:
            raise ZlogError(
                f"can't listen on {where}: {reason_of(error)}",
                hint="--listen names an address of this machine; --advertise one that clients"
                " reach it by.",
            ) from error
        if error.errno != errno.EADDRINUSE:
            raise
        raise ZlogError(
            f"{where} is in use, maybe by a sequencer",
            hint=f"`zlog seqr status {where}` shows whether it is one; --listen HOST:PORT"
            " chooses another address.",
        ) from error


def client_address(advertise: str | None, host: str, port: int, tls: bool = False) -> str:
    """Return the address that views and the directory will carry.

    Args:
        advertise: ``HOST:PORT``, or None for where it listens. Port 0 stands for the bound port.
        host: that the sequencer listens on.
        port: that it is bound to.
        tls: whether it speaks TLS there.

    Raises:
        ValueError: no client could connect to it.
    """
    if advertise is not None:
        host, wanted = parse_host_port(advertise)
        port = wanted or port
    if host in _WILDCARDS:
        raise ValueError(f"clients can't connect to {host}: name a host with --advertise HOST:PORT")
    return format_address(host, port, tls)


async def _serve(
    listen: str,
    advertise: str | None,
    url: str | None,
    limits: Limits,
    also: Sequence[str],
    lease_seconds: float,
    security: Security,
    metrics: str | None,
) -> None:
    namespaces = [Namespace.parse(each) for each in also]
    if not LEASE_SECONDS_MIN <= lease_seconds <= LEASE_SECONDS_MAX:
        raise ValueError(
            f"a lease lasts {LEASE_SECONDS_MIN:g} to {LEASE_SECONDS_MAX:g} s, not {lease_seconds:g}"
        )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    host, port = parse_host_port(listen)
    with _bind(host, port) as listening:
        address = client_address(
            advertise, host, listening.getsockname()[1], bool(security.certificate)
        )
        with stores.connect(url, create=False) as store:
            registration = Registration(store, address, version())
            await serve(
                listening,
                address,
                store,
                stop,
                limits,
                namespaces,
                lease_seconds,
                security,
                registration.tell,
                metrics,
            )
    _logger.info("stopped")


async def serve(
    listening: socket.socket,
    address: str,
    store: Store,
    stop: asyncio.Event,
    limits: Limits,
    namespaces: Sequence[Namespace] = (),
    lease_seconds: float = LEASE_SECONDS_DEFAULT,
    security: Security = OPEN_TO_ALL,
    tell: Callable[[Role], None] = lambda _: None,
    metrics: str | None = None,
) -> None:
    """Serve the logs of a store until ``stop`` is set, then hand them over.

    Args:
        listening: where clients connect.
        address: what they find in views.
        store: see there; it stays the caller's.
        stop: ends it.
        limits: see there.
        namespaces: where it offers itself beside the store's own namespace.
        lease_seconds: how long a leader that does not answer remains the leader.
        security: see there.
        tell: called with the role in the store's namespace when one has changed.
        metrics: see :func:`run`.
    """
    tls, admission = security.context(), security.admission()
    opened = Stores(store, stores.connect, limits)
    election = Election(
        opened,
        address,
        limits,
        lease_seconds,
        namespaces,
        lambda: tell(election.role),
        security.as_client(Credentials.of(store.url)),
    )
    activation = Activation(opened, election, address, limits)
    server = Server(
        address,
        activation,
        version(),
        limits,
        election.describe,
        admission,
        tls,
        store.identity,
    )
    with served(metrics, server.status):
        await server.start(listening)
        try:
            await election.start(server)
            _log_start(listening.getsockname(), address, store)
            _tell_systemd("READY=1")
            await stop.wait()
        finally:
            _logger.info("stopping")
            _tell_systemd("STOPPING=1")
            await _hand_over(election, server)
            await opened.close()


async def _hand_over(election: Election, server: Server) -> None:
    """Let a standby lead where there is one; elsewhere the logs go on without a sequencer."""
    heirs = await election.resign()
    # Standbys take the end of their connection for the word that the lease is free.
    server.halt(cut=bool(heirs))
    inherited = await election.succeeded(heirs)
    for namespace in inherited:
        _logger.info("handed over namespace=%s", namespace)
    await asyncio.gather(server.stop(inherited), election.withdraw(inherited))


def _tell_systemd(state: str) -> None:
    """Tell systemd how far the process is, where systemd asks for it (`sd_notify(3)`)."""
    where = os.environ.get("NOTIFY_SOCKET")
    if where is None:
        return
    name = "\0" + where[1:] if where.startswith("@") else where
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.sendto(state.encode(), name)
    except OSError as error:
        _logger.warning("can't tell systemd %s at %s: %s", state, where, error.strerror)


def _log_start(where: tuple[object, ...], address: str, store: Store) -> None:
    _logger.info("listening on=%s:%s address=%s store=%s", where[0], where[1], address, store.url)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop where it is installed: less CPU per chunk of requests."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
