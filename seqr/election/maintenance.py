"""Maintenance of the logs in a namespace, which its leader does once a minute."""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import asdict, dataclass, field

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.options import has_retention
from zlog._base.settings import HandleOptions
from zlog._catalog.directory import Directory
from zlog._client import LogClient
from zlog._layout.reclaim import reclaim
from zlog._trim.retention import enforce
from zlog.errors import LogNotFound, ZlogError
from zlog.seqr.failures import FailuresLogged

_logger = logging.getLogger(__name__)

DUTY_SECONDS = 60.0
"""Seconds between two rounds."""

_LOG_SECONDS_MAX = 30.0
"""Time limit for one log. The next round continues."""

_LOGS_PER_ROUND = 256
"""The minimum number of logs, of all logs in turn, that a round maintains."""

_NAMES_PER_SHARD = 32


@dataclass
class DutyStatus:
    """What maintenance has done since this sequencer began to lead.

    Attributes:
        rounds: the number of completed rounds.
        failures: the number of logs on which a round failed.
        trimmed: the number of positions that retention trimmed.
        reclaimed: the number of stripes whose objects were removed.
        ended: when the last round ended, on the monotonic clock. Before the first round ends, this
            is the time at which the sequencer began to lead.
    """

    rounds: int = 0
    failures: int = 0
    trimmed: int = 0
    reclaimed: int = 0
    ended: float = field(default_factory=time.monotonic)

    def to_json(self) -> dict[str, object]:
        """Return the fields for STATUS, with the age of the last round instead of its time."""
        fields = asdict(self)
        fields["age_s"] = round(time.monotonic() - fields.pop("ended"), 3)
        return fields


class Duties:
    """Trims logs according to their retention, and removes unneeded stripe objects.

    A client leaves such objects if it dies before it has removed them, or cannot reach them.

    Each round maintains all logs that the directory lists as having a retention. The list may be
    wrong, so each round also checks a few other logs, and corrects the list.
    """

    def __init__(self, io: Io, status: DutyStatus | None = None) -> None:
        self._io = io
        self._status = status or DutyStatus()
        self._directory = Directory(io)
        self._settings = HandleOptions(timeout=_LOG_SECONDS_MAX)
        self._reclaimed: dict[tuple[str, int], frozenset[int]] = {}
        self._after = ""  # the last log that had its turn

    async def round(self) -> None:
        """Maintain logs one after another. If one fails, the round continues with the next log.

        Raises:
            ZlogError: the names of the logs could not be read.
        """
        before, self._reclaimed = self._reclaimed, {}
        retained = {*await self._directory.retained.names(self._deadline())}
        for name in sorted(retained.union(await self._next())):
            with FailuresLogged("maintenance failed log=%s", name) as outcome:
                try:
                    await self._maintain(name, before, listed=name in retained)
                except LogNotFound:
                    if name in retained:
                        await self._list(name, retained=False)
            self._status.failures += outcome.failed
        self._status.rounds += 1
        self._status.ended = time.monotonic()

    async def _next(self) -> list[str]:
        """Return the names of the logs whose turn it is."""
        names: list[str] = []
        while len(names) < _LOGS_PER_ROUND:
            page, self._after = await self._directory.logs.page(
                self._after, self._deadline(), per_shard=_NAMES_PER_SHARD
            )
            names += page
            if not self._after:
                break
        return names

    async def _maintain(
        self, name: str, reclaimed: dict[tuple[str, int], frozenset[int]], *, listed: bool
    ) -> None:
        client = await LogClient.open(self._io, name, self._settings)
        layout = client.layout
        if has_retention(layout.view.options) != listed:
            await self._list(name, retained=not listed)
        log = (name, layout.view.log_id)
        layout.reclaimed = reclaimed.get(log, layout.reclaimed)
        before = layout.view.trim_point
        point = await enforce(client.reader, client.deadline(), now=False)
        if point > before:
            self._status.trimmed += point - before
            _logger.info("trimmed by retention log=%s to=%d", name, point)
        count = await reclaim(layout, client.deadline())
        if count:
            self._status.reclaimed += count
            _logger.info("freed space log=%s stripes=%d", name, count)
        if layout.reclaimed:
            self._reclaimed[log] = layout.reclaimed

    async def _list(self, name: str, *, retained: bool) -> None:
        """Add a log to the list of logs with a retention, or remove it."""
        names = self._directory.retained
        change = names.add_all if retained else names.remove_all
        with contextlib.suppress(ZlogError):  # for example if its caps do not allow it
            await change([name], self._deadline())

    def _deadline(self) -> Deadline:
        return deadline_of(self._io, _LOG_SECONDS_MAX)
