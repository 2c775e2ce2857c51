"""How a leader audits the copies of its logs, in the background."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zlog._audit.findings import Finding, FindingKind
from zlog._audit.scrub import Scrub
from zlog._base.io import Io, deadline_of
from zlog._base.settings import HandleOptions
from zlog._catalog.directory import Directory
from zlog._client import LogClient
from zlog.errors import LogNotFound, ZlogError

_logger = logging.getLogger(__name__)

FIRST_SECONDS = 60.0
"""Before the first round: a new leader has more urgent things to do."""

ROUND_SECONDS = 3600.0
"""From the beginning of a round to that of the next, at least."""

_STEP_SECONDS = 30.0
_LOOK_BYTES = 1 << 16
"""What a look costs that finds few bytes: so the rate bounds operations too."""


@dataclass(slots=True)
class ScrubStatus:
    """What was done since this sequencer came to lead, for operators.

    Attributes:
        rounds: how often all logs were gone through.
        log: the one that is being looked at; empty between rounds.
        bytes: data that was looked at.
        healed: findings that were put right: an object, or positions of one in a row.
        damaged: findings that were not.
    """

    rounds: int = 0
    log: str = ""
    bytes: int = 0
    healed: int = 0
    damaged: int = 0


class Scrubbing:
    """Goes through the logs of a namespace, one after the other, and heals what copies have lost.

    Every other round looks at the primary copies, which clients read. The others look at copies
    chosen at random, each of which is met sooner or later, and there at all but the bytestream,
    which an OSD of today can't be asked for safely where its disk may be failing.

    Leaders come and go, and none knows how far the last one came. So chance says which of the two
    the first round is, with which log a round begins, and where in each log.

    Args:
        io: over the store of the namespace.
        bytes_per_second: how much is looked at, at most.
        leads: whether this sequencer still does.
        status: to be kept up to date.
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
            try:
                if self._leads():
                    await self._round()
            except ZlogError as error:
                _logger.warning("scrub left undone: %s", error)
            except Exception:  # any error: the next round tries again
                _logger.exception("scrub left undone")
            await self._io.sleep(max(0.0, began + ROUND_SECONDS - self._io.monotonic()))

    async def _round(self) -> None:
        names = await Directory(self._io).logs.names(deadline_of(self._io, _STEP_SECONDS))
        first = int(self._io.random() * len(names))
        directory = Directory(self._io).objects
        for name in names[first:] + names[:first]:
            self._status.log = name
            try:
                await self._scrub(name, directory)
                directory = []  # once in a round
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
            heal=True,
            any_copy=other,
            keys_only=other,
            pace=self._pace,
        )
        async for findings in scrub.directory(directory):
            self._tell(name, findings)
        async for findings in scrub.objects():
            self._tell(name, findings)
        end = await client.positions.tail(client.deadline(), checked=False)
        begin = client.layout.view.trim_point
        middle = begin + int(self._io.random() * max(0, end - begin))
        for first, last in ((middle, end), (begin, middle)):
            async for findings in scrub.positions(last, first):
                self._tell(name, findings)

    def _tell(self, name: str, findings: Sequence[Finding]) -> None:
        for finding in findings:
            healed = finding.kind is FindingKind.HEALED
            self._status.healed += healed
            self._status.damaged += not healed
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
        await self._io.sleep(max(bytes, _LOOK_BYTES) / self._rate)
