"""The lease on a namespace, which at most one sequencer holds at any time.

On Ceph, the lease is a lock of the class ``lock`` on the namespace's directory object. It expires
unless the leader renews it. All sequencers of the namespace share a second lock. To see the leader,
run ``rados -p POOL lock info zlog.directory zlog.leader``; the lock ``zlog.sequencers`` shows all
of them.

The lease only avoids unnecessary takeovers. A log stays correct without it, because epochs keep
writers from using positions that a former leader grants.
"""

from __future__ import annotations

import math

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog.seqr.election.lock import Holder, RadosLock

LEASE_SECONDS_DEFAULT = 3.0
"""The default is at most ``sequencer_timeout`` (three seconds), after which writers give up an
unresponsive sequencer. So there usually is a new leader by then."""

LEASE_SECONDS_MIN = 0.5
LEASE_SECONDS_MAX = 60.0

LEADER_LOCK = "zlog.leader"
SEQUENCERS_LOCK = "zlog.sequencers"

_ENTRY_LEASES = 3.0
"""Duration of an entry in the list of sequencers, as a number of leases. An entry is renewed once
per lease."""


class Lease:
    """One sequencer's access to the lease on a namespace, and to the list of sequencers there.

    All methods raise ZlogError if the store refuses the call or does not answer in time. A failed
    call may still have taken effect. In a store that is not on Ceph, every sequencer gets the
    lease. Only tests and benchmarks use such stores.

    Args:
        cookie: an id that no other process has, even at the same address.
        seconds: the number of seconds after which the lease expires unless it is renewed.
    """

    def __init__(self, io: Io, address: str, cookie: str, seconds: float) -> None:
        self.seconds = seconds
        self.exclusive = bool(io.store.pool)
        """Whether no other sequencer can lead at the same time."""
        self._io = io
        self._cookie = cookie
        self._end = -math.inf
        self._lock = RadosLock(io, LEADER_LOCK, cookie, address)
        self._list = RadosLock(io, SEQUENCERS_LOCK, cookie, address, shared=True)

    @property
    def left(self) -> float:
        """The number of seconds for which this sequencer certainly has the lease."""
        return max(0.0, self._end - self._io.monotonic())

    async def take(self, patience: float, *, only_renew: bool = False) -> bool:
        """Take or renew the lease. Returns False if another sequencer has it.

        Args:
            patience: the timeout, in seconds.
            only_renew: whether to renew the lease only if it has not expired. Otherwise returns
                False.
        """
        # The time starts before the request, so the lease ends here before it ends at the OSD.
        began = self._io.monotonic()
        deadline = deadline_of(self._io, patience)
        taken = await self._lock.take(self.seconds, deadline, only_renew=only_renew)
        self._end = began + self.seconds if taken else -math.inf
        return taken

    async def holder(self) -> Holder | None:
        """Return the other sequencer that has the lease, if any."""
        holders = await self._lock.holders(self._deadline())
        return next((each for each in holders if each.cookie != self._cookie), None)

    async def break_(self, holder: Holder) -> None:
        """Take the lease from a sequencer that has ended."""
        await self._lock.break_(holder, self._deadline())

    async def give_up(self) -> None:
        """Release the lease."""
        self._end = -math.inf
        await self._lock.release(self._deadline())

    async def enter(self) -> None:
        """Enter this sequencer into the list, for a few lease durations."""
        await self._list.take(_ENTRY_LEASES * self.seconds, self._deadline())

    async def leave(self) -> None:
        """Remove this sequencer from the list."""
        await self._list.release(self._deadline())

    async def others(self) -> list[str]:
        """Return the addresses of the other sequencers in the list."""
        holders = await self._list.holders(self._deadline())
        return sorted(each.description for each in holders if each.cookie != self._cookie)

    def _deadline(self) -> Deadline:
        return deadline_of(self._io, self.seconds)
