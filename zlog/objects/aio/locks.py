"""Locks, and elections."""

from __future__ import annotations

import math
from types import TracebackType
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
    """A lock that is held. With ``async with`` it is given back in the end.

    Attributes:
        token: higher than that of every earlier holder. What the lock protects refuses a token
            below one that it has seen: a holder that was paused may still believe that it holds it.
        lease: seconds without a renewal after which others take it away.
    """

    def __init__(self, inner: Lease) -> None:
        """Wrap the logic; programs call ``acquire`` of a lock."""
        self._inner = inner
        self.token = inner.token
        self.lease = inner.lease

    def remaining(self) -> float:
        """Return the seconds that the lease lasts by this machine's clock; 0: it has ended."""
        return self._inner.remaining()

    def check(self) -> None:
        """Raise LockLost if the lease has ended, as far as this machine's clock tells."""
        self._inner.check()

    async def renew(self) -> None:
        """Renew the lease, which then counts from before this call.

        Raises:
            LockLost: another one has the lock.
        """
        await drive(self._inner.renew())

    async def release(self) -> None:
        """Give it back, to the next one that waits. Safe to repeat, and when it is lost."""
        await drive(self._inner.release())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.release()


class Lock(Handle[LockView]):
    """A lock that one client holds; others wait in the order in which they asked.

    A holder that is paused for longer than its lease may still believe that it holds the lock. So
    what the lock protects compares tokens (:class:`Held`); a transaction has the space do that:
    ``txn.require(lock, token)``.
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
            owner: what others see of this client; any value.
            lease: seconds without a renewal after which others take the lock away.
            timeout: seconds to wait; None: without limit; if not given, the time-out of the log's
                handle.
            keep: have a task renew it, until it is given back or the space is closed.

        Raises:
            LockTimeout: it was not granted in time.
            LockLost: this client was paused while it waited, and its turn has passed.
            OutcomeUnknown: the log did not answer in time. The request is withdrawn in the
                background.
        """
        if not 0 < lease < math.inf:
            raise ValueError(f"a lease has an end: seconds above 0, not {lease}")
        self._state()
        request = acquire(self._replica, self.name, owned(owner), float(lease), timeout)
        held = await drive(request)
        if keep:
            held.keep()
        return Held(held)

    async def holder(self, *, staleness: float = LINEARIZABLE) -> Holder | None:
        """Return who holds it."""
        await drive(self._replica.sync(staleness))
        return self.local.holder()

    async def waiting(self, *, staleness: float = LINEARIZABLE) -> list[Holder]:
        """Return who waits for it, the next one first."""
        await drive(self._replica.sync(staleness))
        return self.local.waiting()


class Election(ProcessBound):
    """A lock whose holder leads, and says with which value."""

    def __init__(self, lock: Lock) -> None:
        """Wrap the logic; programs call ``election`` of a space."""
        self.lock = lock

    async def campaign(
        self, value: Any, *, lease: float = LEASE_SECONDS, timeout: Timeout = ...
    ) -> Held:
        """Wait until this client leads, and lead until that is given back or lost.

        Args:
            value: what others see of the leader, such as its address.
            lease: seconds without a sign of life after which another one leads.
            timeout: seconds to wait; None: without limit; if not given, the time-out of the log's
                handle.

        Raises:
            LockTimeout: another one leads still.
        """
        return await self.lock.acquire(value, lease=lease, timeout=timeout)

    async def leader(self, *, staleness: float = LINEARIZABLE) -> Holder | None:
        """Return who leads: ``owner`` is the value that it came with."""
        return await self.lock.holder(staleness=staleness)

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch who leads; see :meth:`Space.watch`."""
        return self.lock.watch(start=start, events=events)
