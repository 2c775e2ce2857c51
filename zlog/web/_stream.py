"""A stream: a log that is ordered by its object, and whose tags hold the stream's state.

An entry is a chunk of bytes or a JSON message, but entries with the tag ``ds:control`` only change
the state. Every decision, such as whether an append repeats another one, depends on the newest
entries with certain tags. A server reads these entries, decides, and appends under the condition
that there are no newer ones, so what it remembers of them only saves requests.

Trims forget entries. Cursors keep trims from passing the entries that close or delete the stream,
and those that register its forks. Producers are forgotten.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

import zlog
import zlog.aio
from zlog.extension import no_entry
from zlog.web._errors import Refusal
from zlog.web._held import FORK, hold_end, hold_forks, registered
from zlog.web._live import Live
from zlog.web._settings import OPTION, Producer, Settings, offset_of, offset_text

CONTROL = "ds:control"
END = "ds:end"
"""This entry closes the stream or, with DELETED, deletes it."""
DELETED = "ds:deleted"
PART = "ds:part"
"""The next entry belongs to the same append."""
ORDER = "ds:order"
"""The entry has a Stream-Seq, in the tag ``ds:order=VALUE``."""

_FACTS_MAX = 512
_ATTEMPTS = 50
_CREATING_SECONDS = 60.0
"""How long after its registration, by the servers' clocks, a fork may still be created."""


class Deleted(Refusal):
    """The stream was deleted. Its log exists while forks need it."""

    def __init__(self, name: str) -> None:
        hint = "Its data is kept for its forks."
        super().__init__(410, "StreamDeleted", f"the stream {name!r} was deleted", hint)


class Appended(NamedTuple):
    """The outcome of an append: the offset after it, and whether it was made earlier."""

    tail: int
    closed: bool
    repeated: bool = False
    seq: int = 0


@dataclass
class Chunk:
    """What a read returns: data, and the offset after it."""

    next: int
    data: list[bytes] = field(default_factory=list)
    at_tail: bool = False
    closed: bool = False


class _Fact(NamedTuple):
    """The newest entry with a tag among the positions up to ``checked``; -1 if there is none."""

    checked: int
    position: int = -1
    tags: Collection[str] = ()

    def value(self, prefix: str, default: str = "") -> str:
        """Return the rest of the tag that begins with a prefix."""
        return next((t[len(prefix) :] for t in self.tags if t.startswith(prefix)), default)


