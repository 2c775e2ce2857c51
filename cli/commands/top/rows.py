"""The rows that `zlog top` shows, and their order."""

from __future__ import annotations

import fnmatch
from typing import NamedTuple

import zlog
from zlog.cli.units import human_bytes
from zlog.overview import LogOverview, StoreOverview, log_names, rates, see_store

CONTENTS_MAX = 256
"""With more logs than this, the content of objects is not requested."""


class Row(NamedTuple):
    """A log with its rates, as the view shows it.

    Attributes:
        log: the state of the log.
        rate: positions per second; None if the log was read only once.
        bytes_rate: bytes of data per second.
    """

    log: LogOverview
    rate: float | None = None
    bytes_rate: float = 0.0

    def cells(self) -> tuple[str, ...]:
        """Return the values of the columns."""
        log = self.log
        if log.error:
            return (log.name, *[""] * (len(HEAD) - 2), "can't be read")
        content = log.content
        return (
            log.name,
            "" if self.rate is None else f"{self.rate:,.0f}",
            "" if content is None else human_bytes(content.bytes),
            human_bytes(content.offloaded_bytes) if content and content.offloaded_stripes else "",
            f"{log.tail:,}",
            f"{log.trim_point:,}",
            f"{log.lag:,}" if log.cursors else "",
            "" if content is None else f"{content.fullness:.0%}",
            f"{log.width}×{log.stripe_unit}",
            f"{log.epoch} {state_of(log)}".rstrip(),
        )


HEAD = ("LOG", "RATE/s", "BYTES", "OFFLOADED", "TAIL", "TRIMMED", "LAG", "FULL", "WIDTH", "EPOCH")
SORTS = ("name", "rate", "bytes", "tail", "lag", "full")


def state_of(log: LogOverview) -> str:
    """Return a log's special state in a word."""
    if log.mirror:
        return "mirror"
    if log.read_only:
        return "read-only"
    return "exclusive" if log.writer else ""


def sorted_rows(rows: list[Row], by: str, *, reverse: bool = False) -> list[Row]:
    """Return rows in an order of ``SORTS``: names ascend, numbers descend, or the reverse."""
    by_name = sorted(rows, key=lambda row: row.log.name, reverse=reverse and by == "name")
    keys = {
        "rate": lambda row: row.rate or 0.0,
        "bytes": lambda row: row.log.content.bytes if row.log.content else 0,
        "tail": lambda row: row.log.tail,
        "lag": lambda row: row.log.lag,
        "full": lambda row: row.log.content.fullness if row.log.content else 0.0,
    }
    return by_name if by == "name" else sorted(by_name, key=keys[by], reverse=not reverse)


def rows_of(before: StoreOverview | None, now: StoreOverview) -> list[Row]:
    """Return the logs with their rates since an earlier poll."""
    known = {} if before is None else {log.name: log for log in before.logs}
    return [
        Row(log, *(rates(known[log.name], log) if log.name in known else ())) for log in now.logs
    ]


def summary(seen: StoreOverview, rows: list[Row]) -> str:
    """Return a line about all logs."""
    known = [row.rate for row in rows if row.rate is not None]
    total = f"{sum(known):,.0f} entries/s   " if known else ""
    logs = "1 log" if len(rows) == 1 else f"{len(rows):,} logs"
    return f"{logs}   {total}{sequencer_line(seen)}"


def sequencer_line(seen: StoreOverview) -> str:
    """Return a line on which sequencer grants positions."""
    if seen.sequencer_error:
        return f"sequencer: {seen.sequencer_error}"
    status = seen.sequencer
    if status is None:
        return "no sequencer" if seen.url.startswith("ceph") else "sequencer: shared"
    others = {other for each in status.get("namespaces", ()) for other in each["others"]}
    standbys = f", {len(others)} standing by" if others else ""
    rate = status.get("grants_per_second", 0)
    return f"{status['role']} {status['address']}: {rate:,.0f} grants/s{standbys}"


async def look(
    store: zlog.Store, pattern: str, timeout: float | None, *, content: bool | None = None
) -> StoreOverview:
    """Read all logs that match, and the contents of their objects unless there are many."""
    names = [
        name
        for name in await log_names(store, timeout=timeout)
        if fnmatch.fnmatchcase(name, pattern)
    ]
    asked = len(names) <= CONTENTS_MAX if content is None else content
    return await see_store(store, names, content=asked, timeout=timeout)
