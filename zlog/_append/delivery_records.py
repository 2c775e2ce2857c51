"""The deliveries that a log's head object keeps (cls_zlog/head/deliveries.cc)."""

from __future__ import annotations

import errno
from datetime import datetime
from typing import NamedTuple

from zlog._base.codes import ATTEMPTS_MAX, GRANTS_MAX, PARTS_MAX, SOURCES_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Reply
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.entry import from_timestamp
from zlog.errors import DeliverySuperseded, LimitReached, LogExhausted
from zlog.names import check_source_name
from zlog.view import View

BATCH_MAX = 2**64 - 2
PART_MAX = 2**32 - 1

_SOURCES_PER_READ = 256
_BATCH_ALL = 2**64 - 1

_LIMITS = {
    SOURCES_MAX: (
        f"has {SOURCES_MAX:,} sources of deliveries already",
        (
            "List them, and remove those that are gone: `zlog delivery ls` and `zlog delivery rm`,"
            " or `sources()` and `forget_source(source)`."
        ),
    ),
    PARTS_MAX: (
        f"keeps {PARTS_MAX:,} parts of this source already that are not done",
        "Say which batches will not be delivered again: `deliveries_done(source, before=batch)`.",
    ),
    ATTEMPTS_MAX: (
        "has seen a million attempts at this part, and counts no more",
        (
            "See why they fail. Then give the batch another number; what was appended stays, and"
            " would be appended again."
        ),
    ),
    GRANTS_MAX: (
        f"keeps {GRANTS_MAX:,} grants for one part of a batch, and this one needs more",
        "Deliver it in more parts.",
    ),
}
"""The message and the hint for each limit that a method may exceed."""


class DeliveryKey(NamedTuple):
    """Identifies a delivery.

    Attributes:
        source: name of the client that delivers.
        batch: number that only grows.
        part: number of a part of the batch. Parts may be delivered at the same time.
    """

    source: str
    batch: int
    part: int

    def check(self) -> None:
        """Raise TypeError or ValueError unless it is valid."""
        check_source_name(self.source)
        _check_number("batch", self.batch, BATCH_MAX)
        _check_number("part", self.part, PART_MAX)

    def __str__(self) -> str:
        return f"part {self.part} of batch {self.batch} of {self.source!r}"


class DeliverySource(NamedTuple):
    """A source of deliveries as its log keeps it.

    Attributes:
        name: of the source.
        batch: the first batch that is not done; see :meth:`zlog.Log.deliveries_done`.
        parts: how many parts of this and later batches the log keeps.
        created: when the source first delivered, by its clock, UTC.
        updated: when it last began to deliver or reported batches done, by its clock, UTC.
    """

    name: str
    batch: int
    parts: int
    created: datetime
    updated: datetime


