"""The verb exporter: what only the store knows of its logs, for Prometheus."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

import zlog
from zlog.cli.output import say
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.verb import Verb
from zlog.cli.watch import Watch
from zlog.metrics import serve
from zlog.overview import LogContent, LogOverview

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

LISTEN_DEFAULT = "127.0.0.1:7461"

_CURSORS_MAX = 16
"""Of one log, those that are furthest behind."""


@click.command(
    cls=Verb,
    examples="""
    zlog exporter
    zlog --store ceph://logs exporter --listen 0.0.0.0:7461 --match 'orders-*'
    """,
)
@click.option(
    "--listen",
    default=LISTEN_DEFAULT,
    show_default=True,
    metavar="HOST:PORT",
    help="Serve metrics there, to all who can connect; port 0 takes a free port.",
)
@click.option(
    "--match", default="*", metavar="PATTERN", help="Only logs with such names, as of files."
)
@click.option(
    "--logs",
    "logs_max",
    type=click.IntRange(1, 100_000),
    default=1000,
    show_default=True,
    help="Look at so many logs at most, by name.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1),
    default=15.0,
    metavar="SECONDS",
    show_default=True,
    help="Look at all of them this often.",
)
@click.option(
    "--contents",
    type=click.IntRange(0, 100_000),
    default=100,
    show_default=True,
    help="Ask the objects of so many logs, by turns, each time.",
)
@pass_session
def exporter(
    session: Session, listen: str, match: str, logs_max: int, interval: float, contents: int
) -> None:
    """Serve metrics of all logs to Prometheus.

    The store is looked at in the background; a scrape answers with what was found last, and says
    how old it is. It serves until Ctrl-C or SIGTERM.
    """
    with session.connect() as store, usage_errors():
        served = Exporter(Watch(store, match, logs_max, contents, session.timeout))
        with serve(listen, [served]) as address:
            say(f"metrics at http://{address}/metrics")
            asyncio.run(served.run(interval))


class Exporter:
    """Prometheus' collector of what a watch has seen last."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._failures = 0

    async def run(self, interval: float) -> None:
        """Look at all logs, again and again, until SIGTERM or SIGINT."""
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        while not stop.is_set():
            began = time.monotonic()
            try:
                await self._watch.look()
            except zlog.ZlogError as error:
                say(f"could not look at the logs: {error}")
                self._failures += 1
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stop.wait(), began + interval - time.monotonic())

    def describe(self) -> Sequence[Metric]:
        """Say nothing before the first look."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Make the metrics of one scrape."""
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        seen = self._watch.last
        logs = [*seen.logs.values()]
        sound = [log for log in logs if not log.error]
        yield Gauge("zlog_store_logs", "That are looked at.", value=len(logs))
        yield Gauge("zlog_store_logs_left_out", "Above the limit of --logs.", value=seen.left_out)
        yield Gauge("zlog_store_log_errors", "That can't be read.", value=len(logs) - len(sound))
        yield Gauge("zlog_store_look_seconds", "That the last look took.", value=seen.seconds)
        yield Gauge("zlog_store_looked_timestamp_seconds", "When it ended.", value=seen.at)
        yield Counter(
            "zlog_store_look_failures", "Looks at the names that failed.", value=self._failures
        )
        for name, what, value in _OF_LOG:
            gauge = Gauge(f"zlog_log_{name}", what, labels=["log"])
            for log in sound:
                gauge.add_metric([log.name], value(log))
            yield gauge
        lag = Gauge("zlog_log_cursor_lag", "Positions to the tail.", labels=["log", "cursor"])
        for log in sound:
            behind = sorted(log.cursors, key=lambda cursor: -cursor.lag)[:_CURSORS_MAX]
            for cursor in behind:
                lag.add_metric([log.name, cursor.name], cursor.lag)
        yield lag
        contents = [
            (log.name, *seen.contents[log.name]) for log in sound if log.name in seen.contents
        ]
        for name, what, of in _OF_CONTENT:
            gauge = Gauge(f"zlog_log_{name}", what, labels=["log"])
            for log_name, _, content in contents:
                gauge.add_metric([log_name], of(content))
            yield gauge
        asked = Gauge(
            "zlog_log_contents_timestamp_seconds", "When its objects were asked.", labels=["log"]
        )
        for log_name, when, _ in contents:
            asked.add_metric([log_name], when)
        yield asked


_OF_LOG: tuple[tuple[str, str, Callable[[LogOverview], float]], ...] = (
    ("tail", "One past the highest position that is taken.", lambda log: log.tail),
    ("trim_point", "Positions below it are trimmed.", lambda log: log.trim_point),
    ("epoch", "Of the newest view.", lambda log: log.epoch),
    ("stripes", "Of the view.", lambda log: log.stripes),
    ("width", "Stripe objects of the live stripe.", lambda log: log.width),
    ("lag", "Of the cursor that is furthest behind, in positions.", lambda log: log.lag),
)

_OF_CONTENT: tuple[tuple[str, str, Callable[[LogContent], float]], ...] = (
    ("entries", "That are not trimmed.", lambda content: content.entries),
    ("bytes", "Data of these.", lambda content: content.bytes),
    ("stored_bytes", "What the data takes in the objects.", lambda content: content.stored_bytes),
    ("objects", "Stripe objects.", lambda content: content.objects),
    ("records", "In the fullest live object.", lambda content: content.records),
    ("fullness_ratio", "Of that object; a new stripe begins at 1.", lambda c: c.fullness),
)
