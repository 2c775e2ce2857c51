"""The scrub: a background audit of the replicas of all logs, which the leader runs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from zlog._audit.findings import Finding, FindingKind
from zlog._audit.scrub import Scrub
from zlog._base.io import Io, deadline_of
from zlog._base.settings import HandleOptions
from zlog._catalog.directory import Directory
from zlog._client import LogClient
from zlog.errors import LogNotFound, ZlogError
from zlog.seqr.failures import FailuresLogged

_logger = logging.getLogger(__name__)

FIRST_SECONDS = 60.0
"""Seconds before the first round. A new leader has more urgent work."""

ROUND_SECONDS = 3600.0
"""The minimum number of seconds between the starts of two rounds."""

_STEP_SECONDS = 30.0
_STEP_BYTES_MIN = 1 << 16
"""The minimum number of bytes that a step counts, so that the rate also limits operations."""


@dataclass(slots=True)
class ScrubStatus:
    """What scrubbing has done since this sequencer began to lead.

    Attributes:
        rounds: the number of completed rounds.
        log: the log being audited; empty between rounds.
        bytes: the size of the data that was audited.
        repaired: the number of findings that were repaired.
        damaged: the number of findings that were not repaired.
    """

    rounds: int = 0
    log: str = ""
    bytes: int = 0
    repaired: int = 0
    damaged: int = 0


class Scrubbing:
    """Audits the logs of a namespace one after another, and repairs damaged replicas.

    Rounds of two kinds alternate. One kind reads the primary replicas, as clients do. The other
    reads randomly chosen replicas, so that each replica is read sooner or later. It skips
    bytestreams, because an OSD may crash if its disk fails during such a read.

    A new leader does not know how far its predecessor got. So it chooses the first log, position
    and kind of round at random.

    Args:
        bytes_per_second: the rate at which data may be read.
        leads: a function that returns whether this sequencer still leads.
    """

    def __init__(
        self, io: Io, bytes_per_second: float, leads: Callable[[], bool], status: ScrubStatus
    ) -> None:
        self._io = io
        self._rate = bytes_per_second
        self._leads = leads
        self._status = status
        self._other_first = io.random() < 0.5

    async def run(self) -> None:
        """Make rounds until cancelled."""
        await self._io.sleep(FIRST_SECONDS)
        while True:
            began = self._io.monotonic()
            with FailuresLogged("scrub failed"):
                if self._leads():
                    await self._round()
            await self._io.sleep(max(0.0, began + ROUND_SECONDS - self._io.monotonic()))

    async def _round(self) -> None:
        names = await Directory(self._io).logs.names(deadline_of(self._io, _STEP_SECONDS))
        first = int(self._io.random() * len(names))
        directory = Directory(self._io).objects
        for name in names[first:] + names[:first]:
            self._status.log = name
            try:
                await self._scrub(name, directory)
                directory = []  # once per round
            except LogNotFound:
                continue
            except ZlogError as error:
                _logger.warning("could not scrub log=%s: %s", name, error)
            finally:
                self._status.log = ""
        self._status.rounds += 1

    async def _scrub(self, name: str, directory: Sequence[str]) -> None:
        client = await LogClient.open(self._io, name, HandleOptions(timeout=_STEP_SECONDS))
        other = (self._status.rounds % 2 == 1) != self._other_first
        scrub = Scrub(
            client.layout,
            client.deadline,
            repair=True,
            any_replica=other,
            keys_only=other,
            pace=self._pace,
        )
        await self._report(name, scrub.directory(directory))
        await self._report(name, scrub.objects())
        end = await client.positions.tail(client.deadline(), checked=False)
        begin = client.layout.view.trim_point
        middle = begin + int(self._io.random() * max(0, end - begin))
        await self._report(name, scrub.positions(end, middle))
        await self._report(name, scrub.positions(middle, begin))

    async def _report(self, name: str, steps: AsyncIterator[Sequence[Finding]]) -> None:
        """Run a part of the audit, and count and log its findings."""
        async for findings in steps:
            for finding in findings:
                repaired = finding.kind is FindingKind.REPAIRED
                self._status.repaired += repaired
                self._status.damaged += not repaired
                _logger.warning(
                    "%s log=%s object=%s positions=%s: %s",
                    finding.kind.value,
                    name,
                    finding.object,
                    finding.positions,
                    finding.detail,
                )

    async def _pace(self, bytes: int) -> None:
        self._status.bytes += bytes
        await self._io.sleep(max(bytes, _STEP_BYTES_MIN) / self._rate)
