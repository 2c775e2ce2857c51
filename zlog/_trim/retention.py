"""Retention: trims the entries that exceed a log's limits of age, bytes, entries or tags.

The limits are options in the log's view. The command ``zlog retention --apply``,
:meth:`zlog.Log.apply_retention` and the leading sequencer enforce them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from zlog._base.deadline import Deadline
from zlog._base.log_options import LogOptions
from zlog._base.options import RETENTION, amount
from zlog._layout.layout import Layout
from zlog._layout.reconfigure import reconfigure
from zlog._read.read import Reader
from zlog._trim.age import Watch, watch
from zlog._trim.compact import compact, emptied_end
from zlog._trim.count import Size, end_beyond
from zlog._trim.trim import trim_to
from zlog.errors import CorruptEntry, HeldByCursor
from zlog.limits import RETENTION_SKEW_SECONDS

_logger = logging.getLogger(__name__)

_NO_LIMIT = 2**64
"""A limit that is higher than the size of any log."""

_LIMIT_MAX = 2**53
"""Up to this number, limits are stored exactly. They are read back as floats."""

DOUBT_HINT = (
    "Synchronize the clocks of the writers and of the machine that enforces retention, for"
    " instance by NTP, or allow a larger difference with `zlog retention LOG --skew SPAN`."
)


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits of a log. Entries beyond any of them are trimmed, but no further than a cursor.

    Each limit is a number from 0 to 2^53; None means no limit.

    Attributes:
        age: the maximum age of an entry, in seconds.
        bytes: the maximum size of the data of all entries together.
        entries: the maximum number of entries.
        skew: how many seconds clocks may differ before reports mention it.
        compact_after: the age in seconds above which only the newest entry of each tag is kept.
    """

    age: float | None = None
    bytes: int | None = None
    entries: int | None = None
    skew: float = RETENTION_SKEW_SECONDS
    compact_after: float | None = None

    def __post_init__(self) -> None:
        for what in ("age", "skew", "compact_after"):
            each = getattr(self, what)
            if each is None and what != "skew":
                continue
            if not (isinstance(each, (int, float)) and 0 <= each <= _LIMIT_MAX):
                raise ValueError(f"{what} must be a number of seconds up to 2^53, not {each!r}")
        for what in ("bytes", "entries"):
            limit = getattr(self, what)
            if limit is not None and not (isinstance(limit, int) and 0 <= limit <= _LIMIT_MAX):
                raise ValueError(f"the {what} to keep must be a number up to 2^53, not {limit!r}")

    @property
    def unlimited(self) -> bool:
        """Whether everything is kept."""
        limits = (self.age, self.bytes, self.entries, self.compact_after)
        return limits == (None,) * 4

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Retention:
        """Read the settings from a view's options.

        An option that is not a number in range is ignored, so that a typo trims nothing.
        """
        limits: dict[str, Any] = {}
        for field, key in RETENTION.items():
            number = amount(options.get(key))
            if number is not None and number <= _LIMIT_MAX:
                limits[field] = int(number) if field in ("bytes", "entries") else number
        return cls(**limits)

    def options(self) -> dict[str, str | None]:
        """Return the settings as options for reconfiguring a log. None removes an option."""
        stored: dict[str, str | None] = {}
        for field, key in RETENTION.items():
            limit = getattr(self, field)
            default = limit is None or (field, limit) == ("skew", RETENTION_SKEW_SECONDS)
            stored[key] = None if default else f"{limit:.16g}"
        return stored


class RetentionReport(NamedTuple):
    """The state of retention as of the last round.

    Attributes:
        known_age: how old the oldest entries are known to be, in seconds.
        doubt: which clocks disagreed in the last round; empty if none did. If the enforcing
            machine's own clocks disagreed, nothing was trimmed by age.
        compacted: a position below which no entry is superseded by another entry below it.
        compacting: whether compaction is unfinished. The next round continues it.
    """

    known_age: float
    doubt: str
    compacted: int = 0
    compacting: bool = False


async def set_retention(layout: Layout, retention: Retention, deadline: Deadline) -> None:
    """Set a log's retention. This makes a new view in which only the options differ."""
    if not isinstance(retention, Retention):
        raise TypeError(f"expected a Retention, as in Retention(age=3600), not {retention!r}")
    await reconfigure(layout, LogOptions(options=retention.options()), deadline)


async def enforce(reader: Reader, deadline: Deadline, *, now: bool = True) -> int:
    """Trim the entries beyond a log's limits, up to its lowest cursor. Returns the trim point.

    Each call examines only the new entries and those that it trims. If the client dies, the next
    call continues. If ``now`` is False, a log is compacted only if many of its entries are new.
    """
    layout = reader.layout
    view = await layout.refresh(deadline)
    retention = Retention.of(view.options)
    limit = Size(
        _NO_LIMIT if retention.entries is None else retention.entries,
        _NO_LIMIT if retention.bytes is None else retention.bytes,
    )
    if min(limit) < _NO_LIMIT:
        await _trim_up_to(layout, await end_beyond(layout, limit, deadline), deadline)
    ages = [age for age in (retention.age, retention.compact_after) if age is not None]
    if ages:
        found, watched = await watch(reader, max(ages), retention.skew, deadline)
        if found.doubt:
            _logger.warning(
                "retention of log %r: the clocks disagree: %s. %s",
                view.log,
                found.doubt,
                DOUBT_HINT,
            )
        if watched is not None and retention.age is not None:
            await _trim_up_to(layout, found.old_end(watched, retention.age), deadline)
        if watched is not None and retention.compact_after is not None:
            end = found.old_end(watched, retention.compact_after)
            progress = await compact(layout, end, deadline, now=now)
            await _trim_up_to(layout, await emptied_end(layout, progress.done, deadline), deadline)
    return layout.view.trim_point


async def report(layout: Layout, deadline: Deadline) -> RetentionReport:
    """Return the state of retention as of the last round."""
    _, state = await layout.head.retention_read(layout.view.log_id, deadline)
    found = Watch.decode(state)
    return RetentionReport(
        found.known_age(found.now(layout.io.steady_clock())),
        found.doubt,
        found.compacted.done,
        found.compacted.unfinished,
    )


async def _trim_up_to(layout: Layout, point: int, deadline: Deadline) -> None:
    """Trim to ``point``, or to the lowest cursor if that comes first."""
    while point > layout.view.trim_point:
        try:
            await trim_to(layout, point, deadline)
            break
        except HeldByCursor as held:
            point = held.position
        except CorruptEntry as error:
            what = (layout.view.log, layout.view.trim_point, error, error.hint)
            _logger.warning(
                "log %r is trimmed to %d, but some space could not be freed: %s. %s", *what
            )
            break
