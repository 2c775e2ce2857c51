"""Locks and elections."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from zlog.extension import ProcessBound, Timeout
from zlog.extension import drive_aio as drive
from zlog.objects._lease import LEASE_SECONDS, Lease, acquire
from zlog.objects._locks import Holder
from zlog.objects._records import owned
from zlog.objects._replica import LINEARIZABLE
from zlog.objects._views import LockView
from zlog.objects._watch import WATCH_EVENTS
from zlog.objects.aio.handles import Handle
from zlog.objects.aio.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Self


class Held(ProcessBound):
    """A held lock. ``async with`` releases it at the end.

    Attributes:
        token: a number that is higher than the tokens of all earlier holders. The protected
            resource must refuse a token lower than one that it has seen, because such a token comes
            from a holder that has lost the lock, perhaps without knowing it.
        lease: the number of seconds without a renewal after which others take the lock.
    """

    def __init__(self, inner: Lease) -> None:
        """Wrap a lease; programs call the method ``acquire`` of a lock."""
        self._inner = inner
        self.token = inner.token
        self.lease = inner.lease

    def remaining(self) -> float:
        """Return the remaining seconds of the lease by this machine's clock; 0 after its end."""
        return self._inner.remaining()

    def check(self) -> None:
        """Raise LockLost if the lease has ended by this machine's clock."""
        self._inner.check()

    async def renew(self) -> None:
        """Renew the lease, so that it lasts its full time from the start of this call.

        Raises:
            LockLost: another client has the lock.
        """
        await drive(self._inner.renew())

    async def release(self) -> None:
        """Release the lock to the next waiting client. Safe to repeat, also after a loss."""
        await drive(self._inner.release())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.release()


class Lock(Handle[LockView]):
    """A lock that one client can hold at a time. Clients get it in the order of their requests.

    A holder that is paused for longer than its lease may believe that it still holds the lock. So
    the protected resource must compare tokens (:class:`Held`). In a transaction,
    ``txn.require(lock, token)`` does so.
    """

    async def acquire(
        self,
        owner: Any = None,
        *,
        lease: float = LEASE_SECONDS,
        timeout: Timeout = ...,
        keep: bool = True,
    ) -> Held:
        """Wait for the lock, and take it.

        Args:
            lease: the number of seconds without a renewal after which others take the lock.
            timeout: how many seconds to wait; None means no limit. The default is the time-out of
                the log's handle.
            keep: whether to renew the lease in the background until the lock is released or the
                space is closed.

        Raises:
            LockTimeout: the lock was not granted in time.
            LockLost: this client was paused while it waited, and missed its turn.
            OutcomeUnknown: the log did not answer in time. The request is withdrawn in the
                background.
        """
        if not 0 < lease < math.inf:
            raise ValueError(f"a lease must be a finite number of seconds above 0, not {lease}")
        self._state()
        request = acquire(self._replica, self.name, owned(owner), float(lease), timeout)
        held = await drive(request)
        if keep:
            held.keep()
        return Held(held)

    async def holder(self, *, staleness: float = LINEARIZABLE) -> Holder | None:
        """Return the holder."""
        await drive(self._replica.sync(staleness))
        return self.local.holder()

    async def waiting(self, *, staleness: float = LINEARIZABLE) -> list[Holder]:
        """Return the waiting clients in order."""
        await drive(self._replica.sync(staleness))
        return self.local.waiting()


class Election(ProcessBound):
    """A lock whose holder is the leader, with a value that others see."""

    def __init__(self, lock: Lock) -> None:
        """Wrap a lock; programs call the method ``election`` of a space."""
        self.lock = lock

    async def campaign(
        self, value: Any, *, lease: float = LEASE_SECONDS, timeout: Timeout = ...
    ) -> Held:
        """Wait until this client is the leader. It leads until it releases or loses the lock.

        Args:
            value: a value that other clients can read, such as the leader's address.
            lease: the number of seconds without a renewal after which another client leads.
            timeout: how many seconds to wait; None means no limit. The default is the time-out of
                the log's handle.

        Raises:
            LockTimeout: another client is still the leader.
        """
        return await self.lock.acquire(value, lease=lease, timeout=timeout)

    async def leader(self, *, staleness: float = LINEARIZABLE) -> Holder | None:
        """Return the leader, whose ``owner`` is its value."""
        return await self.lock.holder(staleness=staleness)

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch for changes of the leader; see :meth:`Space.watch`."""
        return self.lock.watch(start=start, events=events)
