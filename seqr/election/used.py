"""Which logs the next leader takes over: the store's list of those that clients have open here."""

from __future__ import annotations

import logging
from typing import Protocol

from zlog._base.deadline import Deadline
from zlog._base.io import Io
from zlog._catalog.directory import Directory
from zlog.errors import ZlogError
from zlog.seqr.namespaces import Namespace

_logger = logging.getLogger(__name__)

UNUSED_SECONDS = 60.0
"""How long no client has a log open before it is struck off."""


class Opened(Protocol):
    """Who knows which logs clients have open."""

    def used(self, namespace: Namespace) -> set[str]:
        """Names of the logs of a namespace that some client has open, or asks for."""


class UsedLogs:
    """Keeps the list of logs in use, for as long as a sequencer leads.

    The list is a hint. A log that it lacks is taken over once a client asks for it.

    Args:
        namespace: where.
        io: over the store of the namespace.
        logs: knows which are open.
    """

    def __init__(self, namespace: Namespace, io: Io, logs: Opened) -> None:
        self._namespace = namespace
        self._io = io
        self._logs = logs
        self._list = Directory(io).used
        self._seen: dict[str, float] = {}  # what is listed, and when it was last seen in use
        self._told = False

    async def inherit(self, deadline: Deadline) -> list[str]:
        """Return what the leader before this one has listed.

        Raises:
            ZlogError: the list can't be read.
        """
        names = await self._list.names(deadline)
        self._seen = dict.fromkeys(names, self._io.monotonic())
        return names

    async def update(self, deadline: Deadline) -> None:
        """List what is in use now, and strike off what has not been for a while."""
        now = self._io.monotonic()
        used = self._logs.used(self._namespace)
        try:
            await self._list.add_all(used - self._seen.keys(), deadline)
            self._seen.update(dict.fromkeys(used, now))
            unused = [name for name, at in self._seen.items() if now - at > UNUSED_SECONDS]
            await self._list.remove_all(unused, deadline)
        except ZlogError as error:  # such as for want of caps
            if not self._told:
                _logger.warning(
                    "can't list the logs in use namespace=%s: %s", self._namespace, error
                )
            self._told = True
            return
        for name in unused:
            del self._seen[name]
