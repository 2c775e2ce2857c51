"""Copies the records of exactly-once producers from a log to its mirror.

Grants are copied before the mirror's tail is raised above their entries, and completed sequence
numbers when the tail is above all of their entries. A mirror can thus be promoted at any time. It
then finds all entries of a part that it has, and no number is complete if an entry is missing.

Source: docs/design/mirrors.md.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from zlog._append.exactly_once import writer_ids
from zlog._append.producer_records import SEQUENCE_ALL, SequenceKey
from zlog._base.codes import PARTS_PAGE_MAX, PRODUCERS_MAX, Code
from zlog._base.deadline import Deadline
from zlog._base.io import Reply
from zlog._base.pieces import Batch
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog._native.messages import Grant, NamedProducer, NumberedPart
from zlog._read.read import Reader
from zlog._transfer.pieces import Piece
from zlog._transfer.target import Target
from zlog.errors import ClassNotLoaded, CorruptEntry, LimitReached, UnsupportedVersion
from zlog.view import View

_WRITERS_MAX = 65536
_GRANTS_MAX = 4096

_logger = logging.getLogger(__name__)


class ProducerCopy:
    """Copies records as far as the mirror's tail allows.

    The number of parts is not limited, so only the parts of producers that may have changed are
    read again. A new part changes its producer's record. A new grant leads to an entry whose writer
    id belongs to a known part.
    """

    def __init__(self, reader: Reader, target: Target) -> None:
        self._reader = reader
        self._target = target
        self._off = False
        self._writers: dict[bytes, str | None] = {}  # the producer; None: it is another writer
        self._seen: dict[str, NamedProducer] = {}  # the source's producers at the last look
        self._mirrored: dict[str, tuple[int, int]] = {}  # incarnation and sequence in the mirror
        self._open: dict[str, list[NumberedPart]] = {}  # parts that may have grants to copy
        self._sent: dict[str, set[tuple[int, int, Grant]]] = {}
        self._due: dict[str, tuple[int, NamedProducer]] = {}  # the tail that completion waits for

    async def look(self, pieces: Iterable[Piece] | None = None) -> None:
        """Read records that may have changed, after ``pieces`` were read. None means any change."""
        writers = {each.writer for each in pieces or () if isinstance(each, Batch)}
        active = {self._writers.get(each, "") for each in writers} - {None}
        if active or pieces is None:
            await self._attempt(self._look(active))
        for each in writers:
            self._writers.setdefault(each, None)

    async def copy(self, end: int) -> None:
        """Copy the grants below ``end``. The mirror's objects must hold all positions below it."""
        await self._attempt(self._copy(end))

    async def complete(self) -> None:
        """Complete the sequence numbers whose entries are all below the mirror's tail."""
        await self._attempt(self._complete())

    async def _attempt(self, action: Awaitable[None]) -> None:
        """Run an action. If a store lacks a method or a record, copy no more records."""
        try:
            await action
        except (ClassNotLoaded, CorruptEntry, LimitReached, UnsupportedVersion) as error:
            if not self._off:
                _logger.warning(
                    "the exactly-once records of log %r are not copied to its mirror from now on,"
                    " so after a promotion, repeated appends may be in it twice: %s. %s",
                    self._reader.layout.view.log,
                    error,
                    error.hint,
                )
            self._off = True

    async def _look(self, active: set[str | None]) -> None:
        if self._off:
            return
        source, deadline = self._reader.layout, self._deadline()
        if not self._writers or len(self._writers) > _WRITERS_MAX:
            # Read before the source's, so that a producer missing there was forgotten.
            mirror = await _producers(self._target.layout, deadline)
            self._mirrored = {each.name: (each.incarnation, each.sequence) for each in mirror}
            self._writers, self._seen = {b"": None}, {}
        found = {each.name: each for each in await _producers(source, deadline)}
        for name in self._mirrored.keys() - found.keys():
            self._drop(name)
            await self._done(name, self._mirrored.pop(name)[0], SEQUENCE_ALL)
        changed = [p for p in found.values() if p.name in active or self._seen.get(p.name) != p]
        for producer in sorted(changed, key=lambda each: each.incarnation):
            await self._read_parts(producer)
        due = [
            p
            for p in found.values()
            if self._mirrored[p.name] < (p.incarnation, p.sequence) and p.name not in self._due
        ]
        if due:
            tail = await self._reader.positions.tail(self._deadline())
            self._due.update((producer.name, (tail, producer)) for producer in due)
        self._seen = found

    async def _read_parts(self, producer: NamedProducer) -> None:
        name, incarnation = producer.name, producer.incarnation
        if not incarnation:
            raise ClassNotLoaded(f"the object class does not return the incarnation of {name!r}")
        if self._mirrored.get(name, (0, 0))[0] != incarnation:
            self._drop(name)
            await self._send(producer, [])
            self._mirrored[name] = incarnation, 0
        view = self._reader.layout.view
        parts = await _parts(self._reader.layout, name, self._deadline())
        self._open[name] = parts = [each for each in parts if each.incarnation == incarnation]
        for part in parts:
            key = SequenceKey(name, part.sequence, part.part)
            self._writers.update(dict.fromkeys(writer_ids(view, key, incarnation), name))
        live = {(part.sequence, part.part, grant) for part in parts for grant in _all(part)}
        self._sent[name] = self._sent.get(name, set()) & live

    def _drop(self, name: str) -> None:
        for each in (self._open, self._sent, self._due):
            each.pop(name, None)

    async def _copy(self, end: int) -> None:
        if self._off:
            return
        for name, parts in [*self._open.items()]:
            sent = self._sent[name]
            ready = [each for part in parts if _all(each := _cut(part, end, sent))]
            for some in _pages(ready):
                await self._send(self._seen[name], some)
            sent |= {(part.sequence, part.part, grant) for part in ready for grant in _all(part)}
            if all(grant.first + grant.count <= end for part in parts for grant in _all(part)):
                del self._open[name]

    async def _complete(self) -> None:
        for name, (tail, producer) in [*self._due.items()]:
            if tail <= self._target.tail and not self._off:
                await self._done(name, producer.incarnation, producer.sequence, producer.updated)
                self._mirrored[name] = producer.incarnation, producer.sequence
                del self._due[name]

    async def _send(self, producer: NamedProducer, parts: Sequence[NumberedPart]) -> None:
        name, _, _, created, updated, incarnation = producer

        def request(view: View) -> bytes:
            return messages.producer_copy(
                view.log_id, view.epoch, name, incarnation, created, updated, parts
            )

        while True:
            reply = await self._call("producer_copy", request, Code.SUPERSEDED)
            # The mirror may have a newer incarnation, if another copying process was faster.
            if reply.code == Code.OK or not 0 < reply.number < incarnation:
                return
            await self._done(name, reply.number, SEQUENCE_ALL)

    async def _done(self, name: str, incarnation: int, sequence: int, now: int = 0) -> None:
        def request(view: View) -> bytes:
            return messages.delivery_done(view.log_id, name, sequence, incarnation, now, view.epoch)

        more = True
        while more:
            reply = await self._call("delivery_done", request, Code.SUPERSEDED, Code.NOT_FOUND)
            more = reply.code == Code.OK and messages.delivery_done_reply(reply.payload).more

    async def _call(self, method: str, request: Callable[[View], bytes], *refusals: int) -> Reply:
        """Call a method on the mirror's head, in an epoch in which it is still a mirror."""

        async def call(view: View, deadline: Deadline) -> Reply | None:
            head = self._target.layout.head
            reply = await head.call(method, request(view), deadline, Code.STALE_EPOCH, *refusals)
            return None if reply.code == Code.STALE_EPOCH else reply

        return await self._target.while_mirror(call)

    def _deadline(self) -> Deadline:
        return self._reader.budget.deadline()


