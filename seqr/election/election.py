"""The elections in which a sequencer takes part, and the consequences of their results."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import asdict

from zlog._base.io import Io, deadline_of
from zlog._catalog.directory import Directory
from zlog._catalog.rights import check_announcement
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog.errors import ZlogError
from zlog.seqr.election.candidate import Candidate, Role
from zlog.seqr.election.leadership import Leadership, announce
from zlog.seqr.election.lease import Lease
from zlog.seqr.election.maintenance import DutyStatus
from zlog.seqr.election.scrubbing import ScrubStatus
from zlog.seqr.election.watch import LeaderWatch
from zlog.seqr.failures import FailuresLogged
from zlog.seqr.limits import Limits
from zlog.seqr.namespaces import Namespace, Stores
from zlog.seqr.server import Server

_logger = logging.getLogger(__name__)

_COOKIE_BYTES = 8
_VISIT_SECONDS = 5.0
"""How often a guest checks that clients still have logs open in a namespace."""

_SUCCESSION_SECONDS = 1.5
"""How long a sequencer that stops waits for a standby to take over."""

_SUCCESSION_POLL_SECONDS = 0.02


class Election:
    """The elections of leaders in which a sequencer takes part, one for each namespace.

    The sequencer always takes part in the elections of the namespaces that it was started for. When
    a client asks it for a log in another namespace, it takes part there as a guest until clients no
    longer use that namespace.

    Args:
        also: further namespaces that the sequencer was started for, besides the store's own.
        note_role: a function that is called when the sequencer's role in a namespace has changed.
    """

    _server: Server  # set by start

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
        self._leaderships: dict[Namespace, Leadership] = {}
        self._leading: dict[Namespace, asyncio.Task[None]] = {}

    async def start(self, server: Server) -> None:
        """Take part in the elections of the namespaces that the sequencer was started for.

        The call returns once the leader of each namespace is known. If this sequencer leads there,
        it has then announced itself.

        Raises:
            ZlogError: the sequencer may not announce itself in one of the namespaces, or a store
                failed.
        """
        self._server = server
        for namespace in self._own:
            io = await self._stores.of(namespace)
            # This precedes the lease, which would keep out sequencers that can announce themselves.
            await check_announcement(io, deadline_of(io, self._limits.activation_s_max))
            if (await self.candidate(namespace)).role is Role.LEADER:
                deadline = deadline_of(io, self._limits.activation_s_max)
                await announce(io, self._address, deadline)
        self._note_role()

    @property
    def role(self) -> Role:
        """The role in the first namespace that the sequencer was started for."""
        home = self._candidates.get(self._stores.home)
        return Role.STANDBY if home is None else home.role

    async def candidate(self, namespace: Namespace) -> Candidate:
        """Return this sequencer's candidate in a namespace. Create it if it does not exist.

        The call waits until the candidate knows the namespace's leader.

        Raises:
            ZlogError: the store cannot be opened, or the candidate could not find the leader.
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
        candidate = Candidate(
            namespace, io, lease, self._address, self._note, guest=guest, watch=watch
        )
        self._candidates[namespace] = candidate
        self._running[namespace] = asyncio.ensure_future(candidate.run())
        return candidate

    def _forget_guest(self, namespace: Namespace) -> None:
        if namespace not in self._own and self._candidates.pop(namespace, None) is not None:
            self._running.pop(namespace).cancel()

    def _note(self, candidate: Candidate) -> None:
        """Act on the role of a candidate."""
        namespace = candidate.namespace
        if candidate.role is Role.IN_DOUBT:
            self._server.look_again()
        else:
            if leading := self._leading.pop(namespace, None):
                leading.cancel()
            if candidate.role is Role.LEADER:
                own = namespace in self._own
                work = self._lead(namespace) if own else self._visit(namespace)
                self._leading[namespace] = asyncio.ensure_future(work)
            else:
                self._server.step_down(namespace)
                self._forget_guest(namespace)
        self._note_role()

    async def _lead(self, namespace: Namespace) -> None:
        io = await self._stores.of(namespace)
        lease = self._candidates[namespace].lease
        leadership = self._leaderships[namespace] = Leadership(
            namespace, io, self._address, lease, self._server, self._limits
        )
        await leadership.run()

    async def _visit(self, namespace: Namespace) -> None:
        """Lead as a guest while clients have logs open in the namespace."""
        io = await self._stores.of(namespace)
        while not self._deserted(namespace):
            await io.sleep(_VISIT_SECONDS)
        candidate = self._candidates[namespace]
        self._forget_guest(namespace)
        del self._leading[namespace]
        await self._resign(candidate)

    def _deserted(self, namespace: Namespace) -> bool:
        """Return whether no client has logs of the namespace open. If so, stop granting there."""
        with FailuresLogged("could not check for clients with open logs namespace=%s", namespace):
            if self._server.used(namespace):
                return False
            _logger.info("no client has logs open any more namespace=%s", namespace)
            self._server.step_down(namespace)
            return True
        return False

    async def resign(self) -> set[Namespace]:
        """Give all leases up. Returns the namespaces in which a standby can take over."""
        tasks = [*self._running.values(), *self._leading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        candidates = [*self._candidates.values()]
        heirs = await asyncio.gather(*map(self._resign, candidates))
        return {each.namespace for each, heir in zip(candidates, heirs, strict=True) if heir}

    async def _resign(self, candidate: Candidate) -> bool:
        with FailuresLogged("could not resign namespace=%s", candidate.namespace):
            return await candidate.resign()
        return False

    async def succeeded(self, namespaces: Iterable[Namespace]) -> set[Namespace]:
        """Wait until others lead these namespaces. Returns those that get a leader in time."""
        asked = [*namespaces]
        found = await asyncio.gather(*map(self._succeeded, asked))
        return {namespace for namespace, other in zip(asked, found, strict=True) if other}

    async def _succeeded(self, namespace: Namespace) -> bool:
        io = await self._stores.of(namespace)
        deadline = deadline_of(io, _SUCCESSION_SECONDS)
        with contextlib.suppress(ZlogError):
            while not deadline.expired:
                if await self._candidates[namespace].lease.holder() is not None:
                    return True
                await io.sleep(_SUCCESSION_POLL_SECONDS)
        return False

    async def withdraw(self, spared: Container[Namespace]) -> None:
        """Withdraw this sequencer's announcements, except in some namespaces."""
        for namespace in self._own:
            if namespace in spared:
                continue
            with FailuresLogged("could not withdraw the announcement namespace=%s", namespace):
                io = await self._stores.of(namespace)
                deadline = deadline_of(io, self._limits.activation_s_max)
                await Directory(io).withdraw(self._address, deadline)

    def describe(self) -> dict[str, object]:
        """Return the part of STATUS that is about leaders."""
        each = [self._describe(candidate) for candidate in self._candidates.values()]
        return {"role": self.role.value, "namespaces": each}

    def _describe(self, candidate: Candidate) -> dict[str, object]:
        namespace = candidate.namespace
        led = self._leaderships.get(namespace)
        return {
            "pool": namespace.pool,
            "namespace": namespace.name,
            "role": candidate.role.value,
            "leader": candidate.leader,
            "lease_left_s": round(candidate.lease_left, 3),
            "others": candidate.others,
            "scrub": asdict(led.scrub if led else ScrubStatus()),
            "duties": (led.duties if led else DutyStatus()).to_json(),
        }
