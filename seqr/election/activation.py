"""Taking logs over and releasing them, by a change of their view.

Taking over a log takes the same steps as any layout change (see ``zlog._layout.views``). The
sequencer takes them in the pool that a client names, if it leads there and the caps of its Ceph
user allow it.
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
    """Takes over logs on behalf of this sequencer, and releases them.

    All methods raise ZlogError if the store fails.

    Args:
        address: this sequencer's address in views, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
    """

    def __init__(self, stores: Stores, election: Election, address: str, limits: Limits) -> None:
        self._stores = stores
        self._election = election
        self._address = address
        self._limits = limits

    async def lives(self, log: LogAddress, epoch: int) -> bool:
        """Return whether a log's epoch is still usable, although a client has reported its end.

        An epoch has ended if a later one has begun, if the log's view names another sequencer, or
        if one of the log's objects refuses the epoch or is full.

        Raises:
            LogNotFound: no log has this name and id.
        """
        io = await self._stores.of(Namespace.of(log))
        deadline = self._deadline(io)
        head = await Head(io, log.name).read(deadline)
        _check_id(log, head.log_id)
        view = head.view
        if view is None or view.removed or view.sequencer != self._address:
            return False
        return head.counter == view.epoch == epoch and await _objects_agree(io, view, deadline)

    async def activate(self, log: LogAddress) -> Grant:
        """Take over a log, and return its new epoch and its tail.

        Raises:
            LogNotFound: no log has this name and id.
            NotLeader: this sequencer does not lead in the log's namespace.
        """
        namespace = Namespace.of(log)
        io = await self._stores.of(namespace)
        candidate = await self._election.candidate(namespace)
        _check_leads(candidate)
        deadline = self._deadline(io)
        # Checked first so that a client of a removed log does not disturb a new log of this name,
        # and again because the log may have been replaced since.
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
        """Install a view without a sequencer if the newest view names this one."""
        io = await self._stores.of(Namespace.of(log))
        await release(io, log.name, self._address, self._deadline(io))

    def _deadline(self, io: AsyncioIo) -> Deadline:
        return deadline_of(io, self._limits.activation_s_max)


async def _objects_agree(io: Io, view: View, deadline: Deadline) -> bool:
    """Whether no object of the live stripe refuses the view's epoch or is full."""
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
        raise NotLeader(f"{who} leads {candidate.namespace}, as far as this sequencer knows")


def _check_id(log: LogAddress, log_id: int) -> None:
    if log_id != log.log_id:
        raise LogNotFound(f"log {log} was removed, and another log now has its name")
