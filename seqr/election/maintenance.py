"""What a leader does for the logs of its namespace, unasked and from time to time."""

from __future__ import annotations

import logging

from zlog._base.io import Io, deadline_of
from zlog._base.settings import Settings
from zlog._client import LogClient
from zlog._layout.head import Directory
from zlog._layout.reclaim import reclaim
from zlog._trim.retention import enforce
from zlog.errors import LogNotFound, ZlogError

_logger = logging.getLogger(__name__)

DUTY_SECONDS = 60.0
"""Between two rounds."""

_LOG_SECONDS_MAX = 30.0
"""For one log; what is left undone by then waits for the next round."""


class Duties:
    """Trims every log as its settings say (``zlog retention``), and gives space back.

    Writers and trims free the space of stripes that are no longer needed. What they left
    when they died, or could not reach, is found here.

    Args:
        io: over the store of the namespace.
    """

    def __init__(self, io: Io) -> None:
        self._io = io
        self._settings = Settings(timeout=_LOG_SECONDS_MAX)
        self._reclaimed: dict[tuple[str, int], frozenset[int]] = {}

    async def round(self) -> None:
        """Look after all logs, one after the other, so that it is hardly felt.

        One that fails is tried again in the next round, and does not hold up the others.

        Raises:
            ZlogError: not even the logs' names could be read.
        """
        before, self._reclaimed = self._reclaimed, {}
        for name in await Directory(self._io).names(deadline_of(self._io, _LOG_SECONDS_MAX)):
            try:
                await self._look_after(name, before)
            except LogNotFound:
                continue
            except ZlogError as error:
                _logger.warning("could not look after log=%s: %s", name, error)
            except Exception:  # any error: the next round tries again
                _logger.exception("could not look after log=%s", name)

    async def _look_after(
        self, name: str, reclaimed: dict[tuple[str, int], frozenset[int]]
    ) -> None:
        client = await LogClient.open(self._io, name, self._settings)
        layout = client.layout
        log = (name, layout.view.log_id)
        layout.reclaimed = reclaimed.get(log, layout.reclaimed)
        before = layout.view.trim_point
        point = await enforce(client.reader, client.deadline())
        if point > before:
            _logger.info("trimmed log=%s to=%d, as its retention says", name, point)
        count = await reclaim(layout, client.deadline())
        if count:
            _logger.info("gave space back log=%s stripes=%d", name, count)
        if layout.reclaimed:
            self._reclaimed[log] = layout.reclaimed