class DeliveryRecords:
    """Calls on the deliveries of one log."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._log_id = layout.address.log_id

    async def begin(self, key: DeliveryKey, deadline: Deadline) -> messages.DeliveryBeginReply:
        """Begin an attempt. Earlier attempts get no more grants."""
        now = self._layout.io.wall_clock_us()
        request = messages.delivery_begin(self._log_id, *key, now)
        reply = await self._call("delivery_begin", request, deadline, Code.BATCH_DONE)
        if reply.code == Code.BATCH_DONE:
            raise self._being_forgotten(key) if reply.number == _BATCH_ALL else self._done(key)
        return messages.delivery_begin_reply(reply.payload)

    async def granted(self, key: DeliveryKey, incarnation: int, deadline: Deadline) -> list[range]:
        """Return all granted positions. Raises DeliverySuperseded if the batch is done."""
        request = messages.delivery_read(self._log_id, *key)
        reply = await self._call("delivery_read", request, deadline, Code.NOT_FOUND)
        if reply.code == Code.NOT_FOUND:
            raise self._done(key)
        part = messages.delivery_read_reply(reply.payload)
        if part.incarnation != incarnation:
            raise self._done(key)
        return [range(each.first, each.first + each.count) for each in part.grants]

    async def grant(
        self,
        key: DeliveryKey,
        incarnation: int,
        attempt: int,
        view: View,
        positions: range,
        deadline: Deadline,
    ) -> int | None:
        """Record positions granted to an attempt, before any of them is written.

        Returns the first position, which the head chooses if there is no sequencer; None if the
        view is not the newest. Raises DeliverySuperseded if another attempt has begun since, or the
        batch is done.
        """
        request = messages.delivery_grant(
            self._log_id,
            *key,
            incarnation,
            attempt,
            view.epoch,
            positions.start,
            len(positions),
            not view.sequencer,
        )
        refusals = (Code.STALE_EPOCH, Code.BEYOND_STRIPE, Code.NOT_FOUND, Code.SUPERSEDED)
        reply = await self._call("delivery_grant", request, deadline, *refusals, -errno.ERANGE)
        if reply.code == Code.NOT_FOUND:
            raise self._done(key)
        if reply.code == Code.SUPERSEDED:
            raise DeliverySuperseded(
                f"log {view.log!r}: another attempt at {key} has begun since this one"
            )
        if reply.code == -errno.ERANGE:
            raise LogExhausted(f"log {view.log!r} has no position left below 2^63")
        if reply.code == Code.BEYOND_STRIPE:
            await self._layout.renew(view, deadline)
        if reply.code in (Code.STALE_EPOCH, Code.BEYOND_STRIPE):
            return None
        return messages.delivery_grant_reply(reply.payload).first

    async def done(self, source: str, before: int | None, deadline: Deadline) -> None:
        """Refuse the batches below ``before`` from now on, and forget them a part at a time.

        None forgets the source. The first successful call raises the source's batch, and the last
        one removes a source that is forgotten. Each call names the incarnation of the source, so
        that a late call does not affect a new source of the same name.
        """
        if before is not None:
            _check_number("batch", before, BATCH_MAX)
        batch = _BATCH_ALL if before is None else before
        check_source_name(source)
        log_id, now = self._log_id, self._layout.io.wall_clock_us()
        refusals = (Code.SUPERSEDED, Code.NOT_FOUND)
        incarnation, seen, more = 0, False, True
        while more:
            request = messages.delivery_done(log_id, source, batch, incarnation, now)
            reply = await self._call("delivery_done", request, deadline, *refusals)
            if reply.code == Code.OK:
                seen, more = True, messages.delivery_done_reply(reply.payload).more
                continue
            if seen:  # another client has forgotten it
                return
            incarnation = reply.number
            seen = reply.code == Code.SUPERSEDED

    async def sources(self, deadline: Deadline) -> list[DeliverySource]:
        """Return all sources, in name order."""
        found: list[DeliverySource] = []
        more = True
        while more:
            after = found[-1].name if found else ""
            request = messages.delivery_list(self._log_id, after, _SOURCES_PER_READ)
            reply = await self._call("delivery_list", request, deadline)
            more, page = messages.delivery_list_reply(reply.payload)
            for name, batch, parts, *times in page:
                created, updated = map(from_timestamp, times)
                found.append(DeliverySource(name, batch, parts, created, updated))
        return found

    async def _call(self, method: str, request: bytes, deadline: Deadline, *refusals: int) -> Reply:
        reply = await self._layout.head.call(
            method, request, deadline, Code.LIMIT_REACHED, *refusals
        )
        if reply.code == Code.LIMIT_REACHED:
            what, hint = _LIMITS[reply.number]
            raise LimitReached(f"log {self._layout.address.name!r} {what}", hint=hint)
        return reply

    def _done(self, key: DeliveryKey) -> DeliverySuperseded:
        return DeliverySuperseded(
            f"log {self._layout.address.name!r}: {key} is delivered: its batch is done",
            hint="Go on with the next batch: the entries of this one are in the log.",
        )

    def _being_forgotten(self, key: DeliveryKey) -> DeliverySuperseded:
        log, source = self._layout.address.name, key.source
        return DeliverySuperseded(
            f"log {log!r}: source {source!r} is being forgotten, or that was broken off amid it",
            hint=f"Have it forgotten to the end, and then deliver: `forget_source({source!r})`, or"
            f" `zlog delivery rm {log} {source}`.",
        )


def _check_number(what: str, value: int, most: int) -> None:
    if not hasattr(value, "__index__"):
        raise TypeError(f"the number of a {what} is an int, not {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"the number of a {what} is 0 to {most}, not {value}")
