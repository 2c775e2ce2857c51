"""Where a sequencer is a candidate, and what follows when it comes to lead or another does."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import asdict
from typing import Protocol

from zlog._base.io import Io, deadline_of
from zlog._catalog.directory import Directory
from zlog._catalog.rights import check_announcement
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog.errors import ZlogError
from zlog.seqr.election.candidate import Candidate, Role
from zlog.seqr.election.leadership import Adopter, Leadership, announce
from zlog.seqr.election.lease import Lease
from zlog.seqr.election.maintenance import DutyStatus
from zlog.seqr.election.scrubbing import ScrubStatus
from zlog.seqr.election.watch import LeaderWatch
from zlog.seqr.limits import Limits
from zlog.seqr.namespaces import Namespace, Stores

_logger = logging.getLogger(__name__)

_COOKIE_BYTES = 8
_VISIT_SECONDS = 5.0
"""How often it is looked whether clients still have logs open where it leads for their sake."""

_SUCCESSION_SECONDS = 1.5
"""How long a sequencer that stops waits for a standby to take over."""

_SUCCESSION_LOOK_SECONDS = 0.02


class Server(Adopter, Protocol):
    """What an election asks of the server that has the logs."""

    def step_down(self, namespace: Namespace) -> None:
        """Grant nothing more for the logs of a namespace."""

    def look_again(self) -> None:
        """Have all waiting clients look for a newer view."""


class Election:
    """The candidates of one sequencer: one in every namespace where it may come to lead.

    Args:
        stores: where these namespaces are.
        address: of this sequencer.
        limits: see there.
        lease_seconds: how long a lease lasts.
        also: namespaces beside the first store's own in which it offers itself from the start.
        note_role: called when the role in some namespace has changed.
        credentials: what to show to other sequencers.
    """

    def __init__(
        self,
        stores: Stores,
        address: str,
        limits: Limits,
        lease_seconds: float,
        also: Sequence[Namespace] = (),
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
        self._candidates: dict[Namespace, Candidate] = {}
        self._running: dict[Namespace, asyncio.Task[None]] = {}
        self._leaderships: dict[Namespace, asyncio.Task[None]] = {}
        self._scrubs: dict[Namespace, ScrubStatus] = {}
        self._duties: dict[Namespace, DutyStatus] = {}
        self._logs: Server | None = None

    async def start(self, logs: Server) -> None:
        """Become a candidate everywhere; from now on ``logs`` hears of what follows.

        Where this sequencer leads, it is announced when this returns.

        Raises:
            ZlogError: this sequencer can never be a candidate in one of the namespaces.
        """
        self._logs = logs
        for namespace in self._own:
            io = await self._stores.of(namespace)
            # Before it takes a lease, which keeps others out that may announce themselves.
            await check_announcement(io, deadline_of(io, self._limits.activation_s_max))
            if (await self.candidate(namespace)).role is Role.LEADER:
                deadline = deadline_of(io, self._limits.activation_s_max)
                await announce(io, self._address, deadline)
        self._note_role()

    @property
    def role(self) -> Role:
        """The role in the namespace that the sequencer was started for."""
        home = self._candidates.get(self._stores.home)
        return Role.STANDBY if home is None else home.role

    async def candidate(self, namespace: Namespace) -> Candidate:
        """Return the candidate of a namespace, where it has been found out who leads.

        A namespace that was not named at the start is joined when a client first asks for a log.

        Raises:
            ZlogError: the store does not open, or does not say who leads.
        """
        candidate = self._candidates.get(namespace)
        if candidate is None:
            io = await self._stores.of(namespace)
            candidate = self._candidates.get(namespace) or self._join(namespace, io)
        await candidate.tried.wait()
        if candidate.role is Role.STANDBY:
            self._forget_guest(namespace)
            if candidate.failure is not None:
                raise candidate.failure
        return candidate

    def _join(self, namespace: Namespace, io: Io) -> Candidate:
        lease = Lease(io, self._address, self._cookie, self._lease_seconds)
        guest = namespace not in self._own
        watch = functools.partial(LeaderWatch, credentials=self._credentials)
        candidate = Candidate(namespace, io, lease, self._address, self, guest=guest, watch=watch)
        self._candidates[namespace] = candidate
        self._running[namespace] = asyncio.ensure_future(candidate.run())
        return candidate

    def _forget_guest(self, namespace: Namespace) -> None:
        """Be no candidate any more where this sequencer was not told to be one."""
        if namespace not in self._own and self._candidates.pop(namespace, None) is not None:
            self._running.pop(namespace).cancel()

    # What candidates tell.

    def began(self, namespace: Namespace) -> None:
        """Do there what a leader does."""
        self._end_leadership(namespace)
        leadership = self._lead(namespace) if namespace in self._own else self._visit(namespace)
        self._leaderships[namespace] = asyncio.ensure_future(leadership)
        self._note_role()

    def in_doubt(self, namespace: Namespace) -> None:  # noqa: ARG002
        """Have those who wait look whether their logs have another sequencer by now."""
        assert self._logs is not None  # set before there was a candidate
        self._logs.look_again()
        self._note_role()

    def ended(self, namespace: Namespace) -> None:
        """Grant nothing more there."""
        self._end_leadership(namespace)
        assert self._logs is not None  # set before there was a candidate
        self._logs.step_down(namespace)
        self._forget_guest(namespace)
        self._note_role()

    def _end_leadership(self, namespace: Namespace) -> None:
        leadership = self._leaderships.pop(namespace, None)
        if leadership is not None:
            leadership.cancel()

    async def _lead(self, namespace: Namespace) -> None:
        assert self._logs is not None  # set before there was a candidate
        io = await self._stores.of(namespace)
        lease = self._candidates[namespace].lease
        scrub = self._scrubs[namespace] = ScrubStatus()
        duties = self._duties[namespace] = DutyStatus()
        await Leadership(
            namespace, io, self._address, lease, self._logs, self._limits, scrub, duties
        ).run()

    async def _visit(self, namespace: Namespace) -> None:
        """Lead for as long as clients have logs open there."""
        io = await self._stores.of(namespace)
        while not self._deserted(namespace):
            await io.sleep(_VISIT_SECONDS)
        candidate = self._candidates[namespace]
        self._forget_guest(namespace)
        del self._leaderships[namespace]
        await self._resign(candidate)

    def _deserted(self, namespace: Namespace) -> bool:
        """Whether no client asks for logs of the namespace, so that nothing is granted there."""
        assert self._logs is not None  # set before there was a candidate
        try:
            if self._logs.used(namespace):
                return False
            _logger.info("no client asks any more namespace=%s", namespace)
            self._logs.step_down(namespace)
        except Exception:  # any error: a guest that never looks again would never leave
            _logger.exception("failed to find out whether a client asks namespace=%s", namespace)
            return False
        return True

    # The end.

    async def resign(self) -> set[Namespace]:
        """Give every lease up. Returns the namespaces where a standby is about to take over."""
        for task in (*self._running.values(), *self._leaderships.values()):
            task.cancel()
        await asyncio.gather(
            *self._running.values(), *self._leaderships.values(), return_exceptions=True
        )
        namespaces = list(self._candidates)
        heirs = await asyncio.gather(*map(self._resign, self._candidates.values()))
        return {namespace for namespace, heir in zip(namespaces, heirs, strict=True) if heir}

    async def _resign(self, candidate: Candidate) -> bool:
        try:
            return await candidate.resign()
        except ZlogError as error:
            _logger.warning("could not resign namespace=%s: %s", candidate.namespace, error)
        except Exception:  # any error: the lease ends by itself
            _logger.exception("could not resign namespace=%s", candidate.namespace)
        return False

    async def succeeded(self, namespaces: Iterable[Namespace]) -> set[Namespace]:
        """Wait a little for others to lead these namespaces; returns those where another does."""
        asked = list(namespaces)
        found = await asyncio.gather(*(self._succeeded(namespace) for namespace in asked))
        return {namespace for namespace, other in zip(asked, found, strict=True) if other}

    async def _succeeded(self, namespace: Namespace) -> bool:
        io = await self._stores.of(namespace)
        deadline = deadline_of(io, _SUCCESSION_SECONDS)
        with contextlib.suppress(ZlogError):
            while not deadline.expired:
                if await self._candidates[namespace].lease.holder() is not None:
                    return True
                await io.sleep(_SUCCESSION_LOOK_SECONDS)
        return False

    async def withdraw(self, spared: Container[Namespace]) -> None:
        """Take the announcements back, but for some namespaces; those of others are left alone."""
        for namespace in self._own:
            if namespace in spared:
                continue
            try:
                io = await self._stores.of(namespace)
                deadline = deadline_of(io, self._limits.activation_s_max)
                await Directory(io).withdraw(self._address, deadline)
            except ZlogError as error:
                _logger.warning(
                    "could not withdraw the announcement namespace=%s: %s", namespace, error
                )

    # For operators.

    def describe(self) -> dict[str, object]:
        """Return what STATUS tells of who leads where."""
        return {
            "role": self.role.value,
            "namespaces": [
                {
                    "pool": namespace.pool,
                    "namespace": namespace.name,
                    "role": candidate.role.value,
                    "leader": candidate.leader,
                    "lease_left_s": round(candidate.lease_left, 3),
                    "others": candidate.others,
                    "scrub": asdict(self._scrubs.get(namespace, ScrubStatus())),
                    "duties": self._duties.get(namespace, DutyStatus()).to_json(),
                }
                for namespace, candidate in self._candidates.items()
            ],
        }
