"""What a leader does for the logs of its namespace, unasked and from time to time."""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, field

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.options import has_retention
from zlog._base.settings import HandleOptions
from zlog._catalog.directory import Directory
from zlog._client import LogClient
from zlog._layout.reclaim import reclaim
from zlog._trim.retention import enforce
from zlog.errors import LogNotFound, ZlogError

_logger = logging.getLogger(__name__)

DUTY_SECONDS = 60.0
"""Between two rounds."""

_LOG_SECONDS_MAX = 30.0
"""For one log; what is left undone by then waits for the next round."""


_LOGS_PER_ROUND = 256
"""Of all logs, so many have their turn in a round, at least."""

_NAMES_PER_SHARD = 32


@dataclass
class DutyStatus:
    """What was done since this sequencer came to lead, for operators.

    Attributes:
        rounds: that came to their end.
        failures: logs that a round could not look after.
        trimmed: positions that retention has trimmed.
        reclaimed: stripes whose objects were removed.
        ended: when the last round did, or this began, on the monotonic clock.
    """

    rounds: int = 0
    failures: int = 0
    trimmed: int = 0
    reclaimed: int = 0
    ended: float = field(default_factory=time.monotonic)

    def to_json(self) -> dict[str, object]:
        """Return what STATUS tells."""
        shown = {name: value for name, value in vars(self).items() if name != "ended"}
        return shown | {"age_s": round(time.monotonic() - self.ended, 3)}


class Duties:
    """Trims logs as their settings say (``zlog retention``), and gives space back.

    Writers and trims free the space of stripes that are no longer needed. What they left
    when they died, or could not reach, is found here.

    A round is about the logs that have a retention set, as far as the directory lists them, and
    some of all others, which take turns: so the list is put right, too.

    Args:
        io: over the store of the namespace.
        status: to be kept up to date, where one wants to know.
    """

    def __init__(self, io: Io, status: DutyStatus | None = None) -> None:
        self._io = io
        self._status = status or DutyStatus()
        self._directory = Directory(io)
        self._settings = HandleOptions(timeout=_LOG_SECONDS_MAX)
        self._reclaimed: dict[tuple[str, int], frozenset[int]] = {}
        self._after = ""  # the last log that had its turn

    async def round(self) -> None:
        """Look after logs, one after the other, so that it is hardly felt.

        One that fails is tried again in the next round, and does not hold up the others.

        Raises:
            ZlogError: not even the logs' names could be read.
        """
        before, self._reclaimed = self._reclaimed, {}
        retained = {*await self._directory.retained.names(self._deadline())}
        for name in sorted(retained.union(await self._next())):
            try:
                await self._look_after(name, before, listed=name in retained)
            except LogNotFound:
                if name in retained:
                    await self._list(name, retained=False)
            except ZlogError as error:
                self._status.failures += 1
                _logger.warning("could not look after log=%s: %s", name, error)
            except Exception:  # any error: the next round tries again
                self._status.failures += 1
                _logger.exception("could not look after log=%s", name)
        self._status.rounds += 1
        self._status.ended = time.monotonic()

    async def _next(self) -> list[str]:
        """Return the names of those whose turn it is."""
        names: list[str] = []
        while len(names) < _LOGS_PER_ROUND:
            page, self._after = await self._directory.logs.page(
                self._after, self._deadline(), per_shard=_NAMES_PER_SHARD
            )
            names += page
            if not self._after:
                break
        return names

    async def _look_after(
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
            _logger.info("trimmed log=%s to=%d, as its retention says", name, point)
        count = await reclaim(layout, client.deadline())
        if count:
            self._status.reclaimed += count
            _logger.info("gave space back log=%s stripes=%d", name, count)
        if layout.reclaimed:
            self._reclaimed[log] = layout.reclaimed

    async def _list(self, name: str, *, retained: bool) -> None:
        """Enter a log in the list of those with a retention, or strike it off."""
        change = (
            self._directory.retained.add_all if retained else self._directory.retained.remove_all
        )
        with contextlib.suppress(ZlogError):  # such as for want of caps; its turn comes again
            await change([name], self._deadline())

    def _deadline(self) -> Deadline:
        return deadline_of(self._io, _LOG_SECONDS_MAX)
