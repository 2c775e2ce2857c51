"""One sequencer's part in the question who leads a namespace."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import math
from collections.abc import Callable
from typing import Protocol

from zlog._base.io import Io
from zlog.errors import ZlogError
from zlog.seqr.election.lease import Lease
from zlog.seqr.election.lock import Holder
from zlog.seqr.election.watch import LeaderWatch
from zlog.seqr.namespaces import Namespace

_logger = logging.getLogger(__name__)

_RENEWALS_PER_LEASE = 4
_LOOK_SECONDS = 1.0
"""How often a standby looks who leads while all is well."""

_LOOK_SECONDS_MIN = 0.1
"""How often when the leader has not renewed its lease as it should have."""

_OVERDUE_LEASES = 0.5
"""Part of a lease after which a renewal is overdue: twice the time between two."""


class Role(str, enum.Enum):
    """What a sequencer is in a namespace."""

    LEADER = "leader"
    STANDBY = "standby"
    IN_DOUBT = "in doubt"
    """It leads, but could not renew its lease, and does not know whether another leads by now."""


class Realm(Protocol):
    """What leading a namespace means: the candidate tells, and others do."""

    def began(self, namespace: Namespace) -> None:
        """This sequencer leads from now on, or has found that it still does."""

    def in_doubt(self, namespace: Namespace) -> None:
        """Another sequencer may lead by now. Told again from time to time while it is so."""

    def ended(self, namespace: Namespace) -> None:
        """Another sequencer leads."""


class Candidate:
    """Stands by until it can lead the namespace, leads it, and stands by again.

    Life: standby → leader ⇄ in doubt → standby, as often as need be.

    A leader that can't reach the store goes on with the logs that it has: the standbys may not
    reach it either, and if they do, its epochs are over and it does no harm. It steps down when it
    hears that another has the lease.

    Args:
        namespace: that is led.
        io: over the store of the namespace; for its clock and its dice.
        lease: on the namespace.
        address: of this sequencer.
        realm: hears of what changes.
        guest: whether it leads here only because a client came: then it is not listed, and what it
            has lost it does not take again.
        watch: makes what looks after the leader's process; given what it shall call.
    """

    def __init__(
        self,
        namespace: Namespace,
        io: Io,
        lease: Lease,
        address: str,
        realm: Realm,
        *,
        guest: bool = False,
        watch: Callable[[Callable[[], None]], LeaderWatch] = LeaderWatch,
    ) -> None:
        self.namespace = namespace
        self.lease = lease
        self.role = Role.STANDBY
        self.leader = ""
        """The leader's address, as far as is known."""
        self.others: list[str] = []
        """The addresses of the other sequencers of the namespace, as far as is known."""
        self.tried = asyncio.Event()
        """Whether it has been tried, once, to find out who leads."""
        self.failure: ZlogError | None = None
        """Why the last attempt to find it out failed."""
        self._io = io
        self._address = address
        self._realm = realm
        self._guest = guest
        self._nudge = asyncio.Event()
        self._watch = watch(self._nudge.set)
        self._broken: set[str] = set()  # cookies of those from whom the lease was taken
        self._seen: tuple[float, float] = (0.0, 0.0)  # the lease's last end, and since when
        self._entered = -math.inf

    @property
    def lease_left(self) -> float:
        """Seconds until the leader's lease ends unless it is renewed; a standby's estimate."""
        if self.role is Role.STANDBY:
            return max(0.0, self._seen[1] + self.lease.seconds - self._io.monotonic())
        return self.lease.left

    async def run(self) -> None:
        """Be a candidate until cancelled."""
        try:
            while True:
                self._nudge.clear()
                pause = await self._turn()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._nudge.wait(), pause)
        finally:
            self._watch.stop()

    async def resign(self) -> bool:
        """Let another lead, once this no longer runs. Returns whether one is waiting for it.

        Raises:
            ZlogError: it is not certain that the lease was given up; it ends by itself.
        """
        leads, self.role = self.role is not Role.STANDBY, Role.STANDBY
        await self.lease.leave()
        others = await self.lease.others()
        if leads:
            await self.lease.give_up()
        return leads and bool(others)

    async def _turn(self) -> float:
        """Do what is to be done now; return the seconds until the next time."""
        try:
            pause = await (self._stand_by() if self.role is Role.STANDBY else self._renew())
            await self._keep_entry()
            self.failure = None
        except ZlogError as error:
            if self.failure is None:
                _logger.warning("can't find out who leads namespace=%s: %s", self.namespace, error)
            self.failure = error
            pause = self._renewal_pause()
        except Exception:  # any error: a sequencer without a candidate is of no use
            _logger.exception("can't find out who leads namespace=%s", self.namespace)
            pause = self._renewal_pause()
        self.tried.set()
        return pause

    async def _stand_by(self) -> float:
        leader = await self.lease.holder()
        if leader is not None and self._gone(leader):
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
            return 0.0  # another was faster: look who it is
        self._follow(leader)
        overdue = self._io.monotonic() - self._seen[1] > _OVERDUE_LEASES * self.lease.seconds
        pause = _LOOK_SECONDS_MIN if overdue else _LOOK_SECONDS
        return pause * (0.8 + 0.4 * self._io.random())

    def _gone(self, leader: Holder) -> bool:
        """Whether the leader's process has ended: only then may its lease be taken from it.

        Who had a lease taken and has it again was not gone after all: something between here and
        there refuses connections. Its lease has to run out from now on.
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
        patience = self.lease.left
        try:
            within = patience or self.lease.seconds
            if not await self.lease.take(within, only_renew=self._guest):
                self._step_down()
                return 0.0
        except ZlogError:
            if not self.lease.left:
                self._doubt()
            raise
        if not patience:  # it had run out, and others may have led in between
            _logger.info("has the lease again namespace=%s", self.namespace)
            self._lead()
        return self._renewal_pause()

    def _lead(self) -> None:
        if self.role is Role.STANDBY:
            _logger.info("leader namespace=%s", self.namespace)
        self._watch.stop()
        self.role, self.leader = Role.LEADER, self._address
        self._realm.began(self.namespace)

    def _doubt(self) -> None:
        if self.role is Role.LEADER:
            _logger.warning(
                "lease ran out, and the store does not answer namespace=%s", self.namespace
            )
        self.role = Role.IN_DOUBT
        self._realm.in_doubt(self.namespace)

    def _step_down(self) -> None:
        _logger.warning(
            "stepped down: the lease is another's, or gone namespace=%s", self.namespace
        )
        self.role, self.leader = Role.STANDBY, ""
        self._realm.ended(self.namespace)

    async def _keep_entry(self) -> None:
        """Stand in the list of sequencers; renewed once a lease."""
        now = self._io.monotonic()
        if not self._guest and now - self._entered >= self.lease.seconds:
            await self.lease.enter()
            self._entered = now
            self.others = await self.lease.others()

    def _renewal_pause(self) -> float:
        return min(self.lease.seconds / _RENEWALS_PER_LEASE, _LOOK_SECONDS)
