"""Metrics of this process's logs for Prometheus and OpenTelemetry; see docs/metrics.md.

Nothing is measured before a program calls :func:`enable`. After that, measuring costs a few
microseconds per round of appends and per window of reads, and nothing per entry.
"""

from __future__ import annotations

import errno
import os
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from zlog import _client
from zlog._append.ordered import NotOrdered, Part
from zlog._append.rounds import Failed
from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Reply, Started
from zlog._base.sequencer import parse_host_port, reachable_at
from zlog._io import BlockingIo
from zlog._native.mutex import Mutex
from zlog._native.new_entries import NewEntry
from zlog._native.rounds import QuickRound
from zlog.distribution import how_to_install
from zlog.errors import Conflict, ZlogError
from zlog.spool import spool_metrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    from zlog._client import LogClient

__all__ = ["enable", "serve"]

_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30)
_ENTRIES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)

Span = Callable[..., AbstractContextManager[Any]]


def enable(registry: CollectorRegistry | None = None, *, tracing: bool = False) -> None:
    """Collect metrics of all handles that are opened from now on. Call this once per process.

    Args:
        registry: the registry of prometheus-client that collects the metrics; None means the
            default one. The program must serve them, for example with
            ``prometheus_client.start_http_server``.
        tracing: whether to create OpenTelemetry spans as well, for rounds of appends and for reads.

    Raises:
        ZlogError: a required package is not installed, or metrics are already enabled.
    """
    if _client.attached:
        raise ZlogError("metrics are already enabled")
    span: Span = _tracer() if tracing else lambda _name, **_attributes: nullcontext()
    _client.attached.append(_Instruments(registry, span).attach)


@contextmanager
def serve(listen: str, collectors: Iterable[Any]) -> Iterator[str]:
    """Serve this process's metrics and those of ``collectors`` at ``/metrics``, in another thread.

    Args:
        listen: ``HOST:PORT``; port 0 selects a free port.
        collectors: objects that implement prometheus-client's collector interface.

    Yields:
        The ``HOST:PORT`` at which Prometheus can reach the server.

    Raises:
        ValueError: ``listen`` is not an address.
        ZlogError: prometheus-client is not installed, or the address cannot be used.
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
            hint="Use an address that belongs to this machine and a port that is free.",
        ) from error
    server.set_app(_at_its_path(server.get_app()))
    try:
        yield reachable_at(host, server.socket)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _at_its_path(application: Any) -> Any:
    """Restrict a WSGI application to ``/metrics``, because prometheus-client answers every path."""

    def answer(environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Any:
        if environ["PATH_INFO"] == "/metrics":
            return application(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"The metrics are at /metrics.\n"]

    return answer


def _missing() -> ZlogError:
    return ZlogError(
        "metrics need the prometheus-client package", hint=f"{how_to_install('metrics')}."
    )


def _tracer() -> Span:
    try:
        from opentelemetry import trace
    except ImportError:
        hint = "Install it and an OpenTelemetry SDK."
        raise ZlogError("tracing needs the opentelemetry-api package", hint=hint) from None
    return trace.get_tracer("zlog").start_as_current_span


@cache
def _word(code: int) -> str:
    """Return the name of a reply code."""
    if code < 0:
        return errno.errorcode.get(-code, "unknown").lower()
    try:
        return Code(code).name.lower()
    except ValueError:
        return "unknown"


class Distribution:
    """A histogram: the number of values up to each bound, and the sum of all values."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.sum = 0.0
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, int]]:
        """Return each bound with the number of values up to that bound."""
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        return [*zip(names, accumulate(self._counts), strict=True)]


