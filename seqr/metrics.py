"""What a sequencer counts, for Prometheus: ``zlog seqr --metrics HOST:PORT``.

Each scrape asks the event loop once for what STATUS tells; nothing is counted twice, and the hot
path knows nothing of it.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from zlog.metrics import serve

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_ANSWER_SECONDS = 5.0
"""How long a scrape waits for the event loop."""

_PULSE_SECONDS = 0.25
"""How often the lag of the event loop is measured."""

_LAGS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

Status = Mapping[str, Any]


@contextmanager
def served(listen: str | None, status: Callable[[], Status]) -> Iterator[None]:
    """Serve metrics for the length of a ``with`` block of the event loop's thread.

    Args:
        listen: ``HOST:PORT``; None: do nothing.
        status: returns what STATUS tells; it is called in the event loop.

    Raises:
        ValueError, ZlogError: as :func:`zlog.metrics.serve` does.
    """
    if listen is None:
        yield
        return
    lag = Lag()
    with serve(listen, (lag, Collector(status, asyncio.get_running_loop()))):
        pulse = asyncio.ensure_future(lag.measure())
        try:
            yield
        finally:
            pulse.cancel()


class Lag:
    """Measures how much later than it is due the event loop calls what waits for its time."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_LAGS) + 1)
        self._sum = 0.0

    async def measure(self) -> None:
        """Measure on."""
        while True:
            due = time.monotonic() + _PULSE_SECONDS
            await asyncio.sleep(_PULSE_SECONDS)
            late = max(0.0, time.monotonic() - due)
            self._counts[bisect_left(_LAGS, late)] += 1
            self._sum += late

    def describe(self) -> Sequence[Metric]:
        """Say nothing beforehand, as no other collector has these names."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Make the metric of one scrape."""
        from prometheus_client.core import HistogramMetricFamily as Histogram

        counts = [*accumulate(self._counts)]
        buckets = [*zip((*map(str, _LAGS), "+Inf"), counts, strict=True)]
        what = "How late the event loop called what waited for its time."
        name = "zlog_seqr_event_loop_lag_seconds"
        yield Histogram(name, what, buckets=buckets, sum_value=self._sum)


class Collector:
    """Asks the event loop, from the thread that answers a scrape.

    Args:
        status: see :func:`served`.
        loop: that the sequencer runs on.
    """

    def __init__(self, status: Callable[[], Status], loop: asyncio.AbstractEventLoop) -> None:
        self._status = status
        self._loop = loop

    def describe(self) -> Sequence[Metric]:
        """Say nothing yet: the sequencer is not asked before it listens."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Make the metrics of one scrape. A loop that does not answer has none but ``up``."""

        async def ask() -> Status:
            return self._status()

        answer = asyncio.run_coroutine_threadsafe(ask(), self._loop)
        try:
            status = answer.result(_ANSWER_SECONDS)
        except TimeoutError:
            answer.cancel()
            status = None
        yield from metrics_of(status)


def metrics_of(status: Status | None) -> Iterator[Metric]:
    """Return what STATUS tells as metrics; docs/metrics.md says what each is."""
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge
    from prometheus_client.core import InfoMetricFamily as Info

    yield Gauge("zlog_seqr_up", "Whether the event loop answered.", value=float(status is not None))
    if status is None:
        return
    build = {"version": status["version"], "address": status["address"]}
    yield Info("zlog_seqr", "The program, and what clients find in views.", value=build)
    for name, what, key in (
        ("uptime_seconds", "Since its start.", "uptime_s"),
        ("connections", "Of clients, now.", "connections"),
        ("outstanding_requests", "That wait for an answer.", "outstanding"),
    ):
        yield Gauge(f"zlog_seqr_{name}", what, value=status[key])
    for name, what, key in (
        ("requests", "That were heard.", "requests"),
        ("grants", "Answers that hand positions out.", "grants"),
        ("positions", "That were handed out, in all logs.", "positions"),
        ("take_overs", "Logs that it became the sequencer of.", "take_overs"),
        ("take_over_failures", "Logs that it could not take over.", "take_over_failures"),
    ):
        yield Counter(f"zlog_seqr_{name}", what, value=status[key])
    closed = Counter("zlog_seqr_closed_connections", "Refused or closed.", labels=["reason"])
    for reason, count in status["closed"].items():
        closed.add_metric([reason], count)
    yield closed
    yield from _of_namespaces(status["namespaces"])
    yield from _of_logs(status["logs"])


_NAMESPACE = ("pool", "namespace")

_DUTIES = (
    ("maintenance_rounds", "Rounds that trim logs and give space back.", "rounds"),
    ("maintenance_failures", "Logs that a round could not look after.", "failures"),
    ("trimmed_positions", "That retention has trimmed.", "trimmed"),
    ("reclaimed_stripes", "Whose objects were removed.", "reclaimed"),
)

_SCRUB = (
    ("scrub_rounds", "How often all logs were audited.", "rounds"),
    ("scrub_bytes", "Data that was audited.", "bytes"),
    ("scrub_healed", "Findings of the audit that were put right.", "healed"),
    ("scrub_damaged", "Findings of the audit that were not.", "damaged"),
)


def _of_namespaces(namespaces: Sequence[Status]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge

    gauges: tuple[tuple[str, str, Callable[[Status], float]], ...] = (
        ("leader", "Whether it leads.", lambda each: each["role"] == "leader"),
        ("lease_seconds", "What is left of its lease.", lambda each: each["lease_left_s"]),
        ("standbys", "Others that would take over.", lambda each: len(each["others"])),
        (
            "maintenance_age_seconds",
            "Since the last round of maintenance ended, or it came to lead.",
            lambda each: each["duties"]["age_s"],
        ),
    )
    for name, what, value in gauges:
        gauge = Gauge(f"zlog_seqr_{name}", what, labels=_NAMESPACE)
        for each in namespaces:
            gauge.add_metric([each["pool"], each["namespace"]], float(value(each)))
        yield gauge
    for kind, rows in (("duties", _DUTIES), ("scrub", _SCRUB)):
        for name, what, key in rows:
            counter = Counter(f"zlog_seqr_{name}", what, labels=_NAMESPACE)
            for each in namespaces:
                counter.add_metric([each["pool"], each["namespace"]], each[kind][key])
            yield counter


def _of_logs(logs: Sequence[Status]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge

    labels = (*_NAMESPACE, "log")
    granted = Counter("zlog_seqr_log_positions", "Handed out in this epoch.", labels=labels)
    epoch = Gauge("zlog_seqr_log_epoch", "In which it hands positions out.", labels=labels)
    tail = Gauge("zlog_seqr_log_tail", "The next position.", labels=labels)
    for each in logs:
        own = [each["pool"], each["namespace"], each["log"]]
        granted.add_metric(own, each["granted"])
        epoch.add_metric(own, each["epoch"])
        tail.add_metric(own, each["tail"])
    yield from (granted, epoch, tail)