class Stream:
    """A stream in an open log. An offset is a position of the log, plus ``base`` for a fork.

    Attributes:
        source: the stream whose offsets below ``base`` belong to this stream; None if not a fork.
        live: where readers wait.
        begun: whether the stream is known to have entries.
    """

    def __init__(self, log: zlog.aio.Log, settings: Settings) -> None:
        self.log = log
        self.settings = settings
        self.base = settings.offset
        self.source: Stream | None = None
        self.live = Live(log)
        self.begun = False
        self._facts: OrderedDict[str, _Fact] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._reads: dict[int, asyncio.Task[Chunk]] = {}
        self._used_at = 0.0

    @classmethod
    def of(cls, log: zlog.aio.Log) -> Stream | None:
        """Return the stream that a log holds, or None."""
        given = log.view.options.get(OPTION)
        return cls(log, msgspec.json.decode(given, type=Settings)) if given else None

    async def tail(self) -> int:
        """Return the offset after the last entry.

        Raises:
            LogNotFound: the stream was removed, or has no entries yet because it is being created.
        """
        tail = await self.log.tail()
        if not tail:
            raise zlog.LogNotFound(f"the stream {self.log.name!r} is being created")
        self.begun = True
        self.live.passed(tail)  # readers that wait below it may have missed an entry
        return self.base + tail

    def text(self, offset: int) -> str:
        """Return an offset as clients see it. A fork has the offsets of its source up to ``base``.

        The stream's ``source`` must be known.
        """
        owner, _ = self._owner(offset - 1, offset)
        return offset_text(offset, owner.log.view.log_id)

    def offset(self, text: str) -> int:
        """Parse an offset. Raises Refusal if it belongs to another stream."""
        offset, mark = offset_of(text)
        if (offset or mark) and text != self.text(offset):
            hint = "The stream was deleted and created again. Read it from the start."
            raise Refusal(410, "OffsetOfAnother", "the offset belongs to another stream", hint)
        return offset

    async def _fact(self, tag: str, tail: int) -> _Fact:
        """Return the newest entry with a tag among the positions below ``tail``."""
        fact = self._facts.get(tag)
        if fact is None:
            entry = await self.log.last(tag, before=tail)
            fact = _Fact(tail - 1, entry.position, entry.tags) if entry else _Fact(tail - 1)
        elif fact.checked < tail - 1:
            start, fact = fact.checked + 1, fact._replace(checked=tail - 1)
            async for item in self.log.read_range(start, tail, tags=(tag,)):
                if isinstance(item, zlog.Entry):
                    fact = _Fact(tail - 1, item.position, item.tags)
        self._learn(tag, fact)
        return fact

    def _learn(self, tag: str, fact: _Fact) -> None:
        if fact.checked > self._facts.get(tag, _Fact(-1)).checked:
            self._facts[tag] = fact
            self._facts.move_to_end(tag)
            if len(self._facts) > _FACTS_MAX:
                self._facts.popitem(last=False)

    async def closed(self, tail: int) -> bool:
        """Whether the stream was closed below an offset. Raises Deleted if it was deleted."""
        fact = await self._fact(END, tail - self.base)
        if DELETED in fact.tags:
            raise Deleted(self.log.name)
        return fact.position >= 0

    async def expired(self, *, used: bool) -> bool:
        """Whether the stream has expired by this server's clock.

        Args:
            used: whether this access extends the time to live. To save writes, it is noted in the
                log only once in an eighth of that time, by which the stream therefore lives longer.
        """
        now, ttl, at = time.time(), self.settings.ttl, self.settings.expires_at
        if at is not None or ttl is None:
            return at is not None and now >= at
        if now >= self._used_at + ttl or (used and now >= self._used_at + ttl / 8):
            newest = await self.log.last()
            self._used_at = newest.timestamp.timestamp() if newest else 0.0
            if newest and now >= self._used_at + ttl * 9 / 8:
                return True
            # If all entries were trimmed, the time to live begins again.
            if not newest or (used and now >= self._used_at + ttl / 8):
                await self.log.append(b"", tags=(CONTROL,))
                self._used_at = now
        return False

    async def begin(self, data: Sequence[bytes], *, close: bool) -> None:
        """Append a new stream's first entries. Raises Conflict if another client has done so."""
        entries, tags = _entries(data, [END] if close else [])
        positions = await self.log.append_many(entries, tags_each=tags, expect=0)
        if close:
            await hold_end(self.log, positions[-1])

    async def abandon(self) -> None:
        """Delete a stream without entries. Raises Conflict if it has some."""
        await self.log.append(b"", tags=(CONTROL, END, DELETED), expect=0)

    async def append(
        self, data: Sequence[bytes], producer: Producer | None, order: str | None, *, close: bool
    ) -> Appended:
        """Append data completely or not at all, and close the stream if requested.

        Args:
            data: the chunks or messages; empty to only close the stream.
            producer: the producer, whose repeated appends have no effect.
            order: a Stream-Seq, which must be above that of all earlier appends.
            close: whether to close the stream.

        Raises:
            Refusal: the state of the stream, the producer or the order forbids the append.
        """
        wanted, marks = [END], [END] if close else []
        if producer is not None:
            wanted.append(producer.tag)
            marks += [producer.tag, f"ds:at={producer.epoch}.{producer.seq}"]
        if order is not None:
            wanted.append(ORDER)
            marks += [ORDER, f"{ORDER}={order}"]
        entries, tags = _entries(data, marks)
        async with AsyncExitStack() as locks:
            for tag in wanted[1:]:  # so that appends of one producer do not conflict here
                await locks.enter_async_context(self._locks.setdefault(tag, asyncio.Lock()))
            fresh = False
            for _ in range(_ATTEMPTS):
                if fresh or not self.begun or not all(tag in self._facts for tag in wanted):
                    tail, fresh = await self.tail() - self.base, True
                    facts = {tag: await self._fact(tag, tail) for tag in wanted}
                else:
                    facts = {tag: self._facts[tag] for tag in wanted}
                after = min(fact.checked for fact in facts.values())
                outcome = self._decided(facts, producer, order, only_close=close and not data)
                if outcome is None:
                    try:
                        unless = [(tag,) for tag in wanted]
                        positions = await self.log.append_many(
                            entries, tags_each=tags, unless=unless, after=after
                        )
                        break
                    except zlog.Conflict:
                        pass
                elif fresh:
                    if isinstance(outcome, Refusal):
                        raise outcome
                    if close and outcome.closed:  # the server that closed the stream may have died
                        await hold_end(self.log, facts[END].position)
                    return outcome
                fresh = True
            else:
                raise Refusal(503, "Busy", "other clients append at the same time", Retry_After=1)
        last = positions[-1]
        for tag in wanted:
            new = _Fact(last, last, tags[-1])
            self._learn(tag, new if tag in marks else facts[tag]._replace(checked=last))
        self._used_at = time.time()
        self.live.passed(last + 1)
        if close:
            await hold_end(self.log, last)
        return Appended(self.base + last + 1, close, seq=producer.seq if producer else 0)

    def _decided(
        self,
        facts: dict[str, _Fact],
        producer: Producer | None,
        order: str | None,
        *,
        only_close: bool,
    ) -> Appended | Refusal | None:
        """Return the outcome of an append that must not be made, or None."""
        end = facts[END]
        if DELETED in end.tags:
            return Deleted(self.log.name)
        closed = end.position >= 0
        tail = self.base + max(fact.checked for fact in facts.values()) + 1
        if producer is not None:
            known = facts[producer.tag].value("ds:at=", "-1.-1").split(".")
            epoch, seq = int(known[0]), int(known[1])
            if producer.epoch < epoch:
                message = f"producer {producer.id!r} has a newer epoch, {epoch}"
                hint = "Another process took over. A higher epoch replaces it."
                return Refusal(403, "StaleProducer", message, hint, Producer_Epoch=epoch)
            if producer.epoch == epoch and producer.seq <= seq:
                return Appended(tail, closed, repeated=True, seq=seq)
            expected = seq + 1 if producer.epoch == epoch else 0
            if not closed and producer.seq != expected:
                message = f"the next Producer-Seq is {expected}, not {producer.seq}"
                if -1 < epoch < producer.epoch:
                    return Refusal(400, "InvalidSequence", message)
                given = {"Producer_Expected_Seq": expected, "Producer_Received_Seq": producer.seq}
                return Refusal(409, "SequenceGap", message, "Send the missing appends.", **given)
        if closed:
            if only_close and producer is None:
                return Appended(tail, True)
            headers = {"Stream_Closed": "true", "Stream_Next_Offset": self.text(tail)}
            return Refusal(409, "StreamClosed", "the stream is closed", **headers)
        if order is not None and facts[ORDER].position >= 0:
            last = facts[ORDER].value(f"{ORDER}=")
            if order <= last:
                message = f"Stream-Seq {order!r} is not above the last one, {last!r}"
                return Refusal(409, "SequenceRegression", message)
        return None

    async def read(self, offset: int, size: int, *, oldest: bool = False) -> Chunk:
        """Read from an offset on, up to the entry that reaches ``size`` bytes.

        Args:
            oldest: whether to continue at the oldest entry if the offset was trimmed.

        Raises:
            Refusal: the offset was trimmed, or the stream was deleted.
            ValueError: the offset is above the tail.
            CorruptEntry: an entry is lost.
        """
        tail = await self.tail()
        if offset > tail:
            raise ValueError("the offset is above the stream's end")
        chunk = Chunk(offset)
        while chunk.next < tail and size > 0:
            owner, end = self._owner(chunk.next, tail)
            size = await owner._read_into(chunk, end, size, oldest=oldest)
        chunk.at_tail = chunk.next >= tail
        chunk.closed = await self.closed(tail) and chunk.at_tail
        return chunk

    async def read_together(self, offset: int, size: int) -> Chunk:
        """Read as :meth:`read` does, once for all readers that wait at an offset."""
        task = self._reads.get(offset)
        if task is None:
            task = self._reads[offset] = asyncio.create_task(self.read(offset, size))
            # Its readers may all be gone when it fails.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            task.add_done_callback(lambda _: self._reads.pop(offset))
        return await asyncio.shield(task)

    def _owner(self, offset: int, end: int) -> tuple[Stream, int]:
        """Return the stream whose log has an offset, and the end of its part of the range."""
        owner = self
        while owner.source is not None and offset < owner.base:
            end, owner = min(end, owner.base), owner.source
        return owner, end

    async def _read_into(self, chunk: Chunk, end: int, size: int, *, oldest: bool) -> int:
        start, ending = chunk.next - self.base, _Fact(-1)
        async for item in self.log.read_range(start, end - self.base):
            chunk.next = self.base + item.end
            if isinstance(item, zlog.Gap):
                if item.kind is zlog.GapKind.TRIMMED and not oldest:
                    hint = f"The oldest offset is {self.text(chunk.next)}."
                    raise Refusal(410, "Trimmed", "data at this offset was trimmed", hint)
                if item.kind.hides_entry:
                    raise no_entry(item, self.log.name)
                continue
            tags = item.tags
            if END in tags:
                ending = _Fact(item.position, item.position, tags)
            if CONTROL not in tags:
                chunk.data.append(item.data)
                size -= len(item.data)
                if size <= 0:
                    break
        else:
            chunk.next = end
        known = self._facts.get(END)
        if known is not None and known.checked >= start - 1:
            best = max(known, ending, key=lambda fact: fact.position)
            self._learn(END, best._replace(checked=chunk.next - self.base - 1))
        return size

    async def next_append(self, offset: int) -> list[bytes]:
        """Return the entries of the first append at or above an offset."""
        tail, data = await self.tail(), list[bytes]()
        while offset < tail:
            owner, end = self._owner(offset, tail)
            async for item in owner.log.read_range(offset - owner.base, end - owner.base):
                if isinstance(item, zlog.Entry) and CONTROL not in item.tags:
                    data.append(item.data)
                    if PART not in item.tags:
                        return data
            offset = end
        return data

    async def register(self, log: str, fork_id: str, *, exists: bool) -> None:
        """Note that a fork exists or not. Raises Deleted if the stream was deleted before."""
        data = msgspec.json.encode((log, fork_id, exists))
        unless = [(DELETED,)] if exists else ()
        try:
            position = await self.log.append(data, tags=(CONTROL, FORK), unless=unless)
        except zlog.Conflict:
            raise Deleted(self.log.name) from None
        await hold_forks(self.log, position if exists else None)

    async def forks(self) -> list[tuple[str, str, bool]]:
        """Return the log and id of each registered fork, and whether it may be being created."""
        oldest = time.time() - _CREATING_SECONDS
        return [
            (msgspec.json.decode(entry.data)[0], fork_id, entry.timestamp.timestamp() > oldest)
            for fork_id, entry in (await registered(self.log)).items()
        ]

    async def mark_deleted(self, *, if_expired: bool = False) -> bool:
        """Refuse all further use of the stream.

        Returns:
            False if another client has deleted the stream or, with ``if_expired``, used it.
        """
        newest, ttl = await self.log.last(), self.settings.ttl
        tail = newest.end if newest else await self.log.tail()
        await self.closed(self.base + tail)
        tags, unless = (CONTROL, END, DELETED), [(DELETED,)]
        try:
            if if_expired and ttl is not None:
                if newest and time.time() < newest.timestamp.timestamp() + ttl * 9 / 8:
                    return False
                position = await self.log.append(b"", tags=tags, expect=tail)
            else:
                position = await self.log.append(b"", tags=tags, unless=unless, after=tail - 1)
        except zlog.Conflict:
            return False
        self.live.passed(position + 1)
        await hold_end(self.log, position)
        return True


def _entries(data: Sequence[bytes], marks: Sequence[str]) -> tuple[list[bytes], list[list[str]]]:
    """Return the entries of an append, and their tags. The last one has the marks."""
    if not data:
        return [b""], [[CONTROL, *marks]]
    return [*data], [*([PART] for _ in data[1:]), [*marks]]
