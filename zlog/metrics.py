"""What this process does with its logs, for Prometheus and OpenTelemetry: docs/metrics.md.

Nothing is measured unless :func:`enable` is called, and then it costs some microseconds for each
round of appends and each window of reads, and nothing for an entry.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from zlog._base import instruments
from zlog._base.deadline import Deadline
from zlog._base.distribution import how_to_install
from zlog._base.io import Call, Reply, Started
from zlog._base.protocol import Code
from zlog._base.sequencer import parse_host_port
from zlog._io import BlockingIo
from zlog.errors import ZlogError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from zlog._client import LogClient
    from zlog._native.core import NewEntry

__all__ = ["enable", "serve"]

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)
_ENTRIES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)

Span = Callable[[str, dict[str, Any]], AbstractContextManager[Any]]


def enable(registry: CollectorRegistry | None = None, *, tracing: bool = False) -> None:
    """Measure what handles do that are opened from now on. Once is enough for a process.

    Args:
        registry: of prometheus-client, which the metrics go to; None: its default one. How they
            are served is up to the program, such as by ``prometheus_client.start_http_server``.
        tracing: also make OpenTelemetry spans, of rounds of appends and of reads.

    Raises:
        ZlogError: a package that is needed is not installed, or it is enabled already.
    """
    if instruments.attached:
        raise ZlogError("metrics are enabled already")
    instruments.attached.append(_Instruments(registry, _tracer() if tracing else _no_span).attach)


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
        raise _missing() from None
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


def _missing() -> ZlogError:
    return ZlogError(
        "metrics need the package prometheus-client", hint=f"{how_to_install('metrics')}."
    )


def _no_span(_name: str, _attributes: dict[str, Any]) -> AbstractContextManager[Any]:
    return nullcontext()


def _tracer() -> Span:
    try:
        from opentelemetry import trace
    except ImportError:
        hint = "Install it, and an SDK of OpenTelemetry."
        raise ZlogError("tracing needs the package opentelemetry-api", hint=hint) from None
    tracer = trace.get_tracer("zlog")

    def span(name: str, attributes: dict[str, Any]) -> AbstractContextManager[Any]:
        return tracer.start_as_current_span(name, attributes=attributes)

    return span


@cache
def _word(code: int) -> str:
    """Return what a reply's code is called."""
    if code < 0:
        return errno.errorcode.get(-code, "unknown").lower()
    try:
        return Code(code).name.lower()
    except ValueError:
        return "unknown"


class _Instruments:
    """The metrics, and what puts them between a handle's parts."""

    def __init__(self, registry: CollectorRegistry | None, span: Span) -> None:
        try:
            from prometheus_client import REGISTRY, Counter, Histogram
        except ImportError:
            raise _missing() from None
        into = REGISTRY if registry is None else registry

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"zlog_client_{name}", what, labels, registry=into)

        def histogram(name: str, what: str, buckets: Sequence[float], *labels: str) -> Histogram:
            full = f"zlog_client_{name}"
            return Histogram(full, what, labels, buckets=buckets, registry=into)

        self._span = span
        calls = counter("calls", "Class methods, by what they answered.", "method", "result")
        seconds = histogram("call_seconds", "Of calls that begin together.", _SECONDS, "method")
        sent = counter("sent_bytes", "Requests of class methods.", "method")
        received = counter("received_bytes", "Replies of class methods.", "method")
        failures = counter("append_failures", "Rounds of appends, by error.", "error")
        self._calls = cache(lambda method, code: calls.labels(method, _word(code)))
        self._of_method = cache(
            lambda method: (seconds.labels(method), sent.labels(method), received.labels(method))
        )
        self._failures = failures.labels
        self._entries = counter("appended_entries", "That were acknowledged.")
        self._round_entries = histogram("append_round_entries", "That travel together.", _ENTRIES)
        self._append_seconds = histogram("append_seconds", "Of a round of appends.", _SECONDS)

    def attach(self, client: LogClient) -> None:
        """Measure what a client does from now on."""
        io: Any = client.io
        name = client.layout.view.log
        start, execute = io.start, io.execute

        def begin(calls: Sequence[Call]) -> Started:
            began = time.perf_counter()
            return _Watched(self, name, calls, began, start(calls))

        async def run(calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
            with self.calls(name, calls, time.perf_counter()) as replies:
                replies += await execute(calls, deadline)
            return replies

        async def blocking(calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
            whole = run if len(calls) == 1 else execute  # which calls `start` for several
            return await whole(calls, deadline)

        if "start" not in vars(io):  # clients may share one
            io.start = begin
            if isinstance(client.io, BlockingIo):
                io.execute = blocking
        self._attach_appender(client, name)

    def _attach_appender(self, client: LogClient, name: str) -> None:
        appender: Any = client.appender
        send = appender.send

        async def measured(
            entries: Sequence[NewEntry], start: int, end: int, deadline: Deadline
        ) -> Sequence[int]:
            began = time.perf_counter()
            with self._span("zlog.append", {"zlog.log": name, "zlog.entries": end - start}):
                try:
                    positions: Sequence[int] = await send(entries, start, end, deadline)
                except BaseException as error:
                    self._failures(type(error).__name__).inc()
                    raise
            self._append_seconds.observe(time.perf_counter() - began)
            self._round_entries.observe(end - start)
            self._entries.inc(end - start)
            return positions

        appender.send = measured

    @contextmanager
    def calls(self, name: str, calls: Sequence[Call], began: float) -> Iterator[list[Reply]]:
        """Measure calls that began together; the caller puts their replies into what this gives."""
        replies: list[Reply] = []
        method = calls[0].method if calls else ""
        attributes = {"zlog.log": name, "zlog.objects": len(calls)}
        with self._span("zlog.read", attributes) if method == "read" else nullcontext():
            yield replies
        if not method:
            return
        seconds, sent, received = self._of_method(method)
        seconds.observe(time.perf_counter() - began)
        sent.inc(sum(len(call.payload) for call in calls))
        received.inc(sum(len(reply.payload) for reply in replies))
        codes = [reply.code for reply in replies]
        for code in {*codes}:
            self._calls(method, code).inc(codes.count(code))


class _Watched:
    """Calls under way that are measured once they have ended."""

    def __init__(
        self,
        instruments: _Instruments,
        name: str,
        calls: Sequence[Call],
        began: float,
        started: Started,
    ) -> None:
        self._instruments = instruments
        self._name = name
        self._calls = calls
        self._began = began
        self._started = started

    async def finish(self, deadline: Deadline) -> list[Reply]:
        """Wait for all of them; replies in the calls' order."""
        with self._instruments.calls(self._name, self._calls, self._began) as replies:
            replies += await self._started.finish(deadline)
        return replies