def _all(part: NumberedPart) -> list[Grant]:
    """Return the grants of a part. An open one counts as an empty grant."""
    return [*part.grants, *[Grant(part.open_from, 0)] * (part.open_from > 0)]


def _cut(part: NumberedPart, end: int, sent: set[tuple[int, int, Grant]]) -> NumberedPart:
    """Return a part with the grants below ``end`` that were not sent."""
    below = [Grant(g.first, min(g.count, end - g.first)) for g in part.grants if g.first < end]
    opened = part.open_from if part.open_from <= end else 0
    if (part.sequence, part.part, Grant(opened, 0)) in sent:
        opened = 0
    unsent = [g for g in below if (part.sequence, part.part, g) not in sent]
    return part._replace(grants=unsent, open_from=opened)


def _pages(parts: Sequence[NumberedPart]) -> Iterator[list[NumberedPart]]:
    """Divide parts among requests, so that none keeps its object busy for long."""
    some: list[NumberedPart] = []
    grants = 0
    for part in parts:
        if some and (len(some) == PARTS_PAGE_MAX or grants + len(part.grants) > _GRANTS_MAX):
            yield some
            some, grants = [], 0
        some.append(part)
        grants += len(part.grants)
    if some:
        yield some


async def _producers(layout: Layout, deadline: Deadline) -> list[NamedProducer]:
    """Return all producers at one time."""
    request = messages.delivery_list(layout.address.log_id, "", PRODUCERS_MAX)
    reply = await layout.head.call("delivery_list", request, deadline)
    return messages.delivery_list_reply(reply.payload).producers


async def _parts(layout: Layout, producer: str, deadline: Deadline) -> list[NumberedPart]:
    found: list[NumberedPart] = []
    sequence = part = 0
    more = True
    while more:
        request = messages.producer_parts(layout.address.log_id, producer, sequence, part)
        reply = await layout.head.call("producer_parts", request, deadline)
        more, page = messages.producer_parts_reply(reply.payload)
        found += page
        if page:
            sequence, part = divmod((page[-1].sequence << 32 | page[-1].part) + 1, 1 << 32)
    return found
