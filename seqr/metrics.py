"""A sequencer's metrics for Prometheus: ``zlog seqr --metrics HOST:PORT``.

Each scrape reads STATUS once, in the event loop. The lag of the event loop is the only value that
is measured just for the metrics.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from zlog.metrics import Distribution, histogram, serve

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_ANSWER_SECONDS = 5.0
"""How long a scrape waits for the event loop."""

_PULSE_SECONDS = 0.25
"""How often the lag of the event loop is measured."""

_LAGS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

Status = Mapping[str, Any]
_Rows = Mapping[str, str]
"""The name and help of each metric, by its field in STATUS. Counters end in ``_total``."""

_LOG_LABELS = ("pool", "namespace", "log")

_SEQUENCER: _Rows = {
    "uptime_s": "uptime_seconds: Seconds since the sequencer started.",
    "connections": "connections: Open connections of clients.",
    "outstanding": "outstanding_requests: Requests that wait for an answer, mostly from readers"
    " that follow a log.",
    "requests": "requests_total: Requests received.",
    "grants": "grants_total: Answers that grant positions.",
    "positions": "positions_total: Positions granted, in all logs.",
    "take_overs": "take_overs_total: Logs that the sequencer took over.",
    "take_over_failures": "take_over_failures_total: Logs that the sequencer failed to take over.",
}
_NAMESPACES: _Rows = {
    "leads": "leader: 1 if the sequencer leads, 0 if it stands by.",
    "lease_left_s": "lease_seconds: Seconds until the sequencer's lease ends.",
    "standbys": "standbys: Other sequencers that are ready to take over.",
    "duties_age_s": "maintenance_age_seconds: Seconds since the last maintenance round ended or,"
    " before the first round, since the sequencer began to lead.",
    "duties_rounds": "maintenance_rounds_total: Completed maintenance rounds, which trim logs and"
    " free space.",
    "duties_failures": "maintenance_failures_total: Logs whose maintenance failed, counted in each"
    " round.",
    "duties_trimmed": "trimmed_positions_total: Positions that retention trimmed.",
    "duties_reclaimed": "reclaimed_stripes_total: Stripes whose objects were removed.",
    "scrub_rounds": "scrub_rounds_total: Completed audits of all logs by the leader.",
    "scrub_bytes": "scrub_bytes_total: Bytes of data that the leader has audited.",
    "scrub_repaired": "scrub_repaired_total: Audit findings that were repaired.",
    "scrub_damaged": "scrub_damaged_total: Audit findings that were not repaired.",
}
_LOGS: _Rows = {
    "granted": "log_positions_total: Positions of the log granted in this epoch.",
    "epoch": "log_epoch: Epoch in which the sequencer grants positions of the log.",
    "tail": "log_tail: Next position of the log that the sequencer will grant.",
}


@contextmanager
def served(listen: str | None, status: Callable[[], Status]) -> Iterator[None]:
    """Serve metrics until the end of the ``with`` block, which must run in the event loop's thread.

    Args:
        listen: the ``HOST:PORT`` to listen on; None means no metrics.
        status: a function that returns the answer to STATUS; it is called in the event loop.

    Raises:
        ValueError, ZlogError: see :func:`zlog.metrics.serve`.
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
    """Measures how late the event loop runs timers."""

    def __init__(self) -> None:
        self._late = Distribution(_LAGS)

    async def measure(self) -> None:
        """Measure until cancelled."""
        while True:
            due = time.monotonic() + _PULSE_SECONDS
            await asyncio.sleep(_PULSE_SECONDS)
            self._late.add(max(0.0, time.monotonic() - due))

    def collect(self) -> Iterator[Metric]:
        """Return the metric for a scrape."""
        what = "Seconds by which the event loop ran a timer late, measured four times a second."
        yield histogram("seqr_event_loop_lag_seconds", what, [((), self._late)])


class Collector:
    """Reads STATUS in the event loop, for the thread that answers a scrape."""

    def __init__(self, status: Callable[[], Status], loop: asyncio.AbstractEventLoop) -> None:
        self._status = status
        self._loop = loop

    def collect(self) -> Iterator[Metric]:
        """Return the metrics for a scrape: only ``up`` if the loop does not answer."""

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
    """Return the metrics for an answer to STATUS; None without an answer."""
    from prometheus_client.core import InfoMetricFamily as Info

    what = "up: 1 if the event loop answered within 5 s. If it is 0, other metrics are missing."
    yield from _families({"up": what}, (), [((), {"up": status is not None})])
    if status is None:
        return
    build = {"version": status["version"], "address": status["address"]}
    what = "Always 1. The labels show the program's version and the address for clients in views."
    yield Info("zlog_seqr", what, value=build)
    yield from _families(_SEQUENCER, (), [((), status)])
    closed = [([reason], {"count": count}) for reason, count in status["closed"].items()]
    what = (
        "closed_connections_total: Connections refused or closed, by reason: limit, tls,"
        " certificate, token, malformed, silent, stalled or idle."
    )
    yield from _families({"count": what}, ("reason",), closed)
    namespaces = [_labelled(_namespace_fields(each), 2) for each in status["namespaces"]]
    yield from _families(_NAMESPACES, _LOG_LABELS[:2], namespaces)
    yield from _families(_LOGS, _LOG_LABELS, [_labelled(each, 3) for each in status["logs"]])


def _namespace_fields(each: Status) -> Status:
    fields = {**each, "leads": each["role"] == "leader", "standbys": len(each["others"])}
    for group in ("duties", "scrub"):
        fields.update((f"{group}_{key}", value) for key, value in each[group].items())
    return fields


def _labelled(fields: Status, count: int) -> tuple[Sequence[str], Status]:
    return [fields[label] for label in _LOG_LABELS[:count]], fields


def _families(
    rows: _Rows, labels: Sequence[str], samples: Sequence[tuple[Sequence[str], Status]]
) -> Iterator[Metric]:
    """Return a metric for each row, with a value from the fields of each sample."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for key, row in rows.items():
        name, what = row.split(": ", 1)
        kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
        family = kind(f"zlog_seqr_{name}", what, labels=labels)
        for values, fields in samples:
            family.add_metric(values, float(fields[key]))
        yield family
