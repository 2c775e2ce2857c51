"""Where a sequencer leads, and what it does when it begins to lead and when another does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Protocol

from zlog._deadline import Deadline
from zlog._head import Directory, Head
from zlog._io import Io, deadline_of
from zlog._sequencer.types import LogAddress
from zlog.errors import LogNotFound, ZlogError
from zlog.seqr.candidate import Candidate, Role
from zlog.seqr.duties import DUTY_SECONDS, look_after_logs
from zlog.seqr.lease import Lease
from zlog.seqr.limits import Limits
from zlog.seqr.places import Place, Stores

_logger = logging.getLogger(__name__)

_COOKIE_BYTES = 8
_RETRY_SECONDS = 0.5
_ANNOUNCEMENT_SECONDS = 5.0
"""How often a leader looks whether the store's directory still names it."""

_SUCCESSION_SECONDS = 1.5
"""How long a sequencer that stops waits for a standby to take over."""

_SUCCESSION_LOOK_SECONDS = 0.02


class Logs(Protocol):
    """What an election asks of the server that has the logs."""

    async def adopt(self, log: LogAddress) -> None:
        """Take a log over, if this sequencer does not have it already."""

    def step_down(self, place: Place) -> None:
        """Grant nothing more for the logs of a place."""

    def look_again(self) -> None:
        """Have everybody who waits look for a newer view."""