class _Tallies:
    """The counts that prometheus-client collects from this process.

    They are kept here because prometheus-client's own metric classes take a lock for each number.

    Attributes:
        lock: the lock that guards the counts.
    """

    def __init__(self) -> None:
        self._unlock()
        os.register_at_fork(after_in_child=self._unlock)
        self.calls: Counter[tuple[str, int]] = Counter()
        self.call_seconds = defaultdict[str, Distribution](lambda: Distribution(_SECONDS))
        self.sent: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self.entries = 0
        self.round_entries = Distribution(_ENTRIES)
        self.append_seconds = Distribution(_SECONDS)
        self.failures: Counter[str] = Counter()
        self.conflicts = 0

    def _unlock(self) -> None:
        self.lock = Mutex(reentrant=True)

    def collect(self) -> Iterator[Metric]:
        """Return all metrics for prometheus-client."""
        with self.lock:  # not held while the metrics are formatted
            return iter([*self._metrics()])

    def _metrics(self) -> Iterator[Metric]:
        calls: Counter[tuple[str, ...]] = Counter()
        for (method, code), count in self.calls.items():
            calls[method, _word(code)] += count
        what = (
            "Calls of class methods by result, such as ok, stale_epoch (the call is retried in"
            " a newer view) or read_only (another client wrote or filled the position first)."
        )
        yield _counter("calls", what, calls, "method", "result")
        methods = [((method,), times) for method, times in self.call_seconds.items()]
        what = "Seconds from the start of a group of concurrent calls to the last answer."
        yield histogram("client_call_seconds", what, methods, "method")
        what = "Bytes of requests to class methods."
        yield _counter("sent_bytes", what, _keyed(self.sent), "method")
        received = _keyed(self.received)
        yield _counter("received_bytes", "Bytes of replies of class methods.", received, "method")
        failures = _keyed(self.failures)
        what = "Append rounds that failed, by the error's name."
        yield _counter("append_failures", what, failures, "error")
        what = "Appends that were rejected because their condition did not hold."
        yield _counter("append_conflicts", what, {(): self.conflicts})
        yield _counter("appended_entries", "Entries that were acknowledged.", {(): self.entries})
        sizes = [((), self.round_entries)]
        what = "Entries that are sent together in an append round."
        yield histogram("client_append_round_entries", what, sizes)
        what = "Seconds from the grant of an append round to its last answer."
        yield histogram("client_append_seconds", what, [((), self.append_seconds)])
        yield from spool_metrics()


def _keyed(counts: Mapping[str, int]) -> dict[tuple[str, ...], int]:
    return {(key,): count for key, count in counts.items()}


def _counter(
    name: str, what: str, counts: Mapping[tuple[str, ...], int], *labels: str
) -> CounterMetricFamily:
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(f"zlog_client_{name}", what, labels=labels)
    for key, count in counts.items():
        family.add_metric(key, count)
    return family


def histogram(
    name: str,
    what: str,
    distributions: Iterable[tuple[tuple[str, ...], Distribution]],
    *labels: str,
) -> HistogramMetricFamily:
    """Return a histogram that has one distribution per combination of label values."""
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(f"zlog_{name}", what, labels=labels)
    for key, each in distributions:
        family.add_metric(key, each.buckets(), each.sum)
    return family


