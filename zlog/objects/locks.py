"""Locks for threads, and elections."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from zlog.extension import ProcessBound, Timeout, drive
from zlog.objects import _handles, _lease
from zlog.objects._handles import WATCH_EVENTS
from zlog.objects._lease import LEASE_SECONDS
from zlog.objects._locks import Holder
from zlog.objects._replica import LINEARIZABLE
from zlog.objects._views import LockView
from zlog.objects.handles import Handle, Watch

if TYPE_CHECKING:
    from typing_extensions import Self


class Held(ProcessBound):
    """A lock that is held. With ``with`` it is given back in the end.

    Attributes:
        token: higher than that of every earlier holder. What the lock protects refuses a token
            below one that it has seen: a holder that was paused may still believe that it holds it.
        lease: seconds without a renewal after which others take it away.
    """

    def __init__(self, inner: _lease.Held) -> None:
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

    def renew(self) -> None:
        """Renew the lease, which then counts from before this call.

        Raises:
            LockLost: another one has the lock.
        """
        drive(self._inner.renew())

    def release(self) -> None:
        """Give it back, to the next one that waits. Safe to repeat, and when it is lost."""
        drive(self._inner.release())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Lock(Handle[_handles.Lock, LockView]):
    """A lock that one client holds; others wait in the order in which they asked.

    A holder that is paused for longer than its lease may still believe that it holds the lock. So
    what the lock protects compares tokens (:class:`Held`); a transaction has the space do that:
    ``txn.require(lock, token)``.
    """

    def acquire(
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
            keep: have a thread renew it, until it is given back or the space is closed.

        Raises:
            LockTimeout: it was not granted in time.
            LockLost: this client was paused while it waited, and its turn has passed.
            OutcomeUnknown: the log did not answer in time. The request is withdrawn in the
                background.
        """
        return Held(drive(self._inner.acquire(owner, lease=lease, timeout=timeout, keep=keep)))

    def holder(self, *, staleness: float = LINEARIZABLE) -> Holder | None:
        """Return who holds it."""
        return drive(self._inner.holder(staleness=staleness))

    def waiting(self, *, staleness: float = LINEARIZABLE) -> list[Holder]:
        """Return who waits for it, the next one first."""
        return drive(self._inner.waiting(staleness=staleness))


class Election(ProcessBound):
    """A lock whose holder leads, and says with which value."""

    def __init__(self, inner: _handles.Election) -> None:
        """Wrap the logic; programs call ``election`` of a space."""
        self._inner = inner

    def campaign(self, value: Any, *, lease: float = LEASE_SECONDS, timeout: Timeout = ...) -> Held:
        """Wait until this client leads, and lead until that is given back or lost.

        Args:
            value: what others see of the leader, such as its address.
            lease: seconds without a sign of life after which another one leads.
            timeout: seconds to wait; None: without limit; if not given, the time-out of the log's
                handle.

        Raises:
            LockTimeout: another one leads still.
        """
        return Held(drive(self._inner.campaign(value, lease=lease, timeout=timeout)))

    def leader(self, *, staleness: float = LINEARIZABLE) -> Holder | None:
        """Return who leads: ``owner`` is the value that it came with."""
        return drive(self._inner.leader(staleness=staleness))

    def watch(self, *, start: int | None = None, events: int = WATCH_EVENTS) -> Watch:
        """Watch who leads; see :meth:`Space.watch`."""
        return Watch(self._inner.watch(start=start, events=events))
