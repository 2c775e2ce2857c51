"""Deliveries: entries that are appended exactly once, however often it is tried.

A delivery is a part of a batch of a source. The head object keeps, for each, which positions were
granted to it (cls_zlog/head/deliveries.cc), and nothing is written to a position before that is
done. A new attempt

1. begins in the head, so that earlier attempts are granted nothing more;
2. settles every position that they were granted: what is not written is filled, and stays so;
3. reads what they have written there;
4. appends the entries that are not among that.

After the second step no other attempt can write an entry of the delivery, so what the third
one finds is all there is. Entries are compared by their content: they may come in another order.

Source: docs/design.md, "Deliveries".
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from zlog._append.append import ROUND_BYTES_MAX, ROUND_ENTRIES_MAX, Appender
from zlog._base.deadline import Deadline, Timeout
from zlog._base.io import Call, Reply
from zlog._base.names import head_object
from zlog._base.protocol import (
    ATTEMPTS_MAX,
    GRANTS_MAX,
    PARTS_MAX,
    SOURCES_MAX,
    Code,
    FillCode,
)
from zlog._native import core, messages
from zlog._read.read import READ_BYTES_MAX
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import (
    CorruptEntry,
    DeliveryDiffers,
    DeliverySuperseded,
    LimitReached,
    LogNotFound,
    StoreUnavailable,
    ZlogError,
)
from zlog.names import check_source_name
from zlog.view import View

if TYPE_CHECKING:
    from zlog._client import LogClient

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
"""By the limit that a method would exceed: what happened, and what to do."""

_NUMBERS_BITS = 40  # numbers of appends of one attempt
_WINDOW_POSITIONS = 4096
_WINDOW_BYTES = 8 << 20


class DeliveryKey(NamedTuple):
    """Which delivery.

    Attributes:
        source: who delivers, by a name of its own.
        batch: only ever grows.
        part: those of a batch may be delivered at the same time.
    """

    source: str
    batch: int
    part: int

    def check(self) -> None:
        """Raise TypeError or ValueError unless it can name a delivery."""
        check_source_name(self.source)
        _check_number("batch", self.batch, BATCH_MAX)
        _check_number("part", self.part, PART_MAX)

    def __str__(self) -> str:
        return f"part {self.part} of batch {self.batch} of {self.source!r}"


class DeliverySource(NamedTuple):
    """A source of deliveries as its log keeps it.

    Attributes:
        name: the source's.
        batch: the first one that it has not said to be done; see :meth:`zlog.Log.deliveries_done`.
        parts: how many parts of this and later batches the log keeps.
        created: when it first delivered, by its clock, UTC.
        updated: when it last began to deliver or said what is done, by its clock, UTC.
    """

    name: str
    batch: int
    parts: int
    created: datetime
    updated: datetime


class Deliveries:
    """Delivers to one log."""

    def __init__(self, client: LogClient) -> None:
        self._client = client

    async def deliver(self, entries: Iterable[bytes], key: DeliveryKey, timeout: Timeout) -> int:
        """Append what is not there yet; see :meth:`zlog.Log.deliver`."""
        key.check()
        attempt = await self._begin(key, timeout)
        appended = 0
        for some in _rounds(entries):
            missing = attempt.missing(some)
            await attempt.append(missing, self._client.deadline(timeout))
            appended += len(missing)
        attempt.finish()
        return appended

    async def _begin(self, key: DeliveryKey, timeout: Timeout) -> _Attempt:
        """Shut out the attempts before, and find what they have written."""
        client = self._client
        await client.positions.check_appendable(client.deadline(timeout))
        log_id, now = client.layout.address.log_id, client.io.wall_clock_us()
        request = messages.delivery_begin(log_id, *key, now)
        deadline = client.deadline(timeout)
        reply = await _call(client, "delivery_begin", request, deadline, Code.BATCH_DONE)
        if reply.code == Code.BATCH_DONE:
            if reply.number == _BATCH_ALL:
                raise _being_forgotten(client, key.source)
            raise _batch_done(client, key)
        number, grants, incarnation = messages.delivery_begin_reply(reply.payload)
        attempt = _Attempt(client, key, incarnation, number)
        if grants:
            await attempt.recover(timeout)
        return attempt

    async def done(self, source: str, before: int, timeout: Timeout) -> None:
        """Forget batches that are done; see :meth:`zlog.Log.deliveries_done`."""
        _check_number("batch", before, BATCH_MAX)
        await self._done(source, before, timeout)

    async def forget(self, source: str, timeout: Timeout) -> None:
        """Forget a source; see :meth:`zlog.Log.forget_source`."""
        await self._done(source, _BATCH_ALL, timeout)

    async def _done(self, source: str, batch: int, timeout: Timeout) -> None:
        """Refuse the batches below one from now on, and forget them a part at a time.

        The first call that is not refused raises the batch, and so refuses the others from then on;
        the last one removes a source that comes no more. Each names the incarnation of the source
        that this one saw, and so does nothing to another one of its name, however late it comes.
        """
        check_source_name(source)
        address = self._client.layout.address
        now = self._client.io.wall_clock_us()
        deadline = self._client.deadline(timeout)
        incarnation, seen, more = 0, False, True
        while more:
            request = messages.delivery_done(address.log_id, source, batch, incarnation, now)
            reply = await _call(
                self._client,
                "delivery_done",
                request,
                deadline,
                Code.SUPERSEDED,
                Code.NOT_FOUND,
            )
            if reply.code == Code.OK:
                seen, more = True, messages.delivery_done_reply(reply.payload).more
                continue
            if seen:  # it was forgotten meanwhile
                return
            incarnation = reply.number
            seen = reply.code == Code.SUPERSEDED

    async def sources(self, timeout: Timeout) -> list[DeliverySource]:
        """Return all sources, in the order of their names."""
        address, deadline = self._client.layout.address, self._client.deadline(timeout)
        found: list[DeliverySource] = []
        more = True
        while more:
            after = found[-1].name if found else ""
            request = messages.delivery_list(address.log_id, after, _SOURCES_PER_READ)
            reply = await _call(self._client, "delivery_list", request, deadline)
            more, page = messages.delivery_list_reply(reply.payload)
            for name, batch, parts, *times in page:
                created, updated = map(core.from_timestamp, times)
                found.append(DeliverySource(name, batch, parts, created, updated))
        return found


class _Attempt:
    """One attempt at a delivery.

    Life: begun → recovered, if others were before it → appending → finished; or, at any time,
    superseded by a later one.
    """

    def __init__(self, client: LogClient, key: DeliveryKey, incarnation: int, number: int) -> None:
        self._client = client
        self._key = key
        self._incarnation = incarnation
        self._number = number
        self._log_id = client.layout.address.log_id
        self._writer = _writer_id(self._log_id, key, incarnation)
        self._written: Counter[bytes] = Counter()
        self._appender = Appender(
            client.layout,
            self,
            self._writer,
            client.settings.entry_bytes_max,
            number=number << _NUMBERS_BITS,
        )

    async def recover(self, timeout: Timeout) -> None:
        """Settle what the attempts before were granted, and find what they have written."""
        client = self._client
        request = messages.delivery_read(self._log_id, *self._key)
        deadline = client.deadline(timeout)
        reply = await _call(client, "delivery_read", request, deadline, Code.NOT_FOUND)
        if reply.code == Code.NOT_FOUND:
            raise _batch_done(client, self._key)
        part = messages.delivery_read_reply(reply.payload)
        if part.incarnation != self._incarnation:
            raise _batch_done(client, self._key)
        grants = [range(each.first, each.first + each.count) for each in part.grants]
        for grant in _each_once(grants):
            for first in range(grant.start, grant.stop, _WINDOW_POSITIONS):
                window = range(first, min(first + _WINDOW_POSITIONS, grant.stop))
                await self._settle(window, client.deadline(timeout))

    async def _settle(self, positions: Sequence[int], deadline: Deadline) -> None:
        """Fill what is not written of some positions, and take note of what is."""
        reader, layout = self._client.reader, self._client.layout
        while positions:
            bytes_max = min(READ_BYTES_MAX, _WINDOW_BYTES // layout.width_at(positions[0]))
            writers: dict[int, bytes] = {}
            found = await reader.read_some(
                positions, deadline, bytes_max=bytes_max, writers=writers
            )
            for position, slot in found.items():
                # Without a sequencer, another writer may have been faster.
                if isinstance(slot, Entry) and writers[position] == self._writer:
                    self._written[_digest(slot.data)] += 1
                elif isinstance(slot, Gap) and slot.kind in (GapKind.LOST, GapKind.UNREADABLE):
                    raise CorruptEntry(
                        f"position {position} of log {self._client.layout.view.log!r} is"
                        f" {slot.kind.value}: it is not known whether {self._key} is delivered"
                    )
            holes = [
                p
                for p, slot in found.items()
                if isinstance(slot, Gap) and slot.kind is GapKind.UNWRITTEN
            ]
            if holes:
                await reader.fill(sorted(holes), FillCode.WRITER_GAVE_UP, deadline)
            open_ = set(holes)
            positions = [p for p in positions if p in open_ or p not in found]

    def missing(self, entries: list[bytes]) -> list[bytes]:
        """Return those of the entries that earlier attempts have not written."""
        if not self._written:
            return entries
        return [entry for entry in entries if not self._take(_digest(entry))]

    def _take(self, digest: bytes) -> bool:
        count = self._written.get(digest, 0)
        if count > 1:
            self._written[digest] = count - 1
        elif count:
            del self._written[digest]
        return count > 0

    async def append(self, entries: Sequence[bytes], deadline: Deadline) -> None:
        """Append entries that are in the log nowhere else."""
        await self._appender.append(entries, deadline)

    def finish(self) -> None:
        """Raise DeliveryDiffers if earlier attempts have written what was not among the entries."""
        surplus = self._written.total()
        if surplus:
            raise DeliveryDiffers(
                f"log {self._client.layout.view.log!r}: an earlier attempt at {self._key} appended"
                f" {surplus} entries that are not among those of this one"
            )

    async def grant(self, count: int, deadline: Deadline) -> tuple[View, int]:
        """Return positions as :meth:`Positions.grant` does, once the head has written them down."""
        client = self._client
        while True:
            view, first = await client.positions.grant(count, deadline)
            request = messages.delivery_grant(
                self._log_id,
                *self._key,
                self._incarnation,
                self._number,
                view.epoch,
                first,
                count,
                not view.sequencer,
            )
            positions = range(first, first + count)
            try:
                reply = await _call(
                    client,
                    "delivery_grant",
                    request,
                    deadline,
                    Code.STALE_EPOCH,
                    Code.NOT_FOUND,
                    Code.SUPERSEDED,
                )
            except StoreUnavailable:  # so fills would fail as well, and use up the time in trying
                raise
            except ZlogError:
                await self._give_back(view, positions, deadline)
                raise
            if reply.code == Code.OK:
                return view, messages.delivery_grant_reply(reply.payload).first
            if reply.code == Code.STALE_EPOCH:
                await client.layout.advance(view, deadline)
                continue
            await self._give_back(view, positions, deadline)
            if reply.code == Code.NOT_FOUND:
                raise _batch_done(client, self._key)
            raise DeliverySuperseded(
                f"log {view.log!r}: another attempt at {self._key} has begun since this one"
            )

    async def _give_back(self, view: View, positions: range, deadline: Deadline) -> None:
        """Fill positions that will not be written, so that no reader has to wait for them.

        Only while there is no later epoch: the head knows nothing of this grant, and
        so others may be handed the same positions then. Without a sequencer none were handed out.
        """
        if not view.sequencer:
            return
        with contextlib.suppress(ZlogError):
            tail = await self._client.positions.tail(deadline)
            unused = range(positions.start, min(positions.stop, tail))
            if unused and self._client.layout.view.epoch == view.epoch:
                await self._client.reader.fill(unused, FillCode.WRITER_GAVE_UP, deadline)


def _batch_done(client: LogClient, key: DeliveryKey) -> DeliverySuperseded:
    return DeliverySuperseded(
        f"log {client.layout.view.log!r}: {key} is delivered: its batch is done"
    )


def _being_forgotten(client: LogClient, source: str) -> DeliverySuperseded:
    log = client.layout.view.log
    return DeliverySuperseded(
        f"log {log!r}: source {source!r} is being forgotten, or that was broken off amid it",
        hint=f"Have it forgotten to the end, and then deliver: `forget_source({source!r})`, or"
        f" `zlog delivery rm {log} {source}`.",
    )


async def _call(
    client: LogClient, method: str, request: bytes, deadline: Deadline, *refusals: Code
) -> Reply:
    address = client.layout.address
    name = head_object(address.name)
    (reply,) = await client.io.execute([Call(name, method, request)], deadline)
    if reply.code == Code.LIMIT_REACHED:
        what, hint = _LIMITS[reply.number]
        raise LimitReached(f"log {address.name!r} {what}", hint=hint)
    if (method, reply.code) == ("delivery_grant", -errno.ERANGE):
        what = "has no positions left: the last one is 2^63 - 1"
        raise ZlogError(f"log {address.name!r} {what}", hint="Deliver to another log.")
    if reply.code == -errno.ENOENT:
        raise LogNotFound(f"there is no log {address.name!r} in {client.io.store.url}")
    reply.check(f"{method} on {name}", *refusals)
    return reply


def _rounds(entries: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Cut entries into what is appended in one go.

    Each is bytes of its own from here on: the caller may use one buffer for all.
    """
    some: list[bytes] = []
    size = 0
    for item in entries:
        entry = item if type(item) is bytes else core.entries_owned((item,))[0]
        if len(some) == ROUND_ENTRIES_MAX or (some and size + len(entry) > ROUND_BYTES_MAX):
            yield some
            some, size = [], 0
        some.append(entry)
        size += len(entry)
    if some:
        yield some


def _each_once(grants: Iterable[range]) -> Iterator[range]:
    """Return every position in one range only: a store may have written a grant down twice."""
    reached = 0
    for grant in sorted(grants, key=lambda each: each.start):
        if grant.stop > reached:
            yield range(max(grant.start, reached), grant.stop)
            reached = grant.stop


def _writer_id(log_id: int, key: DeliveryKey, incarnation: int) -> bytes:
    """Return the writer's id of all attempts at a delivery; their numbers tell them apart.

    A source that was forgotten and comes again has another incarnation, since its attempts are
    counted from 1 again. Numbers go by their value, however they show themselves: ``True`` is 1.
    """
    batch, part = operator.index(key.batch), operator.index(key.part)
    text = f"{log_id} {key.source} {incarnation} {batch} {part}".encode()
    return hashlib.blake2b(text, digest_size=16, person=b"zlog delivery").digest()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _check_number(what: str, value: int, most: int) -> None:
    if not hasattr(value, "__index__"):
        raise TypeError(f"the number of a {what} is an int, not {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"the number of a {what} is 0 to {most}, not {value}")
