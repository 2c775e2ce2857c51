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
        what = "How late the event loop ran a timer that was due, four times a second."
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
    """Return what STATUS tells as metrics."""
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge
    from prometheus_client.core import InfoMetricFamily as Info

    what = "1 if the event loop answered within 5 s, else 0, and the other metrics are missing."
    yield Gauge("zlog_seqr_up", what, value=float(status is not None))
    if status is None:
        return
    build = {"version": status["version"], "address": status["address"]}
    what = "1; the program's version and the address that clients find in views are labels."
    yield Info("zlog_seqr", what, value=build)
    for name, what, key in (
        ("uptime_seconds", "Seconds since the sequencer started.", "uptime_s"),
        ("connections", "Open connections of clients.", "connections"),
        (
            "outstanding_requests",
            "Requests that wait for an answer, mostly of readers that follow.",
            "outstanding",
        ),
    ):
        yield Gauge(f"zlog_seqr_{name}", what, value=status[key])
    for name, what, key in (
        ("requests", "Requests received.", "requests"),
        ("grants", "Answers that granted positions.", "grants"),
        ("positions", "Positions granted, in all logs.", "positions"),
        ("take_overs", "Logs that the sequencer took over.", "take_overs"),
        (
            "take_over_failures",
            "Logs that the sequencer failed to take over.",
            "take_over_failures",
        ),
    ):
        yield Counter(f"zlog_seqr_{name}", what, value=status[key])
    what = (
        "Connections refused or closed, by reason: limit, tls, certificate, token, malformed,"
        " silent, stalled or idle."
    )
    closed = Counter("zlog_seqr_closed_connections", what, labels=["reason"])
    for reason, count in status["closed"].items():
        closed.add_metric([reason], count)
    yield closed
    yield from _of_namespaces(status["namespaces"])
    yield from _of_logs(status["logs"])


_NAMESPACE = ("pool", "namespace")

_DUTIES = (
    ("maintenance_rounds", "Rounds of maintenance, which trim logs and free space.", "rounds"),
    ("maintenance_failures", "Logs on which a round of maintenance failed.", "failures"),
    ("trimmed_positions", "Positions that retention trimmed.", "trimmed"),
    ("reclaimed_stripes", "Stripes whose objects were removed.", "reclaimed"),
)

_SCRUB = (
    ("scrub_rounds", "Audits of all logs that the leader completed.", "rounds"),
    ("scrub_bytes", "Bytes of data that the leader audited.", "bytes"),
    ("scrub_healed", "Findings of the audit that were repaired.", "healed"),
    ("scrub_damaged", "Findings of the audit that were not repaired.", "damaged"),
)


def _of_namespaces(namespaces: Sequence[Status]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge

    gauges: tuple[tuple[str, str, Callable[[Status], float]], ...] = (
        (
            "leader",
            "1 if the sequencer leads, 0 if it stands by.",
            lambda each: each["role"] == "leader",
        ),
        (
            "lease_seconds",
            "Seconds until the sequencer's lease ends.",
            lambda each: each["lease_left_s"],
        ),
        ("standbys", "Other sequencers that would take over.", lambda each: len(each["others"])),
        (
            "maintenance_age_seconds",
            "Seconds since the last round of maintenance ended, or since it began to lead.",
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
    what = "Positions of the log granted in this epoch."
    granted = Counter("zlog_seqr_log_positions", what, labels=labels)
    what = "Epoch in which the sequencer grants positions of the log."
    epoch = Gauge("zlog_seqr_log_epoch", what, labels=labels)
    what = "Next position of the log that the sequencer grants."
    tail = Gauge("zlog_seqr_log_tail", what, labels=labels)
    for each in logs:
        own = [each["pool"], each["namespace"], each["log"]]
        granted.add_metric(own, each["granted"])
        epoch.add_metric(own, each["epoch"])
        tail.add_metric(own, each["tail"])
    yield from (granted, epoch, tail)
