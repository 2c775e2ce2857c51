"""What a leader does in its namespace, for as long as it leads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Protocol

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.sequencer import LogAddress, is_remote
from zlog._catalog.directory import Directory
from zlog._catalog.head import Head
from zlog.errors import LogNotFound, ZlogError
from zlog.seqr.election.lease import Lease
from zlog.seqr.election.maintenance import DUTY_SECONDS, Duties, DutyStatus
from zlog.seqr.election.scrubbing import Scrubbing, ScrubStatus
from zlog.seqr.election.used import Opened, UsedLogs
from zlog.seqr.limits import Limits
from zlog.seqr.namespaces import Namespace

_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_ANNOUNCEMENT_SECONDS = 5.0
"""How often it is looked whether the store's directory still names the leader."""


class Adopter(Opened, Protocol):
    """Who has the logs."""

    async def adopt(self, log: LogAddress) -> None:
        """Take a log over, if this sequencer does not have it already."""


class Leadership:
    """The time in which a sequencer leads a namespace.

    It announces itself, takes over what others served, and looks after the logs.

    Args:
        namespace: where.
        io: over the store of the namespace.
        address: of this sequencer.
        lease: on the namespace.
        logs: has them.
        limits: see there.
        scrub: what it says of its scrubbing.
    """

    def __init__(
        self,
        namespace: Namespace,
        io: Io,
        address: str,
        lease: Lease,
        logs: Adopter,
        limits: Limits,
        scrub: ScrubStatus,
        duties: DutyStatus,
    ) -> None:
        self._namespace = namespace
        self._io = io
        self._address = address
        self._lease = lease
        self._logs = logs
        self._limits = limits
        self._scrub = scrub
        self._duties = duties

    async def run(self) -> None:
        """Lead until cancelled. What may take minutes or days holds up nothing else."""
        work = [self._hold(), self._serve_duties()]
        rate = self._limits.scrub_bytes_s_max
        if rate:
            work.append(
                Scrubbing(self._io, rate, lambda: bool(self._lease.left), self._scrub).run()
            )
        await asyncio.gather(*work)

    async def _hold(self) -> None:
        """Keep the offer out, and take over what others served."""
        used = UsedLogs(self._namespace, self._io, self._logs)
        left: list[str] | None = None  # logs to be taken over; None: all that were in use
        while True:
            pause = _ANNOUNCEMENT_SECONDS
            try:
                if self._lease.left:  # else this process slept, and perhaps another leads by now
                    await announce(self._io, self._address, self._deadline())
                if left is None:
                    left = await used.inherit(self._deadline())
                left = await self._sweep(left)
                if self._lease.left:
                    await used.update(self._deadline())
            except ZlogError as error:
                _logger.warning("leads with difficulty namespace=%s: %s", self._namespace, error)
                pause = _RETRY_SECONDS
            except Exception:  # any error: a leader that does nothing any more is of no use
                _logger.exception("leads with difficulty namespace=%s", self._namespace)
            await self._io.sleep(pause)

    async def _serve_duties(self) -> None:
        duties = Duties(self._io, self._duties)
        while True:
            await self._io.sleep(DUTY_SECONDS)
            try:
                if self._lease.left:
                    await duties.round()
            except ZlogError as error:
                _logger.warning("duties left undone namespace=%s: %s", self._namespace, error)
            except Exception:  # any error: the next round tries again
                _logger.exception("duties left undone namespace=%s", self._namespace)

    async def _sweep(self, names: list[str]) -> list[str]:
        """Take over those of some logs whose views name a sequencer: it is not the leader any more.

        All others are left alone until a writer asks. Returns those whose heads could not be read;
        they do not hold up the others.
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
                _logger.warning("could not look at log=%s: %s", name, error)
                failed.append(name)
                continue
            if view is not None and not view.removed and is_remote(view.sequencer):
                await self._logs.adopt(LogAddress(*self._namespace, name, view.log_id))

    def _deadline(self) -> Deadline:
        return deadline_of(self._io, self._limits.activation_s_max)


async def announce(io: Io, address: str, deadline: Deadline) -> None:
    """Offer a sequencer to clients whose log has none, unless it is on offer already."""
    directory = Directory(io)
    if await directory.sequencer(deadline) != address:
        await directory.announce(address, deadline)
