"""The producers that a log's head object stores (cls_zlog/head/producers.cc)."""

from __future__ import annotations

import errno
from datetime import datetime
from typing import NamedTuple

from zlog._base.codes import ATTEMPTS_MAX, GRANTS_MAX, PARTS_MAX, PRODUCERS_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Reply
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.entry import from_timestamp
from zlog.errors import LimitReached, LogExhausted, SequenceSuperseded
from zlog.names import check_producer_name
from zlog.view import View

SEQUENCE_MAX = 2**64 - 2
PART_MAX = 2**32 - 1

_PRODUCERS_PER_READ = 256
SEQUENCE_ALL = 2**64 - 1

_LIMITS = {
    PRODUCERS_MAX: (
        f"already has {PRODUCERS_MAX:,} producers, which is the limit",
        (
            "Remove producers that are no longer used. `zlog producer ls` or `producers()`"
            " lists them, and `zlog producer rm` or `forget_producer(producer)` removes one."
        ),
    ),
    PARTS_MAX: (
        f"already stores {PARTS_MAX:,} unfinished parts of this producer, which is the limit",
        "Declare finished sequence numbers complete: `complete_sequences(producer, before=n)`.",
    ),
    ATTEMPTS_MAX: (
        "has recorded a million attempts at this part, which is the limit",
        (
            "Find out why the attempts fail, and then repeat the append under a new sequence"
            " number. Entries of this append that are already in the log will be in it twice."
        ),
    ),
    GRANTS_MAX: (
        f"stores at most {GRANTS_MAX:,} grants for a part, but this part needs more",
        "Divide the append into more parts.",
    ),
}
"""The message and the hint for each limit that a method can exceed."""


class SequenceKey(NamedTuple):
    """Identifies an exactly-once append.

    Attributes:
        producer: the producer's name.
        sequence: the append's sequence number, which is higher than those of earlier appends.
        part: the number of the part. Different parts may be appended at the same time.
    """

    producer: str
    sequence: int
    part: int

    def check(self) -> None:
        """Raise TypeError or ValueError if the key is invalid."""
        check_producer_name(self.producer)
        _check_number("sequence", self.sequence, SEQUENCE_MAX)
        _check_number("part", self.part, PART_MAX)

    def __str__(self) -> str:
        return f"part {self.part} of sequence {self.sequence} of producer {self.producer!r}"


class Producer(NamedTuple):
    """A producer of exactly-once appends, as its log stores it.

    Attributes:
        name: the producer's name.
        sequence: the first sequence number that is not complete; see
            :meth:`zlog.Log.complete_sequences`.
        parts: the number of stored parts, whose sequence numbers are not complete yet.
        created: when the producer first appended, by its clock, UTC.
        updated: when it last began an append or declared numbers complete, by its clock, UTC.
    """

    name: str
    sequence: int
    parts: int
    created: datetime
    updated: datetime


