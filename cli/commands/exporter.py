"""The command exporter: serves metrics of all logs to Prometheus."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.groups import Seen, living
from zlog.cli.output import say
from zlog.cli.parameters import (
    interval_option,
    listen_option,
    match_option,
    number_option,
    spool_option,
)
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.watch import Watch
from zlog.metrics import serve
from zlog.overview import LogContent, LogOverview
from zlog.spool import spool_metrics

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from zlog.groups import GroupStat

LISTEN_DEFAULT = "127.0.0.1:7461"

_CURSORS_MAX = 16
"""Cursors of one log that are reported, with the largest lag first."""


@click.command(
    cls=Command,
    examples="""
    zlog exporter
    zlog --store ceph://logs exporter --listen 0.0.0.0:7461 --match 'orders-*'
    """,
)
@listen_option(LISTEN_DEFAULT, "Serve /metrics at this address, without authentication.")
@match_option
@click.option(
    "--logs",
    "logs_max",
    type=click.IntRange(1, 100_000),
    default=1000,
    show_default=True,
    help="Scan at most this many logs, in name order.",
)
@interval_option(15.0, "Scan the store for logs, and each log, this often.")
@number_option(
    "--contents",
    100,
    0,
    100_000,
    "In each scan, query objects and groups of this many logs, in turns.",
)
@spool_option
@pass_session
def exporter(
    session: Session,
    listen: str,
    match: str,
    logs_max: int,
    interval: float,
    contents: int,
    spools: tuple[str, ...],
) -> None:
    """Serve metrics of all logs to Prometheus.

    The exporter scans the store in the background, and answers each scrape with the results and the
    time of the last scan. It runs until Ctrl-C or SIGTERM.
    """
    with session.connect() as store, usage_errors():
        watch = Watch(store, match, logs_max, contents, session.timeout, session)
        served = Exporter(watch, spools)
        with serve(listen, [served]) as address:
            say(f"metrics at http://{address}/metrics")
            asyncio.run(served.run(interval))


class Exporter:
    """A collector for Prometheus that returns the newest result of a watch."""

    def __init__(self, watch: Watch, spools: Sequence[str] = ()) -> None:
        self._watch = watch
        self._spools = spools
        self._failures = 0

    async def run(self, interval: float) -> None:
        """Poll all logs until SIGTERM or SIGINT."""
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        while not stop.is_set():
            began = time.monotonic()
            try:
                await self._watch.look()
            except zlog.ZlogError as error:
                say(f"could not scan the logs: {error}")
                self._failures += 1
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stop.wait(), began + interval - time.monotonic())

    def describe(self) -> Sequence[Metric]:
        """Return no metrics, since none are known before the first poll."""
        return ()

    def _spool_stats(self) -> Iterator[zlog.SpoolStat]:
        for directory in self._spools:
            try:
                yield zlog.spool_stat(directory)
            except zlog.ZlogError as error:
                say(f"could not read the spool: {error}")

    def collect(self) -> Iterator[Metric]:
        """Return the metrics for a scrape."""
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        yield from spool_metrics(self._spool_stats())
        seen = self._watch.last
        logs = [*seen.logs.values()]
        sound = [log for log in logs if not log.error]
        for name, what, number in (
            ("logs", "Logs that the exporter scans.", len(logs)),
            ("logs_left_out", "Logs above the limit --logs, which are not scanned.", seen.left_out),
            ("log_errors", "Logs that could not be read.", len(logs) - len(sound)),
            ("look_seconds", "Seconds that the last scan of all logs took.", seen.seconds),
            (
                "looked_timestamp_seconds",
                "Time when the last scan ended, in seconds since 1970.",
                seen.at,
            ),
        ):
            yield Gauge(f"zlog_store_{name}", what, value=number)
        what = "Scans in which the names of the logs could not be read."
        yield Counter("zlog_store_look_failures", what, value=self._failures)
        for name, what, value in _OF_LOG:
            gauge = Gauge(f"zlog_log_{name}", what, labels=["log"])
            for log in sound:
                gauge.add_metric([log.name], value(log))
            yield gauge
        what = f"Positions from the cursor to the tail, for the {_CURSORS_MAX} slowest cursors."
        lag = Gauge("zlog_log_cursor_lag", what, labels=["log", "cursor"])
        for log in sound:
            behind = sorted(log.cursors, key=lambda cursor: -cursor.lag)[:_CURSORS_MAX]
            for cursor in behind:
                lag.add_metric([log.name, cursor.name], cursor.lag)
        yield lag
        yield from _of_groups(seen.groups)
        contents = [
            (log.name, *seen.contents[log.name]) for log in sound if log.name in seen.contents
        ]
        for name, what, of in _OF_CONTENT:
            gauge = Gauge(f"zlog_log_{name}", what, labels=["log"])
            for log_name, _, content in contents:
                gauge.add_metric([log_name], of(content))
            yield gauge
        what = "Time when the log's objects were last queried, in seconds since 1970."
        asked = Gauge("zlog_log_contents_timestamp_seconds", what, labels=["log"])
        for log_name, when, _ in contents:
            asked.add_metric([log_name], when)
        yield asked


def _of_groups(groups: Mapping[str, Seen]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    found = [(log, name, each) for log, seen in groups.items() for name, each in seen.items()]
    what = "Groups that could not be read."
    failed = sum(isinstance(each, str) for *_, each in found)
    yield GaugeMetricFamily("zlog_store_group_errors", what, value=failed)
    for name, what, of in _OF_GROUP:
        kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
        family = kind(f"zlog_group_{name}", what, labels=["log", "group"])
        for log, group, each in found:
            if not isinstance(each, str):
                family.add_metric([log, group], of(each))
        yield family


_OF_LOG: tuple[tuple[str, str, Callable[[LogOverview], float]], ...] = (
    ("tail", "Position after the highest position in use.", lambda log: log.tail),
    ("trim_point", "Position below which the log is trimmed.", lambda log: log.trim_point),
    ("epoch", "Epoch of the newest view.", lambda log: log.epoch),
    ("stripes", "Stripes in the newest view.", lambda log: log.stripes),
    ("width", "Stripe objects of the live stripe.", lambda log: log.width),
    ("lag", "Positions from the slowest cursor to the tail.", lambda log: log.lag),
)

_OF_GROUP: tuple[tuple[str, str, Callable[[GroupStat], float]], ...] = (
    ("lag", "Positions that the group has not finished.", lambda stat: stat.lag),
    ("oldest_seconds", "Age of the oldest unfinished entry, or 0.", lambda stat: stat.age),
    ("members", "Members that renewed their leases in time.", living),
    ("in_progress", "Jobs that members of a queue have.", lambda stat: stat.in_progress),
    ("waiting", "Jobs of a queue that wait for another attempt.", lambda stat: stat.waiting),
    ("redeliveries_total", "Jobs that were tried again.", lambda stat: stat.redeliveries),
    ("dead_letters_total", "Jobs that became dead letters.", lambda stat: stat.dead),
)

_OF_CONTENT: tuple[tuple[str, str, Callable[[LogContent], float]], ...] = (
    ("entries", "Entries that have not been trimmed.", lambda content: content.entries),
    ("bytes", "Bytes of data in untrimmed entries.", lambda content: content.bytes),
    (
        "stored_bytes",
        "Bytes that the data occupies in the objects, after compression and with MACs.",
        lambda content: content.stored_bytes,
    ),
    ("objects", "Stripe objects of the log.", lambda content: content.objects),
    (
        "records",
        "Records in the fullest object of the live stripe.",
        lambda content: content.records,
    ),
    (
        "fullness_ratio",
        "How full the live stripe's fullest object is; at 1, a new stripe begins.",
        lambda c: c.fullness,
    ),
    (
        "ended_bytes",
        "Bytes of data in ended stripes that are not offloaded.",
        lambda c: c.ended_bytes,
    ),
    ("offloaded_stripes", "Stripes that are offloaded.", lambda c: c.offloaded_stripes),
    ("offloaded_entries", "Entries in offloaded stripes.", lambda c: c.offloaded_entries),
    ("offloaded_bytes", "Bytes of data in offloaded stripes.", lambda c: c.offloaded_bytes),
    ("offloaded_file_bytes", "Bytes of the files of offloaded stripes.", lambda c: c.file_bytes),
)
