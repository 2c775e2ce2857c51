"""What a leader does for the logs of its place, unasked and from time to time."""

from __future__ import annotations

import logging

from zlog._client import LogClient, Settings
from zlog._head import Directory
from zlog._io import Io, deadline_of
from zlog._retention import enforce
from zlog.errors import LogNotFound, ZlogError

_logger = logging.getLogger(__name__)

DUTY_SECONDS = 60.0
"""Between two rounds."""

_LOG_SECONDS_MAX = 30.0
"""For one log; what is left undone by then waits for the next round."""


async def look_after_logs(io: Io) -> None:
    """Trim every log of a place as its settings say (``zlog retention``).

    One log after the other, so that it is hardly felt. One that fails is tried again in the next
    round, and keeps nobody from the others.

    Raises:
        ZlogError: not even the logs' names could be read.
    """
    settings = Settings(timeout=_LOG_SECONDS_MAX)
    for name in await Directory(io).names(deadline_of(io, _LOG_SECONDS_MAX)):
        try:
            client = await LogClient.open(io, name, settings)
            before = client.layout.view.trim_point
            point = await enforce(client, client.deadline(None))
        except LogNotFound:
            continue
        except ZlogError as error:
            _logger.warning("could not look after log=%s: %s", name, error)
            continue
        if point > before:
            _logger.info("trimmed log=%s to=%d, as its retention says", name, point)