class ProducerRecords:
    """Calls on the producers of one log."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._log_id = layout.address.log_id

    async def begin(self, key: SequenceKey, deadline: Deadline) -> messages.DeliveryBeginReply:
        """Begin an attempt. Earlier attempts get no more grants."""
        now = self._layout.io.wall_clock_us()
        request = messages.delivery_begin(self._log_id, *key, now)
        reply = await self._call("delivery_begin", request, deadline, Code.SEQUENCE_DONE)
        if reply.code == Code.SEQUENCE_DONE:
            raise self._being_forgotten(key) if reply.number == SEQUENCE_ALL else self._done(key)
        return messages.delivery_begin_reply(reply.payload)

    async def granted(
        self, key: SequenceKey, incarnation: int, deadline: Deadline
    ) -> tuple[list[range], int | None]:
        """Return all granted positions, and the lowest one of an open grant, if any.

        Raises SequenceSuperseded if the sequence is complete.
        """
        request = messages.delivery_read(self._log_id, *key)
        reply = await self._call("delivery_read", request, deadline, Code.NOT_FOUND)
        if reply.code == Code.NOT_FOUND:
            raise self._done(key)
        part = messages.delivery_read_reply(reply.payload)
        if part.incarnation != incarnation:
            raise self._done(key)
        grants = [range(each.first, each.first + each.count) for each in part.grants]
        return grants, part.open_from - 1 if part.open_from else None

    async def grant(
        self,
        key: SequenceKey,
        incarnation: int,
        attempt: int,
        view: View,
        positions: range,
        deadline: Deadline,
        *,
        opened: bool = False,
    ) -> int | None:
        """Record the positions granted to an attempt in the head, before any of them is written.

        Returns the first position, which the head chooses if the log has no sequencer. Returns None
        if the caller must repeat the grant in a newer view. Raises SequenceSuperseded if a newer
        attempt has begun, or if the sequence number is complete.

        If ``opened`` is set, no position is granted: the head records that the attempt may append
        at or above the first one in the epoch of ``view``.
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
            opened,
        )
        refusals = (Code.STALE_EPOCH, Code.BEYOND_STRIPE, Code.NOT_FOUND, Code.SUPERSEDED)
        reply = await self._call("delivery_grant", request, deadline, *refusals, -errno.ERANGE)
        if reply.code == Code.NOT_FOUND:
            raise self._done(key)
        if reply.code == Code.SUPERSEDED:
            raise SequenceSuperseded(f"log {view.log!r}: a newer attempt at {key} has begun")
        if reply.code == -errno.ERANGE:
            raise LogExhausted(f"log {view.log!r} has no position left below 2^63")
        if reply.code == Code.BEYOND_STRIPE:
            await self._layout.renew(view, deadline)
        if reply.code in (Code.STALE_EPOCH, Code.BEYOND_STRIPE):
            return None
        return messages.delivery_grant_reply(reply.payload).first

    async def done(self, producer: str, before: int | None, deadline: Deadline) -> None:
        """Complete some of a producer's sequence numbers, or forget the producer.

        The sequence numbers below ``before`` become complete. If ``before`` is None, the producer
        is forgotten. This may take several requests. Each request names the producer's incarnation,
        so that a delayed request cannot affect a new producer with the same name.
        """
        if before is not None:
            _check_number("sequence", before, SEQUENCE_MAX)
        sequence = SEQUENCE_ALL if before is None else before
        check_producer_name(producer)
        log_id, now = self._log_id, self._layout.io.wall_clock_us()
        refusals = (Code.SUPERSEDED, Code.NOT_FOUND)
        incarnation, seen, more = 0, False, True
        while more:
            request = messages.delivery_done(log_id, producer, sequence, incarnation, now)
            reply = await self._call("delivery_done", request, deadline, *refusals)
            if reply.code == Code.OK:
                seen, more = True, messages.delivery_done_reply(reply.payload).more
                continue
            if seen:  # another client has forgotten the producer
                return
            incarnation = reply.number
            seen = reply.code == Code.SUPERSEDED

    async def producers(self, deadline: Deadline) -> list[Producer]:
        """Return all producers, in the order of their names."""
        found: list[Producer] = []
        more = True
        while more:
            after = found[-1].name if found else ""
            request = messages.delivery_list(self._log_id, after, _PRODUCERS_PER_READ)
            reply = await self._call("delivery_list", request, deadline)
            more, page = messages.delivery_list_reply(reply.payload)
            for name, sequence, parts, *times, _ in page:
                created, updated = map(from_timestamp, times)
                found.append(Producer(name, sequence, parts, created, updated))
        return found

    async def _call(self, method: str, request: bytes, deadline: Deadline, *refusals: int) -> Reply:
        reply = await self._layout.head.call(
            method, request, deadline, Code.LIMIT_REACHED, *refusals
        )
        if reply.code == Code.LIMIT_REACHED:
            what, hint = _LIMITS[reply.number]
            raise LimitReached(f"log {self._layout.address.name!r} {what}", hint=hint)
        return reply

    def _done(self, key: SequenceKey) -> SequenceSuperseded:
        return SequenceSuperseded(
            f"log {self._layout.address.name!r}: {key} is complete",
            hint="Continue with the next sequence number: the entries of this one are in the log.",
        )

    def _being_forgotten(self, key: SequenceKey) -> SequenceSuperseded:
        log, producer = self._layout.address.name, key.producer
        return SequenceSuperseded(
            f"log {log!r}: the removal of producer {producer!r} is not finished",
            hint=f"To finish it, use `forget_producer({producer!r})`, or `zlog producer rm"
            f" {log} {producer}`.",
        )


def _check_number(what: str, value: int, most: int) -> None:
    if not hasattr(value, "__index__"):
        raise TypeError(f"a {what} number must be an int, not {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"a {what} number must be 0 to {most}, not {value}")
