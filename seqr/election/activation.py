"""Taking logs over and letting them go, through zlog's own change of view.

The steps (epoch, seal, highest position, view) are in ``zlog._layout.views``, the same for every
change of a layout. Here they run in the pool that a client names, if this sequencer leads there.
Which pools it can serve is decided by the capabilities of its Ceph user.
"""

from __future__ import annotations

from zlog._base.codes import Code
from zlog._base.deadline import Deadline
from zlog._base.io import Call, Io, deadline_of
from zlog._base.options import StripeLimits
from zlog._base.sequencer import Grant, LogAddress
from zlog._catalog.head import Head
from zlog._io import AsyncioIo
from zlog._layout.views import release, take_over
from zlog._native import messages
from zlog.errors import LogNotFound, NotLeader
from zlog.seqr.election.candidate import Candidate, Role
from zlog.seqr.election.election import Election
from zlog.seqr.limits import Limits
from zlog.seqr.namespaces import Namespace, Stores
from zlog.view import View


class Activation:
    """Makes this sequencer the one of a log, and ends that.

    Args:
        stores: where the logs are.
        election: knows where this sequencer leads.
        address: what views say of this sequencer, ``tcp://HOST:PORT`` or
            ``tls://HOST:PORT``.
        limits: see there.
    """

    def __init__(self, stores: Stores, election: Election, address: str, limits: Limits) -> None:
        self._stores = stores
        self._election = election
        self._address = address
        self._limits = limits

    async def lives(self, log: LogAddress, epoch: int) -> bool:
        """Whether there is no reason to take the log over in an epoch above this one.

        Reasons are: a later epoch was taken, the newest view is another, an object refuses this
        epoch, or is full. Clients say so, and the log's own objects tell whether it is true.

        Raises:
            LogNotFound: no log of this name, or another one than that of the given id.
            ZlogError: the store did not do its part.
        """
        io = await self._stores.of(Namespace(log.pool, log.namespace))
        deadline = self._deadline(io)
        head = await Head(io, log.name).read(deadline)
        _check_id(log, head.log_id)
        view = head.view
        if view is None or view.removed or view.sequencer != self._address:
            return False
        return head.counter == view.epoch == epoch and await _objects_agree(io, view, deadline)

    async def activate(self, log: LogAddress) -> Grant:
        """Take a log over, in an epoch above every earlier one.

        Raises:
            LogNotFound: no log of this name, or another one than that of the given id.
            NotLeader: another sequencer leads there.
            ZlogError: the store did not do its part.
        """
        namespace = Namespace(log.pool, log.namespace)
        io = await self._stores.of(namespace)
        candidate = await self._election.candidate(namespace)
        _check_leads(candidate)
        deadline = self._deadline(io)
        # Asked first so that a client of a removed log does not disturb the new one of its name;
        # asked again because the name may have changed hands meanwhile.
        _check_id(log, (await Head(io, log.name).read(deadline)).log_id)
        change = await take_over(
            io,
            log.name,
            self._address,
            deadline,
            depose=lambda: candidate.lease.exclusive and candidate.role is Role.LEADER,
        )
        _check_id(log, change.view.log_id)
        _check_leads(candidate)
        return Grant(change.view.epoch, change.tail)

    async def release(self, log: LogAddress) -> None:
        """Let a log go on without this sequencer, if its newest view still names it."""
        io = await self._stores.of(Namespace(log.pool, log.namespace))
        await release(io, log.name, self._address, self._deadline(io))

    def _deadline(self, io: AsyncioIo) -> Deadline:
        return deadline_of(io, self._limits.activation_s_max)


async def _objects_agree(io: Io, view: View, deadline: Deadline) -> bool:
    """Whether no object of the live stripe refuses the view's epoch, or is full."""
    limits, live = StripeLimits.of(view.options), view.live_stripe
    request = messages.stat(view.epoch)
    calls = [Call(ref.name, "stat", request) for ref in view.objects()]
    for reply in await io.execute(calls, deadline):
        if reply.code == Code.STALE_EPOCH:
            return False
        if reply.code == Code.OK:
            held = messages.stat_reply(reply.payload)
            end = max(view.tail_floor, -1 if held.highest is None else held.highest + 1)
            positions = (end - live.start) / live.width
            if limits.fullness(held.records, max(held.bytes, held.stream_bytes), positions) >= 1:
                return False
    return True


def _check_leads(candidate: Candidate) -> None:
    if candidate.role is not Role.LEADER:
        who = candidate.leader or "another sequencer"
        raise NotLeader(f"{who} leads {candidate.namespace}, as far as is known")


def _check_id(log: LogAddress, log_id: int) -> None:
    if log_id != log.log_id:
        raise LogNotFound(f"log {log} was removed; another one has its name")
