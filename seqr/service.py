"""The sequencer as a process, which ``zlog seqr`` runs."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from zlog import store as stores
from zlog._base.sequencer import format_address, parse_host_port
from zlog._sequencer.credentials import Credentials, reason_of
from zlog.distribution import version
from zlog.errors import ZlogError
from zlog.seqr.election.activation import Activation
from zlog.seqr.election.candidate import Role
from zlog.seqr.election.election import Election
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT, LEASE_SECONDS_MAX, LEASE_SECONDS_MIN
from zlog.seqr.failures import FailuresLogged
from zlog.seqr.limits import Limits
from zlog.seqr.machine.machine import Machine
from zlog.seqr.metrics import served
from zlog.seqr.namespaces import Namespace, Stores
from zlog.seqr.security import OPEN_TO_ALL, Security
from zlog.seqr.server import Server, bind
from zlog.store import Store

_logger = logging.getLogger(__name__)

LISTEN_DEFAULT = "127.0.0.1:7460"
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_NOT_OURS = (errno.EADDRNOTAVAIL, errno.EACCES)
"""Errors of binding an address that this process cannot have."""
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
    """Run a sequencer until SIGTERM or SIGINT, then hand over its logs and return.

    Args:
        listen: the ``HOST:PORT`` to listen on. Port 0 selects a free port.
        advertise: the ``HOST:PORT`` that clients connect to; by default the address of ``listen``.
        store: the URL of the store whose logs it serves; None means the default store. If a client
            asks, it also serves logs in other pools of the same cluster.
        also: further places in the cluster, as ``POOL[/NAMESPACE]``, in which it announces itself.
        lease_seconds: after how many seconds without an answer a leader is replaced.
        metrics: the ``HOST:PORT`` at which it serves metrics for Prometheus; None means no metrics.

    Raises:
        ValueError: an argument or a file of ``security`` is invalid, or clients cannot connect to
            the address.
        ZlogError: the address is in use or belongs to another machine, or the store cannot be used.
    """
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )

    async def main() -> None:
        namespaces = [Namespace.parse(each) for each in also]
        if not LEASE_SECONDS_MIN <= lease_seconds <= LEASE_SECONDS_MAX:
            limit = f"{LEASE_SECONDS_MIN:g} to {LEASE_SECONDS_MAX:g} s"
            raise ValueError(f"a lease must be {limit}, not {lease_seconds:g}")
        stop = asyncio.Event()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        host, port = parse_host_port(listen)
        with _bind(host, port) as listening:
            address = client_address(
                advertise, host, listening.getsockname()[1], bool(security.certificate)
            )
            with stores.connect(store, create=False) as opened:
                await serve(
                    listening,
                    address,
                    opened,
                    stop,
                    limits or Limits(),
                    namespaces,
                    lease_seconds,
                    security,
                    _register(opened, address),
                    metrics,
                )
        _logger.info("stopped")

    # uvloop does not start TLS on a connection that it has just accepted.
    loop = asyncio.new_event_loop() if security.certificate else new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main())
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        for number in _STOP_SIGNALS:  # uvloop would keep them for itself
            loop.remove_signal_handler(number)
        asyncio.set_event_loop(None)
        loop.close()


def _bind(host: str, port: int) -> socket.socket:
    """Bind the address to listen on.

    Raises:
        ZlogError: the address is in use, or belongs to another machine.
        OSError: another failure.
    """
    where = f"{host}:{port}"
    try:
        return bind(host, port)
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno in _NOT_OURS:
            raise ZlogError(
                f"can't listen on {where}: {reason_of(error)}",
                hint="--listen needs an address of this machine. --advertise sets the"
                " address that clients connect to.",
            ) from error
        if error.errno != errno.EADDRINUSE:
            raise
        raise ZlogError(
            f"{where} is already in use, perhaps by a sequencer",
            hint=f"`zlog seqr status {where}` shows whether it is one; --listen HOST:PORT"
            " chooses another address.",
        ) from error


def client_address(advertise: str | None, host: str, port: int, tls: bool = False) -> str:
    """Return the sequencer's address for clients. Raises ValueError if they cannot connect to it.

    Args:
        advertise: the ``HOST:PORT`` for clients; None means ``host`` and ``port``. If its port is
            0, ``port`` is used.
    """
    if advertise is not None:
        host, wanted = parse_host_port(advertise)
        port = wanted or port
    if host in _WILDCARDS:
        raise ValueError(f"clients can't connect to {host}: name a host with --advertise HOST:PORT")
    return format_address(host, port, tls)


def _register(store: Store, address: str) -> Callable[[Role], None]:
    """Register this process as a daemon of the Ceph cluster, so that ``ceph -s`` shows it.

    Returns a function that updates the role in ``ceph service status``. If the registration fails,
    this is only logged. If the store is not on Ceph, nothing happens.
    """
    ceph: Any = store

    def update(role: Role) -> None:
        with FailuresLogged("ceph service status is out of date"):
            ceph.update_service({"role": role.value})

    metadata = {
        "address": address,
        "hostname": socket.gethostname(),
        "pool": store.pool,
        "namespace": store.namespace,
        "zlog_version": version(),
    }
    if hasattr(store, "register_service"):
        with FailuresLogged("ceph -s won't show this sequencer"):
            ceph.register_service("zlog-seqr", address.partition("://")[2], metadata)
            return update
    return lambda _: None


async def serve(
    listening: socket.socket,
    address: str,
    store: Store,
    stop: asyncio.Event,
    limits: Limits,
    namespaces: Sequence[Namespace] = (),
    lease_seconds: float = LEASE_SECONDS_DEFAULT,
    security: Security = OPEN_TO_ALL,
    note_role: Callable[[Role], None] = lambda _: None,
    metrics: str | None = None,
) -> None:
    """Serve the logs of a store until ``stop`` is set, and then hand them over.

    Args:
        store: the store with the logs. The caller closes it.
        limits, lease_seconds, security, metrics: see :func:`run`.
        namespaces: further namespaces in which the sequencer announces itself.
        note_role: a function that is called when the sequencer's role in any namespace has changed.
            Its argument is the role in the store's own namespace.
    """
    tls, admission = security.context(), security.admission()
    opened = Stores(store, stores.connect, limits)
    election = Election(
        opened,
        address,
        limits,
        lease_seconds,
        namespaces,
        lambda: note_role(election.role),
        security.as_client(Credentials.of(store.url)),
    )
    now = asyncio.get_running_loop().time()
    machine = Machine(address, version(), now, limits, election.describe, admission, store.identity)
    server = Server(machine, Activation(opened, election, address, limits), tls)
    with served(metrics, server.status):
        await server.start(listening)
        try:
            await election.start(server)
            where = listening.getsockname()
            _logger.info(
                "listening on=%s:%s address=%s store=%s", where[0], where[1], address, store.url
            )
            _notify_systemd("READY=1")
            await stop.wait()
        finally:
            _logger.info("stopping")
            _notify_systemd("STOPPING=1")
            await _hand_over(election, server)
            await opened.close()


async def _hand_over(election: Election, server: Server) -> None:
    """Let a standby lead if possible. Logs without a standby continue without a sequencer."""
    heirs = await election.resign()
    # Standbys read the lease when their connection ends.
    server.halt(cut=bool(heirs))
    inherited = await election.succeeded(heirs)
    for namespace in inherited:
        _logger.info("handed over namespace=%s", namespace)
    await asyncio.gather(server.stop(inherited), election.withdraw(inherited))


def _notify_systemd(state: str) -> None:
    """Report the state of the process to systemd if it asks for that (`sd_notify(3)`)."""
    where = os.environ.get("NOTIFY_SOCKET")
    if where is None:
        return
    name = "\0" + where[1:] if where.startswith("@") else where
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.sendto(state.encode(), name)
    except OSError as error:
        _logger.warning("can't report %s to systemd at %s: %s", state, where, error.strerror)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop if it is installed: it uses less CPU per chunk of requests."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
