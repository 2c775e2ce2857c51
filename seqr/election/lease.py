"""The lease by which one sequencer at a time leads a namespace.

On Ceph it is a lock of the class ``lock`` on the namespace's directory object, which ends by itself
unless it is renewed. A second lock, which any number may hold, lists the namespace's sequencers.
``rados -p POOL lock info zlog.directory zlog.leader`` shows the leader, ``zlog.sequencers`` all.

The lease only spares the sequencers a quarrel. It is no part of what keeps a log right: epochs
are, and a sequencer that acts on a lease that it has lost grants positions that no writer can use.
"""

from __future__ import annotations

import math
from typing import Protocol

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.names import DIRECTORY_OBJECT
from zlog.seqr.election.lock import Holder, RadosLock

LEASE_SECONDS_DEFAULT = 3.0
"""Below the time after which writers go on without a sequencer that does not answer, so that its
successor is usually there before (``sequencer_timeout``, three seconds)."""

LEASE_SECONDS_MIN = 0.5
LEASE_SECONDS_MAX = 60.0

LEADER_LOCK = "zlog.leader"
SEQUENCERS_LOCK = "zlog.sequencers"

_ENTRY_LEASES = 3.0
"""How many leases an entry in the list of sequencers lasts; it is renewed once a lease."""


class Lease:
    """The right to lead one namespace, as one sequencer sees it.

    All methods raise ZlogError when the store does not answer in time or refuses; whether they had
    an effect is open then.

    In a store without locks every candidate leads. It shares a sequencer among its processes and
    needs no other; one can be run over it all the same, alone, as tests and benchmarks do.

    Args:
        io: over the store of the namespace.
        address: what others read of this sequencer.
        cookie: tells this process from all others, also from those of the same address.
        seconds: how long the lease lasts unless renewed.
    """

    def __init__(self, io: Io, address: str, cookie: str, seconds: float) -> None:
        self.seconds = seconds
        self.exclusive = bool(io.store.pool)
        """Whether no other sequencer leads while this one does."""
        self._io = io
        self._cookie = cookie
        self._end = -math.inf
        self._lock: _Lock = _NoLock()
        self._list: _Lock = _NoLock()
        if self.exclusive:
            self._lock = RadosLock(io, DIRECTORY_OBJECT, LEADER_LOCK, cookie, address)
            self._list = RadosLock(
                io, DIRECTORY_OBJECT, SEQUENCERS_LOCK, cookie, address, shared=True
            )

    @property
    def left(self) -> float:
        """Seconds for which it is certainly held; 0 when it is not, or may not be."""
        return max(0.0, self._end - self._io.monotonic())

    async def take(self, patience: float, *, only_renew: bool = False) -> bool:
        """Take the lease or renew it, within ``seconds``. False: another sequencer has it.

        With ``only_renew`` one that has run out is not taken again.
        """
        # Counted from before the request, so it ends here before it ends where others see it.
        began = self._io.monotonic()
        deadline = deadline_of(self._io, patience)
        taken = await self._lock.take(self.seconds, deadline, only_renew=only_renew)
        self._end = began + self.seconds if taken else -math.inf
        return taken

    async def holder(self) -> Holder | None:
        """Return the other sequencer that has it, if one has."""
        for holder in await self._lock.holders(self._deadline()):
            if holder.cookie != self._cookie:
                return holder
        return None

    async def break_(self, holder: Holder) -> None:
        """Take it away from a sequencer that is known to be gone."""
        await self._lock.break_(holder, self._deadline())

    async def give_up(self) -> None:
        """Let others have it at once."""
        self._end = -math.inf
        await self._lock.release(self._deadline())

    async def enter(self) -> None:
        """Stand in the list of sequencers for some leases from now on."""
        await self._list.take(_ENTRY_LEASES * self.seconds, self._deadline())

    async def leave(self) -> None:
        """Strike this sequencer off the list."""
        await self._list.release(self._deadline())

    async def others(self) -> list[str]:
        """Return the addresses of the other sequencers on the list."""
        holders = await self._list.holders(self._deadline())
        return sorted(each.description for each in holders if each.cookie != self._cookie)

    def _deadline(self) -> Deadline:
        return deadline_of(self._io, self.seconds)


class _Lock(Protocol):
    """What a lease asks of a lock: see RadosLock."""

    async def take(
        self, seconds: float, deadline: Deadline, *, only_renew: bool = False
    ) -> bool: ...

    async def release(self, deadline: Deadline) -> None: ...

    async def holders(self, deadline: Deadline) -> list[Holder]: ...

    async def break_(self, holder: Holder, deadline: Deadline) -> None: ...


class _NoLock:
    """The lock of a store that has none."""

    async def take(
        self,
        seconds: float,  # noqa: ARG002
        deadline: Deadline,  # noqa: ARG002
        *,
        only_renew: bool = False,  # noqa: ARG002
    ) -> bool:
        return True

    async def release(self, deadline: Deadline) -> None:
        pass

    async def holders(self, deadline: Deadline) -> list[Holder]:  # noqa: ARG002
        return []

    async def break_(self, holder: Holder, deadline: Deadline) -> None:
        pass
