"""Holds locks. Holders and waiting clients measure leases; the state never does."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from zlog.errors import ZlogError
from zlog.extension import Deadline, Timeout
from zlog.objects._locks import Holder, LockState
from zlog.objects._replica import Replica
from zlog.objects.errors import LockLost, LockTimeout, OutcomeUnknown, Rejected

LEASE_SECONDS = 10.0

_RENEWALS = 3
"""The number of times that a lease is renewed before it would end."""

_RENEWAL_SECONDS_MAX = 86400.0
"""The maximum time between renewals, because a wait cannot have any length."""


class Lease:
    """A lock that is held or was requested; see :class:`zlog.objects.Held`."""

    def __init__(self, replica: Replica, name: str, token: int, lease: float, began: float) -> None:
        self.name = name
        self.token = token
        self.lease = lease
        self._replica = replica
        self._clock = replica.port.monotonic
        self._until = began + lease
        self._stop = replica.port.event()
        self._given_back = False

    def remaining(self) -> float:
        """Return the remaining seconds of the lease by this machine's clock; 0 after its end."""
        return 0.0 if self._given_back else max(0.0, self._until - self._clock())

    def check(self) -> None:
        """Raise LockLost if the lease has ended by this machine's clock."""
        if not self.remaining():
            raise LockLost(f"the lease of lock {self.name!r} under token {self.token} has ended")

    async def renew(self) -> None:
        """Renew the lease, so that it lasts its full time from the start of this call.

        Raises:
            LockLost: another client has the lock.
        """
        began = self._clock()
        try:
            await _command(self._replica, self.name, "renew", self.token)
        except Rejected as error:
            self._until = -math.inf
            raise LockLost(f"lock {self.name!r} was lost: {error}") from error
        self._until = began + self.lease

    async def release(self) -> None:
        """Release the lock to the next waiting client. Safe to repeat, also after a loss."""
        if self._given_back:
            return
        self.abandon()
        with contextlib.suppress(Rejected):  # another client has it
            await _command(self._replica, self.name, "release", self.token)
        self._given_back = True

    def keep(self) -> None:
        """Renew the lock in the background until it is released or lost."""
        self._replica.closing.append(self.abandon)
        self._replica.port.spawn(self._keep())

    def abandon(self) -> None:
        """Stop renewing the lock."""
        self._stop.set()
        if self.abandon in self._replica.closing:
            self._replica.closing.remove(self.abandon)

    async def _keep(self) -> None:
        while not await self._stop.wait(min(self.lease / _RENEWALS, _RENEWAL_SECONDS_MAX)):
            try:
                await self.renew()
            except LockLost:
                break
            except ZlogError:
                if not self.remaining():
                    break
        self.abandon()


async def acquire(replica: Replica, name: str, owner: Any, lease: float, timeout: Timeout) -> Lease:
    """Request a lock, and wait for it; see ``Lock.acquire``.

    If the call is interrupted, or the log does not answer in time, the request is withdrawn.
    """
    began = replica.port.monotonic()
    deadline = replica.port.deadline(timeout)
    ask = ("lock", name, ["acquire", owner, lease])
    request = replica.new_id()
    held: Lease | None = None
    try:
        asked = await replica.carry_out(ask, request)
        held = Lease(replica, name, asked.position, lease, began)
        if not (asked.results and asked.results[0]):  # not granted at once, as far as is known
            await _wait_for_turn(replica, name, held.token, deadline)
            await held.renew()  # it may have been granted long ago, so the lease counts from here
    except BaseException as error:
        if held is not None:
            await held.release()
        elif isinstance(error, OutcomeUnknown):  # the caller has waited long enough
            replica.port.spawn(_withdraw(replica, name, ask, request))
        elif not isinstance(error, Exception):
            await _withdraw(replica, name, ask, request)
        raise
    return held


async def _command(replica: Replica, name: str, *words: Any) -> None:
    """Execute a command of a lock that has no result."""
    await replica.carry_out(("lock", name, words), replica.new_id())


async def _withdraw(replica: Replica, name: str, ask: tuple[Any, ...], id: str) -> None:
    """Withdraw a request for a lock if it is unknown whether the request is in the log.

    To release the lock, the client needs the request's token, which is the position of its entry.
    Appending the same request again under the same id reveals the token. If the log does not answer
    this time either, or an interrupt while an entry was applied has stopped the replica, the lock
    may still be granted, but it expires with its lease.
    """
    with contextlib.suppress(ZlogError):
        asked = await replica.commit([ask], id, 1, replica.machine.position)
        await _command(replica, name, "release", asked.position)


async def _wait_for_turn(replica: Replica, name: str, token: int, deadline: Deadline) -> None:
    seen: Holder | None = None
    since = 0.0
    while True:
        replica.check()
        state = replica.machine.objects[name]
        assert isinstance(state, LockState)
        with replica.port.lock:
            position = replica.machine.position
            holder, waits = state.holder, token in state.waiting
        if holder is not None and holder.token == token:
            return
        if holder is None or not waits:
            raise LockLost(f"the request for lock {name!r} under token {token} has expired")
        now = replica.port.monotonic()
        if holder != seen:
            seen, since = holder, now
        left = since + holder.lease - now
        if left <= 0:
            await _expire(replica, name, holder)
        elif deadline.expired:
            raise LockTimeout(f"lock {name!r} is held by {holder.owner!r}")
        else:
            await replica.wait(position, deadline.within(left))


async def _expire(replica: Replica, name: str, holder: Holder) -> None:
    """Take the lock away from a holder that has not renewed it for its lease."""
    with contextlib.suppress(Rejected):  # the holder has renewed or released it
        await _command(replica, name, "expire", holder.token, holder.version)
