"""A candidate: one sequencer's part in the election of a namespace's leader."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import math
from collections.abc import Callable

from zlog._base.io import Io
from zlog.errors import ZlogError
from zlog.seqr.election.lease import Lease
from zlog.seqr.election.lock import Holder
from zlog.seqr.election.watch import LeaderWatch
from zlog.seqr.namespaces import Namespace

_logger = logging.getLogger(__name__)

_RENEWALS_PER_LEASE = 4
_POLL_SECONDS = 1.0
"""How often a standby reads the lease if its renewal is not overdue."""

_POLL_SECONDS_MIN = 0.1
"""How often a standby reads the lease if its renewal is overdue."""

_OVERDUE_LEASES = 0.5
"""The part of a lease after which a renewal is overdue: twice the interval of renewals."""


class Role(str, enum.Enum):
    """The role of a sequencer in a namespace."""

    LEADER = "leader"
    STANDBY = "standby"
    IN_DOUBT = "in doubt"
    """It was the leader and could not renew its lease, so another sequencer may lead now."""


class Candidate:
    """A sequencer's part in the election of one namespace's leader.

    A standby becomes the leader when it gets the lease. A leader that cannot reach the store is in
    doubt whether it still has the lease. It continues to serve its logs until it knows. This does
    no harm, because a new leader seals the epochs of the old one.

    Args:
        note: a function that is called with this candidate when it becomes the leader, repeatedly
            while it is in doubt, and when it no longer leads.
        guest: whether it is a candidate only because a client asked for a log. A guest is not
            listed, and does not try to regain a lost lease.
        watch: a function that creates the watch of the leader's process. Its argument is the
            function that the watch calls when the process may have ended.

    Attributes:
        leader: the last known address of the leader.
        others: the last known addresses of the namespace's other sequencers.
        tried: an event that is set once the candidate has tried to find the leader.
        failure: the error of the last attempt, if it failed.
    """

    def __init__(
        self,
        namespace: Namespace,
        io: Io,
        lease: Lease,
        address: str,
        note: Callable[[Candidate], None],
        *,
        guest: bool = False,
        watch: Callable[[Callable[[], None]], LeaderWatch] = LeaderWatch,
    ) -> None:
        self.namespace = namespace
        self.lease = lease
        self.role = Role.STANDBY
        self.leader = ""
        self.others: list[str] = []
        self.tried = asyncio.Event()
        self.failure: ZlogError | None = None
        self._io = io
        self._address = address
        self._note = note
        self._guest = guest
        self._nudge = asyncio.Event()
        self._watch = watch(self._nudge.set)
        self._broken: set[str] = set()  # cookies of sequencers whose lease was broken
        self._seen = (0.0, 0.0)  # the expiry last read, and when it was first read
        self._entered = -math.inf

    @property
    def lease_left(self) -> float:
        """Seconds until the leader's lease ends unless it is renewed; a standby estimates them."""
        if self.role is Role.STANDBY:
            return max(0.0, self._seen[1] + self.lease.seconds - self._io.monotonic())
        return self.lease.left

    async def run(self) -> None:
        """Take part in the election until cancelled."""
        try:
            while True:
                self._nudge.clear()
                pause = await self._step()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._nudge.wait(), pause)
        finally:
            self._watch.stop()

    async def resign(self) -> bool:
        """Leave the election, once ``run`` has ended. Returns True if a standby can take the lease.

        Raises:
            ZlogError: the store failed. The lease then expires by itself.
        """
        leads, self.role = self.role is not Role.STANDBY, Role.STANDBY
        await self.lease.leave()
        others = await self.lease.others()
        if leads:
            await self.lease.give_up()
        return leads and bool(others)

    async def _step(self) -> float:
        """Act according to the role. Returns the seconds until the next step."""
        try:
            pause = await (self._stand_by() if self.role is Role.STANDBY else self._renew())
            now = self._io.monotonic()
            if not self._guest and now - self._entered >= self.lease.seconds:
                await self.lease.enter()
                self._entered = now
                self.others = await self.lease.others()
            self.failure = None
        except ZlogError as error:
            if self.failure is None:
                _logger.warning("can't find out who leads namespace=%s: %s", self.namespace, error)
            self.failure = error
            pause = self._renewal_pause()
        except Exception:  # any error: the candidate must continue
            _logger.exception("can't find out who leads namespace=%s", self.namespace)
            pause = self._renewal_pause()
        self.tried.set()
        return pause

    async def _stand_by(self) -> float:
        leader = await self.lease.holder()
        if leader is not None and self._is_gone(leader):
            _logger.info(
                "leader is gone namespace=%s leader=%s", self.namespace, leader.description
            )
            self._broken.add(leader.cookie)
            await self.lease.break_(leader)
            leader = None
        if leader is None:
            if await self.lease.take(self.lease.seconds):
                self._lead()
                return self._renewal_pause()
            return 0.0  # another candidate was faster
        self._follow(leader)
        overdue = self._io.monotonic() - self._seen[1] > _OVERDUE_LEASES * self.lease.seconds
        pause = _POLL_SECONDS_MIN if overdue else _POLL_SECONDS
        return pause * (0.8 + 0.4 * self._io.random())

    def _is_gone(self, leader: Holder) -> bool:
        """Return whether the leader's process has ended, so that its lease may be broken.

        Each process can lose its lease in this way only once. If it has regained the lease, it was
        still running, and the lease must expire by itself.
        """
        former_self = leader.description == self._address
        return leader.cookie not in self._broken and (former_self or self._watch.gone(leader))

    def _follow(self, leader: Holder) -> None:
        if self.leader != leader.description:
            _logger.info("standby namespace=%s leader=%s", self.namespace, leader.description)
        self.leader = leader.description
        self._watch.follow(leader)
        if leader.expires != self._seen[0]:
            self._seen = (leader.expires, self._io.monotonic())

    async def _renew(self) -> float:
        left = self.lease.left
        try:
            if not await self.lease.take(left or self.lease.seconds, only_renew=self._guest):
                self._step_down()
                return 0.0
        except ZlogError:
            if not self.lease.left:
                self._doubt()
            raise
        if not left:  # it had expired, and another sequencer may have led since
            _logger.info("holds the lease again namespace=%s", self.namespace)
            self._lead()
        return self._renewal_pause()

    def _lead(self) -> None:
        if self.role is Role.STANDBY:
            _logger.info("leader namespace=%s", self.namespace)
        self._watch.stop()
        self.role, self.leader = Role.LEADER, self._address
        self._note(self)

    def _doubt(self) -> None:
        if self.role is Role.LEADER:
            _logger.warning(
                "the lease expired, and the store does not answer namespace=%s", self.namespace
            )
        self.role = Role.IN_DOUBT
        self._note(self)

    def _step_down(self) -> None:
        _logger.warning(
            "stepped down: another sequencer holds the lease, or it is gone namespace=%s",
            self.namespace,
        )
        self.role, self.leader = Role.STANDBY, ""
        self._note(self)

    def _renewal_pause(self) -> float:
        return min(self.lease.seconds / _RENEWALS_PER_LEASE, _POLL_SECONDS)