class _Instruments:
    """Wraps methods of handles in functions that count and time them."""

    def __init__(self, registry: CollectorRegistry | None, span: Span) -> None:
        try:
            from prometheus_client import REGISTRY
        except ImportError:
            raise _missing() from None
        self._span = span
        self._tallies = _Tallies()
        (REGISTRY if registry is None else registry).register(self._tallies)

    def attach(self, client: LogClient) -> None:
        """Start measuring a client."""
        io: Any = client.io
        name = client.layout.view.log
        start, execute = io.start, io.execute

        def begin(calls: Sequence[Call]) -> Started:
            began = time.perf_counter()
            return _Watched(self, name, calls, began, start(calls))

        async def run(calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
            return await self.measured(name, calls, time.perf_counter(), execute(calls, deadline))

        async def blocking(calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
            whole = run if len(calls) == 1 else execute  # several calls go through `start`
            return await whole(calls, deadline)

        if "start" not in vars(io):  # clients may share an Io
            io.start = begin
            if isinstance(client.io, BlockingIo):
                io.execute = blocking
        self._attach_appender(client, name)

    def _attach_appender(self, client: LogClient, name: str) -> None:
        appender = client.appender
        append_round, append_parts = appender.append_round, appender.append_parts

        @contextmanager
        def span(entries: int) -> Iterator[None]:
            attributes = {"zlog.log": name, "zlog.entries": entries}
            try:
                with self._span("zlog.append", attributes=attributes):
                    yield
            except BaseException as error:
                self._count_failure(error)
                raise

        async def round_measured(
            entries: Sequence[NewEntry],
            start: int,
            end: int,
            deadline: Deadline,
            begun: QuickRound | None = None,
        ) -> Sequence[int] | Failed:
            if client.layout.view.ordered:  # append_parts is measured
                return await append_round(entries, start, end, deadline, begun)
            began = time.perf_counter()
            appended: Sequence[int] | Failed = ()
            try:
                with span(end - start):
                    appended = await append_round(entries, start, end, deadline, begun)
                    if isinstance(appended, Failed):
                        raise appended.error  # so that the span records it
            except BaseException:
                if isinstance(appended, Failed):
                    return appended
                raise
            self._count_round(end - start, time.perf_counter() - began)
            return appended

        async def parts_measured(parts: Sequence[Part], deadline: Deadline) -> None:
            began = time.perf_counter()
            with span(sum(len(part.entries) for part in parts)):
                await append_parts(parts, deadline)
            self._count_parts(parts, time.perf_counter() - began)

        def quick_ended(entries: int, took: float, error: BaseException | None) -> None:
            with self._span("zlog.append", attributes={"zlog.log": name, "zlog.entries": entries}):
                pass
            if error is None:
                self._count_round(entries, took)
            else:
                self._count_failure(error)

        changed: Any = appender
        changed.append_round, changed.append_parts = round_measured, parts_measured
        changed.quick_ended = quick_ended

    def _count_round(self, entries: int, took: float) -> None:
        tallies = self._tallies
        with tallies.lock:
            tallies.append_seconds.add(took)
            tallies.round_entries.add(entries)
            tallies.entries += entries

    def _count_failure(self, error: BaseException) -> None:
        with self._tallies.lock:
            self._tallies.failures[type(error).__name__] += 1

    def _count_parts(self, parts: Sequence[Part], took: float) -> None:
        appended = 0
        for part in parts:
            if isinstance(part.outcome, int):
                appended += len(part.entries)
            elif isinstance(part.outcome, BaseException) and not isinstance(part.outcome, Conflict):
                if not isinstance(part.outcome, NotOrdered):  # then it is appended in another way
                    self._count_failure(part.outcome)
            else:
                with self._tallies.lock:
                    self._tallies.conflicts += 1
        if appended:
            self._count_round(appended, took)

    async def measured(
        self, name: str, calls: Sequence[Call], began: float, work: Awaitable[list[Reply]]
    ) -> list[Reply]:
        """Wait for calls that were started together, and record them."""
        if not calls:
            return await work
        method = calls[0].method
        if method == "read":
            attributes = {"zlog.log": name, "zlog.objects": len(calls)}
            with self._span("zlog.read", attributes=attributes):
                replies = await work
        else:
            replies = await work
        took = time.perf_counter() - began
        tallies = self._tallies
        with tallies.lock:
            tallies.call_seconds[method].add(took)
            for call, reply in zip(calls, replies, strict=True):
                tallies.sent[method] += len(call.payload)
                tallies.received[method] += len(reply.payload)
                tallies.calls[method, reply.code] += 1
        return replies


class _Watched(NamedTuple):
    """Calls that were started and will be measured when they end."""

    instruments: _Instruments
    log: str
    calls: Sequence[Call]
    began: float
    started: Started

    async def finish(self, deadline: Deadline) -> list[Reply]:
        """Wait for all calls and return their replies in order."""
        work = self.started.finish(deadline)
        return await self.instruments.measured(self.log, self.calls, self.began, work)
