"""Where a sequencer is a candidate, and what follows when it comes to lead or another does."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Protocol

from zlog._base.io import Io, deadline_of
from zlog._layout.head import Directory
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog.errors import ZlogError
from zlog.seqr.election.candidate import Candidate, Role
from zlog.seqr.election.leadership import Adopter, Reign, announce
from zlog.seqr.election.lease import Lease
from zlog.seqr.election.watch import LeaderWatch
from zlog.seqr.limits import Limits
from zlog.seqr.namespaces import Place, Stores

_logger = logging.getLogger(__name__)

_COOKIE_BYTES = 8
_VISIT_SECONDS = 5.0
"""How often it is looked whether clients still have logs open where it leads for their sake."""

_SUCCESSION_SECONDS = 1.5
"""How long a sequencer that stops waits for a standby to take over."""

_SUCCESSION_LOOK_SECONDS = 0.02


class Server(Adopter, Protocol):
    """What an election asks of the server that has the logs."""

    def step_down(self, place: Place) -> None:
        """Grant nothing more for the logs of a place."""

    def look_again(self) -> None:
        """Have all waiting clients look for a newer view."""

    def wanted(self, place: Place) -> bool:
        """Whether some client has a log of the place open, or asks for one."""


class Election:
    """The candidates of one sequencer: one in every place where it may come to lead.

    Args:
        stores: where these places are.
        address: of this sequencer.
        limits: see there.
        lease_seconds: how long a lease lasts.
        also: places beside the first store's own in which it offers itself from the start.
        note_role: called when the role in some place has changed.
        credentials: what to show to other sequencers.
    """

    def __init__(
        self,
        stores: Stores,
        address: str,
        limits: Limits,
        lease_seconds: float,
        also: Sequence[Place] = (),
        note_role: Callable[[], None] = lambda: None,
        credentials: Credentials = NO_CREDENTIALS,
    ) -> None:
        self._credentials = credentials
        self._stores = stores
        self._address = address
        self._limits = limits
        self._lease_seconds = lease_seconds
        self._own = (stores.home, *also)
        self._note_role = note_role
        self._cookie = stores.first.token(_COOKIE_BYTES).hex()
        self._candidates: dict[Place, Candidate] = {}
        self._running: dict[Place, asyncio.Task[None]] = {}
        self._reigns: dict[Place, asyncio.Task[None]] = {}
        self._logs: Server | None = None

    async def start(self, logs: Server) -> None:
        """Become a candidate everywhere; from now on ``logs`` hears of what follows.

        Where this sequencer leads, it is announced when this returns.

        Raises:
            ZlogError: this sequencer can never be a candidate in one of the namespaces.
        """
        self._logs = logs
        for place in self._own:
            if (await self.candidate(place)).role is Role.LEADER:
                io = await self._stores.of(place)
                deadline = deadline_of(io, self._limits.activation_s_max)
                await announce(io, self._address, deadline)
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
            ZlogError: the store does not open, or does not say who leads.
        """
        candidate = self._candidates.get(place)
        if candidate is None:
            io = await self._stores.of(place)
            candidate = self._candidates.get(place) or self._join(place, io)
        await candidate.tried.wait()
        if candidate.role is Role.STANDBY:
            self._forget_guest(place)
            if candidate.failure is not None:
                raise candidate.failure
        return candidate

    def _join(self, place: Place, io: Io) -> Candidate:
        lease = Lease(io, self._address, self._cookie, self._lease_seconds)
        guest = place not in self._own
        watch = functools.partial(LeaderWatch, credentials=self._credentials)
        candidate = Candidate(place, io, lease, self._address, self, guest=guest, watch=watch)
        self._candidates[place] = candidate
        self._running[place] = asyncio.ensure_future(candidate.run())
        return candidate

    def _forget_guest(self, place: Place) -> None:
        """Be no candidate any more where this sequencer was not told to be one."""
        if place not in self._own and self._candidates.pop(place, None) is not None:
            self._running.pop(place).cancel()

    # What candidates tell.

    def began(self, place: Place) -> None:
        """Do there what a leader does."""
        self._end_reign(place)
        reign = self._reign(place) if place in self._own else self._visit(place)
        self._reigns[place] = asyncio.ensure_future(reign)
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
        self._forget_guest(place)
        self._note_role()

    def _end_reign(self, place: Place) -> None:
        reign = self._reigns.pop(place, None)
        if reign is not None:
            reign.cancel()

    async def _reign(self, place: Place) -> None:
        assert self._logs is not None  # set before there was a candidate
        io = await self._stores.of(place)
        lease = self._candidates[place].lease
        await Reign(place, io, self._address, lease, self._logs, self._limits).run()

    async def _visit(self, place: Place) -> None:
        """Lead for as long as clients have logs open there."""
        io = await self._stores.of(place)
        while not self._deserted(place):
            await io.sleep(_VISIT_SECONDS)
        candidate = self._candidates[place]
        self._forget_guest(place)
        del self._reigns[place]
        await self._resign(candidate)

    def _deserted(self, place: Place) -> bool:
        """Whether no client asks for logs of the namespace, so that nothing is granted there."""
        assert self._logs is not None  # set before there was a candidate
        try:
            if self._logs.wanted(place):
                return False
            _logger.info("no client asks any more namespace=%s", place)
            self._logs.step_down(place)
        except Exception:  # any error: a guest that never looks again would never leave
            _logger.exception("failed to find out whether a client asks namespace=%s", place)
            return False
        return True

    # The end.

    async def resign(self) -> set[Place]:
        """Give every lease up. Returns the places where a standby is about to take over."""
        for task in (*self._running.values(), *self._reigns.values()):
            task.cancel()
        await asyncio.gather(
            *self._running.values(), *self._reigns.values(), return_exceptions=True
        )
        places = list(self._candidates)
        heirs = await asyncio.gather(*map(self._resign, self._candidates.values()))
        return {place for place, heir in zip(places, heirs, strict=True) if heir}

    async def _resign(self, candidate: Candidate) -> bool:
        try:
            return await candidate.resign()
        except ZlogError as error:
            _logger.warning("could not resign place=%s: %s", candidate.place, error)
        except Exception:  # any error: the lease ends by itself
            _logger.exception("could not resign place=%s", candidate.place)
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
        for place in self._own:
            if place in spared:
                continue
            try:
                io = await self._stores.of(place)
                deadline = deadline_of(io, self._limits.activation_s_max)
                await Directory(io).withdraw(self._address, deadline)
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
