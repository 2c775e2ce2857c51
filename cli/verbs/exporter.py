"""The verb exporter: what only the store knows of its logs, for Prometheus."""

from __future__ import annotations

import asyncio
import fnmatch
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

import zlog
from zlog.cli.output import say
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.verb import Verb
from zlog.metrics import serve
from zlog.overview import LogContent, LogOverview, log_names, see_store

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

LISTEN_DEFAULT = "127.0.0.1:7461"

_CURSORS_MAX = 16
"""Of one log, those that are furthest behind."""

_NAMES_SECONDS = 60.0
"""How often new logs are looked for."""


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
        watch = Watch(store, match, logs_max, contents, session.timeout)
        with serve(listen, [watch]) as address:
            say(f"metrics at http://{address}/metrics")
            asyncio.run(watch.run(interval))


class Watch:
    """Looks at the logs of a store from time to time, and is Prometheus' collector of what it saw.

    Args:
        store: see there.
        match: a pattern of names.
        logs_max: logs that are looked at.
        contents: logs whose objects are asked each time.
        timeout: for each log, in seconds.
    """

    def __init__(
        self, store: zlog.Store, match: str, logs_max: int, contents: int, timeout: float | None
    ) -> None:
        self._store = store
        self._match = match
        self._logs_max = logs_max
        self._contents = contents
        self._timeout = timeout
        self._lock = threading.Lock()
        self._names: list[str] = []
        self._named = 0.0
        self._left_out = 0
        self._turns: deque[str] = deque()
        self._logs: dict[str, LogOverview] = {}
        self._held: dict[str, tuple[str, float, LogContent]] = {}
        self._seconds = 0.0
        self._at = 0.0
        self._failures = 0

    async def run(self, interval: float) -> None:
        """Look at all logs, again and again, until SIGTERM or SIGINT."""
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        while not stop.is_set():
            began = time.monotonic()
            try:
                await self.look()
            except zlog.ZlogError as error:
                say(f"could not look at the logs: {error}")
                self._failures += 1
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stop.wait(), began + interval - time.monotonic())

    async def look(self) -> None:
        """Look at all logs once, and at the objects of those whose turn it is.

        Raises:
            ZlogError: the names could not be read.
        """
        began = time.monotonic()
        if not self._named or began - self._named > _NAMES_SECONDS:
            names = await log_names(self._store, timeout=self._timeout)
            names = [name for name in names if fnmatch.fnmatchcase(name, self._match)]
            self._names, self._named = names[: self._logs_max], began
            self._left_out = len(names) - len(self._names)
        known = set(self._names)
        turns = [*dict.fromkeys((*(n for n in self._turns if n in known), *self._names))]
        whole, self._turns = turns[: self._contents], deque(turns[self._contents :])
        rest = known.difference(whole)
        seen = await see_store(self._store, whole, content=True, timeout=self._timeout)
        other = await see_store(self._store, sorted(rest), timeout=self._timeout)
        logs = {log.name: log for log in (*seen.logs, *other.logs)}
        for log in seen.logs:
            if log.content is not None:
                self._held[log.name] = (log.id, log.at, log.content)
        held = {name: each for name, each in self._held.items() if name in logs}
        with self._lock:
            self._logs, self._held = logs, held
            self._seconds, self._at = time.monotonic() - began, time.time()

    def describe(self) -> Sequence[Metric]:
        """Say nothing before the first look."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Make the metrics of one scrape."""
        from prometheus_client.core import CounterMetricFamily as Counter
        from prometheus_client.core import GaugeMetricFamily as Gauge

        with self._lock:
            logs, held = [*self._logs.values()], self._held
            seconds, at, failures = self._seconds, self._at, self._failures
        sound = [log for log in logs if not log.error]
        yield Gauge("zlog_store_logs", "That are looked at.", value=len(logs))
        yield Gauge("zlog_store_logs_left_out", "Above the limit of --logs.", value=self._left_out)
        yield Gauge("zlog_store_log_errors", "That can't be read.", value=len(logs) - len(sound))
        yield Gauge("zlog_store_look_seconds", "That the last look took.", value=seconds)
        yield Gauge("zlog_store_looked_timestamp_seconds", "When it ended.", value=at)
        yield Counter("zlog_store_look_failures", "Looks at the names that failed.", value=failures)
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
            (log.name, *held[log.name][1:])
            for log in sound
            if log.name in held and held[log.name][0] == log.id
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