class Election:
    """The candidates of one sequencer: one in every place where it may come to lead.

    Args:
        stores: where these places are.
        address: of this sequencer.
        limits: see there.
        lease_seconds: how long a lease lasts.
        also: places beside the first store's own in which it offers itself from the start.
        note_role: called when the role in some place has changed.
    """

    def __init__(
        self,
        stores: Stores,
        address: str,
        limits: Limits,
        lease_seconds: float,
        also: Sequence[Place] = (),
        note_role: Callable[[], None] = lambda: None,
    ) -> None:
        self._stores = stores
        self._address = address
        self._limits = limits
        self._lease_seconds = lease_seconds
        self._own = (stores.home, *also)
        self._note_role = note_role
        self._cookie = os.urandom(_COOKIE_BYTES).hex()
        self._candidates: dict[Place, Candidate] = {}
        self._running: dict[Place, asyncio.Task[None]] = {}
        self._reigns: dict[Place, asyncio.Task[None]] = {}
        self._logs: Logs | None = None

    async def start(self, logs: Logs) -> None:
        """Become a candidate everywhere; from now on ``logs`` hears of what follows.

        Where this sequencer leads, it is announced when this returns.

        Raises:
            ZlogError: in one of the places this sequencer can't be one, now or ever.
        """
        self._logs = logs
        for place in self._own:
            if (await self.candidate(place)).role is Role.LEADER:
                await self._announce(await self._stores.of(place))
        self._note_role()

    @property
    def role(self) -> Role:
        """The role in the place that the sequencer was started for."""
        home = self._candidates.get(self._stores.home)
        return Role.STANDBY if home is None else home.role

    async def candidate(self, place: Place) -> Candidate:
        """Return the candidate of a place, where it has been found out who leads.

        A place that was not named at the start is joined when a client first asks for a log there.

        Raises:
            ZlogError: the store can't be opened, or it can't be found out.
        """
        candidate = self._candidates.get(place)
        if candidate is None:
            io = await self._stores.of(place)
            candidate = self._candidates.get(place) or self._join(place, io)
        await candidate.tried.wait()
        if candidate.failure is not None and candidate.role is Role.STANDBY:
            if place not in self._own:
                self._leave(place)
            raise candidate.failure
        return candidate

    def _join(self, place: Place, io: Io) -> Candidate:
        lease = Lease(io, self._address, self._cookie, self._lease_seconds)
        candidate = Candidate(place, io, lease, self._address, self)
        self._candidates[place] = candidate
        self._running[place] = asyncio.ensure_future(candidate.run())
        return candidate

    def _leave(self, place: Place) -> None:
        if self._candidates.pop(place, None) is not None:
            self._running.pop(place).cancel()

    # What candidates tell.

    def began(self, place: Place) -> None:
        """Announce this sequencer, and take over what others had."""
        self._end_reign(place)
        self._reigns[place] = asyncio.ensure_future(self._reign(place))
        self._note_role()

    def in_doubt(self, place: Place) -> None:  # noqa: ARG002
        """Have those who wait look whether their logs have another sequencer by now."""
        assert self._logs is not None  # set before there was a candidate
        self._logs.look_again()
        self._note_role()

    def ended(self, place: Place) -> None:
        """Grant nothing more there."""
        self._end_reign(place)
        assert self._logs is not None  # set before there was a candidate
        self._logs.step_down(place)
        self._note_role()

    def _end_reign(self, place: Place) -> None:
        reign = self._reigns.pop(place, None)
        if reign is not None:
            reign.cancel()

    async def _reign(self, place: Place) -> None:
        io = await self._stores.of(place)
        lease = self._candidates[place].lease
        swept = False
        duty = io.monotonic() + DUTY_SECONDS
        while True:
            try:
                if lease.left:  # else this process slept, and perhaps another leads by now
                    await self._announce(io)
                if not swept:
                    await self._sweep(place, io)
                    swept = True
                if lease.left and io.monotonic() >= duty:
                    duty = io.monotonic() + DUTY_SECONDS
                    await look_after_logs(io)
                await io.sleep(_ANNOUNCEMENT_SECONDS)
            except ZlogError as error:
                _logger.warning("leads with difficulty place=%s: %s", place, error)
                await io.sleep(_RETRY_SECONDS)

    async def _announce(self, io: Io) -> None:
        directory = Directory(io)
        if await directory.sequencer(self._deadline(io)) != self._address:
            await directory.announce(self._address, self._deadline(io))

    async def _sweep(self, place: Place, io: Io) -> None:
        """Take over the logs whose views name a sequencer: it is not the leader any more.

        Logs without one are left alone until a writer asks.
        """
        names = iter(await Directory(io).names(self._deadline(io)))
        workers = (self._adopt(place, io, names) for _ in range(self._limits.sweep_max))
        for failure in await asyncio.gather(*workers, return_exceptions=True):
            if failure is not None:
                raise failure

    async def _adopt(self, place: Place, io: Io, names: Iterator[str]) -> None:
        assert self._logs is not None  # set before there was a candidate
        for name in names:
            try:
                view = (await Head(io, name).read(self._deadline(io))).view
            except LogNotFound:
                continue
            if view is not None and not view.removed and view.sequencer.startswith("tcp://"):
                await self._logs.adopt(LogAddress(*place, name, view.log_id))

    # The end.

    async def resign(self) -> set[Place]:
        """Give every lease up. Returns the places where a standby is about to take over."""
        for task in (*self._running.values(), *self._reigns.values()):
            task.cancel()
        await asyncio.gather(
            *self._running.values(), *self._reigns.values(), return_exceptions=True
        )
        places = list(self._candidates)
        heirs = await asyncio.gather(*(self._resign(place) for place in places))
        return {place for place, heir in zip(places, heirs, strict=True) if heir}

    async def _resign(self, place: Place) -> bool:
        try:
            return await self._candidates[place].resign()
        except ZlogError as error:
            _logger.warning("could not resign place=%s: %s", place, error)
            return False

    async def succeeded(self, places: Iterable[Place]) -> set[Place]:
        """Wait a little for others to lead these places; returns those where another does."""
        asked = list(places)
        found = await asyncio.gather(*(self._succeeded(place) for place in asked))
        return {place for place, other in zip(asked, found, strict=True) if other}

    async def _succeeded(self, place: Place) -> bool:
        io = await self._stores.of(place)
        deadline = deadline_of(io, _SUCCESSION_SECONDS)
        with contextlib.suppress(ZlogError):
            while not deadline.expired:
                if await self._candidates[place].lease.holder() is not None:
                    return True
                await io.sleep(_SUCCESSION_LOOK_SECONDS)
        return False

    async def withdraw(self, spared: Container[Place]) -> None:
        """Take the announcements back, but for some places; those of others are left alone."""
        for place in self._candidates:
            if place in spared:
                continue
            io = await self._stores.of(place)
            try:
                await Directory(io).withdraw(self._address, self._deadline(io))
            except ZlogError as error:
                _logger.warning("could not withdraw the announcement place=%s: %s", place, error)

    # For operators.

    def describe(self) -> dict[str, object]:
        """Return what STATUS tells of who leads where."""
        return {
            "role": self.role.value,
            "places": [
                {
                    "pool": place.pool,
                    "namespace": place.namespace,
                    "role": candidate.role.value,
                    "leader": candidate.leader,
                    "lease_left_s": round(candidate.lease_left, 3),
                    "others": candidate.others,
                }
                for place, candidate in self._candidates.items()
            ],
        }

    def _deadline(self, io: Io) -> Deadline:
        return deadline_of(io, self._limits.activation_s_max)
