"""Serving metrics to Prometheus, with prometheus-client where that is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from zlog._base.sequencer import parse_host_port
from zlog.errors import ZlogError

HINT = "pip install 'zlog-ceph[metrics]'; in a clone: pip install '.[metrics]'"


@contextmanager
def serve(listen: str, collectors: Iterable[Any]) -> Iterator[str]:
    """Serve what collectors tell, and what this process uses, from a thread beside.

    Args:
        listen: ``HOST:PORT``; port 0 takes a free one.
        collectors: of prometheus-client's interface.

    Returns:
        While the ``with`` block lasts, ``HOST:PORT`` where it listens.

    Raises:
        ValueError: ``listen`` is no address.
        ZlogError: prometheus-client is not installed, or it can't listen there.
    """
    host, port = parse_host_port(listen)
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
    except ImportError:
        raise ZlogError("metrics need the package prometheus-client", hint=HINT) from None
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    for collector in collectors:
        registry.register(collector)
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise ZlogError(
            f"can't serve metrics on {listen}: {error.strerror or error}",
            hint="Name a free address of this machine.",
        ) from error
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"{shown}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
