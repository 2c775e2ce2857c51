"""The work of a leader in its namespace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.sequencer import LogAddress, is_remote
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head
from zlog.errors import LogNotFound, ZlogError
from zlog.seqr.election.lease import Lease
from zlog.seqr.election.maintenance import DUTY_SECONDS, Duties, DutyStatus
from zlog.seqr.election.scrubbing import Scrubbing, ScrubStatus
from zlog.seqr.failures import FailuresLogged
from zlog.seqr.limits import Limits
from zlog.seqr.namespaces import Namespace
from zlog.seqr.server import Server

_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_ANNOUNCEMENT_SECONDS = 5.0
"""How often the leader checks its announcement in the store's directory."""

UNUSED_SECONDS = 60.0
"""A log that no client has had open for this long is removed from the list of logs in use."""


@dataclass(eq=False)
class Leadership:
    """The work of a sequencer while it leads a namespace.

    It announces itself in the directory, takes over its predecessor's logs, and maintains all logs.
    It also lists the logs that clients have open, so that its successor can take them over at once.
    Its successor takes over all other logs when clients ask for them.
    """

    _namespace: Namespace
    _io: Io
    _address: str
    _lease: Lease
    _server: Server
    _limits: Limits

    def __post_init__(self) -> None:
        self.scrub = ScrubStatus()
        self.duties = DutyStatus()
        self._used = Directory(self._io).used
        self._seen: dict[str, float] = {}  # the listed logs, and when each was last in use
        self._warned = False

    async def run(self) -> None:
        """Lead until cancelled. Long work runs in separate tasks, so that nothing waits for it."""
        work = [self._hold(), self._serve_duties()]
        rate = self._limits.scrub_bytes_s_max
        if rate:
            work.append(Scrubbing(self._io, rate, lambda: bool(self._lease.left), self.scrub).run())
        await asyncio.gather(*work)

    async def _hold(self) -> None:
        """Keep the announcement, and take over the logs of the previous leader."""
        left: list[str] | None = None  # logs to take over; None if the list was not read yet
        while True:
            with FailuresLogged(
                "could not renew the announcement or take over logs namespace=%s", self._namespace
            ) as outcome:
                if self._lease.left:  # otherwise this process slept, and another one may lead
                    await announce(self._io, self._address, self._deadline())
                if left is None:
                    left = await self._used.names(self._deadline())
                    self._seen = dict.fromkeys(left, self._io.monotonic())
                left = await self._take_over(left)
                if self._lease.left:
                    await self._list_used()
            await self._io.sleep(_RETRY_SECONDS if outcome.failed else _ANNOUNCEMENT_SECONDS)

    async def _serve_duties(self) -> None:
        duties = Duties(self._io, self.duties)
        while True:
            await self._io.sleep(DUTY_SECONDS)
            with FailuresLogged("maintenance failed namespace=%s", self._namespace):
                if self._lease.left:
                    await duties.round()

    async def _take_over(self, names: list[str]) -> list[str]:
        """Take over the given logs, except those whose views name no sequencer.

        Returns the logs whose heads could not be read.
        """
        rest, failed = iter(names), list[str]()
        await asyncio.gather(*(self._adopt(rest, failed) for _ in range(self._limits.sweep_max)))
        return failed

    async def _adopt(self, names: Iterator[str], failed: list[str]) -> None:
        for name in names:
            try:
                view = (await Head(self._io, name).read(self._deadline())).view
            except LogNotFound:
                continue
            except ZlogError as error:
                _logger.warning("could not read the head of log=%s: %s", name, error)
                failed.append(name)
                continue
            if view is not None and not view.removed and is_remote(view.sequencer):
                await self._server.adopt(LogAddress(*self._namespace, name, view.log_id))

    async def _list_used(self) -> None:
        """List the logs in use, and remove logs that have not been in use for a while."""
        now = self._io.monotonic()
        used = self._server.used(self._namespace)
        try:
            await self._used.add_all(used - self._seen.keys(), self._deadline())
            self._seen.update(dict.fromkeys(used, now))
            unused = [name for name, at in self._seen.items() if now - at > UNUSED_SECONDS]
            await self._used.remove_all(unused, self._deadline())
        except ZlogError as error:  # for example if its caps do not allow it
            if not self._warned:
                _logger.warning(
                    "can't list the logs in use namespace=%s: %s", self._namespace, error
                )
            self._warned = True
            return
        for name in unused:
            del self._seen[name]

    def _deadline(self) -> Deadline:
        return deadline_of(self._io, self._limits.activation_s_max)


async def announce(io: Io, address: str, deadline: Deadline) -> None:
    """Announce a sequencer to clients whose log has none, unless it is announced already."""
    directory = Directory(io)
    if await directory.sequencer(deadline) != address:
        await directory.announce(address, deadline)
