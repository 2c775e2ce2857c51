"""Metrics of spools for prometheus-client."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from zlog.errors import ZlogError
from zlog.spool._local import SpoolStat
from zlog.spool._spool import open_spools

if TYPE_CHECKING:
    from prometheus_client import Metric


def spool_metrics(stats: Iterable[SpoolStat] | None = None) -> Iterator[Metric]:
    """Return metrics for prometheus-client; None means those of this process's open spools."""
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge

    stats = _open_stats() if stats is None else stats
    what = "Entries that were removed because the spool was full."
    dropped = Counter("zlog_spool_dropped_entries", what, labels=["directory"])
    gauges = [
        Gauge(f"zlog_spool_{name}", what, labels=["directory"])
        for name, what in (
            ("entries", "Entries that wait in the spool."),
            ("bytes", "Size of the waiting entries in the spool."),
            ("oldest_seconds", "Age of the oldest waiting entry; 0 if there is none."),
            ("failed", "0 after a success, 1 after a failure, 2 if an error must be fixed."),
        )
    ]
    for stat in stats:
        dropped.add_metric([stat.directory], stat.dropped)
        failed = bool(stat.error) + (stat.state == "blocked")
        values = (stat.entries, stat.bytes, stat.age, failed)
        for gauge, value in zip(gauges, values, strict=True):
            gauge.add_metric([stat.directory], value)
    return iter([*gauges, dropped])


def _open_stats() -> Iterator[SpoolStat]:
    for spool in [*open_spools]:
        with contextlib.suppress(ZlogError):  # it may be closed by then, or its disk may fail
            yield spool.stat()
