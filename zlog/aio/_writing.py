"""The methods of a log that add entries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import Any

from zlog._append.conditions import ALWAYS, Condition
from zlog._append.gather import Coalescer
from zlog._append.ordered import NotOrdered
from zlog._append.producer_records import Producer, SequenceKey
from zlog._base.deadline import Timeout
from zlog._base.wanted import Match
from zlog._client import LogClient, Tags, entry_stream, new_entries
from zlog._io.aio import drive
from zlog._native.new_entries import NewEntry, with_tags
from zlog._read.items import no_entry
from zlog.aio._reading import Reading
from zlog.entry import Entry, GapKind
from zlog.errors import AppendRefused, Conflict


class Writing(Reading):
    """The methods of a log that append, reserve and write."""

    def __init__(self, client: LogClient) -> None:
        """Wrap a client; programs call :meth:`open` or :meth:`create`."""
        super().__init__(client)
        self._shared = Coalescer(client.appender, client.io, client.options.timeout)
        self._append = self._shared.append

    def append(
        self,
        data: bytes,
        *,
        tags: Tags = (),
        expect: int | None = None,
        unless: Iterable[Collection[str]] = (),
        after: int | None = None,
        timeout: Timeout = ...,
    ) -> Coroutine[Any, Any, int]:
        """Append one entry and return its position, once it is durable.

        Concurrent appends are sent together, unless they have their own ``timeout``.

        A log that is ordered by its object (docs/event-sourcing.md) also accepts a condition.
        If the condition does not hold when the entry is stored, nothing is appended.

        Args:
            data: the entry.
            tags: up to 64 strings, each of 1 to 128 bytes in UTF-8. Readers get them with the
                entry, in no particular order.
            expect: the position that the entry must get.
            unless: up to 32 sets of tags. Append nothing if the log has an entry with all tags of
                one of the sets.
            after: the position that you have read last, with ``unless``. Only entries above it
                conflict. None means that all entries of the log do, except trimmed ones.

        Raises:
            AppendRefused: there is a condition, but the log is not ordered by its object.
            BeyondTail: the log has no position ``after`` yet.
            Conflict: the condition does not hold; see ``position``.
            EntryTooLarge, InvalidTag: nothing was sent.
            StoreTimeout: the entry may or may not be in the log, at one position at most.
        """
        entry = data if tags == () else with_tags(data, tags)
        if expect is not None or unless or after is not None:
            return self._append_if(entry, Condition.of(expect, unless, after), timeout)
        return self._append(entry) if timeout is ... else self._append_alone(entry, timeout)

    async def _append_alone(self, entry: NewEntry, timeout: float | None) -> int:
        [position] = await drive(self._client.appender.append([entry], self._deadline(timeout)))
        return position

    async def _append_if(self, entry: NewEntry, condition: Condition, timeout: Timeout) -> int:
        [position] = await self._append_together([entry], condition, timeout)
        return position

    async def _append_together(
        self, entries: Sequence[NewEntry], condition: Condition, timeout: Timeout
    ) -> range:
        """Append all entries or none, at consecutive positions."""
        try:
            if timeout is ...:
                return await self._shared.append_together(entries, condition)
            work = self._client.appender.append_all(entries, self._deadline(timeout), condition)
            return await drive(work)
        except NotOrdered as error:
            if condition is ALWAYS:
                raise
            raise AppendRefused(str(error), hint=error.hint) from None

    async def submit(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> asyncio.Future[int]:
        """Submit an entry, and return a future of its position.

        Submitted entries are sent together. This takes less time than concurrent appends, because
        it needs no task for each. The future need not be an instance of the class, but it can be
        used like one. If more than 65,536 entries or 64 MiB wait, the call waits.

        Args:
            data: the entry.
            tags: see :meth:`append`.
            timeout: how many seconds to wait for space.

        Raises:
            EntryTooLarge, InvalidTag: nothing was sent.
            StoreTimeout: there was no space. The entry was not sent.
        """
        if self._shared.full:
            await self._shared.wait_for_space(self._deadline(timeout))
        return self._shared.submit(data if tags == () else with_tags(data, tags))

    async def flush(self, *, timeout: Timeout = ...) -> None:
        """Wait until all submitted entries are in the log or have failed.

        Raises:
            StoreTimeout: the time was up first.
        """
        await self._shared.flush(self._deadline(timeout))

    async def append_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        expect: int | None = None,
        unless: Iterable[Collection[str]] = (),
        after: int | None = None,
        timeout: Timeout = ...,
    ) -> list[int]:
        """Append entries together, and return their positions in the order of the entries.

        This is much faster than single appends, because it takes one request for a range of
        positions and one write per stripe object. The positions are normally in ascending order.
        But an entry moves above its successors if a reader fills its position first or, in a log
        without a sequencer, another writer takes it. To rule this out, append them one by one.

        A log that is ordered by its object appends all entries or none, at consecutive positions.

        Args:
            entries: any number of entries. If the log is ordered by its object, up to 32,768
                entries with 16 MiB of data.
            tags: the tags of every entry; see :meth:`append`.
            tags_each: a collection of tags for each entry, instead of ``tags``.
            expect, unless, after: the condition, as in :meth:`append`; ``expect`` is the position
                of the first entry.

        Raises:
            EntryTooLarge, InvalidTag: nothing was sent.
            ZlogError: as for :meth:`append`. The error's ``positions`` lists the position of each
                acknowledged entry, and None for each other entry.
        """
        items = new_entries(entries, tags, tags_each)
        conditional = expect is not None or unless or after is not None
        if not items:
            if conditional:
                raise ValueError("an append with a condition needs at least one entry")
            return []
        if conditional:
            condition = Condition.of(expect, unless, after)
            return [*await self._append_together(items, condition, timeout)]
        if self._client.layout.view.ordered:
            try:
                return [*await self._append_together(items, ALWAYS, timeout)]
            except NotOrdered:  # a sequencer orders the log now
                pass
        return await drive(self._client.appender.append(items, self._deadline(timeout)))

    async def decide(
        self,
        tags: Iterable[Collection[str]],
        decide: Callable[[list[Entry]], Iterable[tuple[bytes, Tags]]],
        *,
        attempts: int = 10,
        timeout: Timeout = ...,
    ) -> list[int]:
        """Append what a function decides from entries, unless more such entries arrive meanwhile.

        In that case, the function is called again with these entries as well. The log must be
        ordered by its object.

        Args:
            tags: up to 32 sets of tags. The decision depends on the entries that have all tags of
                one of the sets.
            decide: a function of these entries, in the order of the log. It returns the entries to
                append, each with its tags. If it returns none, nothing is appended.
            attempts: how often the function is called at most. Between the calls, there are
                pauses of random length, up to 0.1 seconds.
            timeout: the budget of each read and of each append, not of all attempts together.

        Returns:
            The positions of the appended entries.

        Raises:
            Conflict: in the last attempt, another client appended such an entry first.
            CorruptEntry: a position that may hold such an entry is lost.
            ZlogError: as for :meth:`append_many`.
        """
        condition = Condition.of(None, tags, None)
        sets = condition.unless
        if not sets or attempts < 1:
            raise ValueError("decide needs at least one set of tags and one attempt")
        found: dict[int, Entry] = {}
        start = attempt = 0
        while True:
            attempt += 1
            tail = await self.tail(checked=False, timeout=timeout)
            for wanted in condition.wanted():
                match: Match = "all" if wanted.every else "any"
                async for item in self.read_range(start, tail, tags=wanted.tags, match=match):
                    if isinstance(item, Entry):
                        found[item.position] = item
                    elif item.kind != GapKind.TRIMMED:
                        raise no_entry(item, self.name)
            start = tail
            decided = _pairs(decide([found[position] for position in sorted(found)]))
            if not decided:
                return []
            data, tags_each = zip(*decided, strict=True)
            try:
                return await self.append_many(
                    data, tags_each=tags_each, unless=sets, after=tail - 1, timeout=timeout
                )
            except Conflict as conflict:
                if attempt == attempts:
                    conflict.hint = (
                        f"Other clients appended first in all {attempts} attempts. Allow more"
                        " attempts, or let fewer clients decide at the same time."
                    )
                    raise
            io = self._client.io
            await drive(io.sleep(io.random() * min(0.1, 0.001 * 2**attempt)))

    async def reserve(self, count: int = 1, *, timeout: Timeout = ...) -> range:
        """Reserve consecutive positions to write later, and return them.

        No other client gets them, even if the sequencer or the layout changes. Any process can
        write to such a position with :meth:`write`, but must do so in time: a reader that reaches
        an unwritten position waits for its ``hole_timeout``, by default one second, and then fills
        it. Call :meth:`fill` for positions that you do not need.

        Args:
            count: the number of positions, 1 to 65,536.

        Raises:
            SequencerUnavailable: the log has no sequencer, which a reservation needs.
        """
        return await drive(self._client.reserved.reserve(count, self._deadline(timeout)))

    async def write(
        self, position: int, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> None:
        """Write an entry at a reserved position, and return once it is durable.

        It is safe to repeat this with the same data and tags, even in another process.

        Raises:
            AlreadyWritten: the position holds another entry.
            Invalidated: the position was filled or trimmed; see ``gap``. Reserve another one.
            BeyondTail: the position was not granted yet.
            EntryTooLarge, InvalidTag: nothing was sent.
            StoreTimeout: the entry may or may not be in the log.
        """
        entry = with_tags(data, tags)
        await drive(self._client.reserved.write(position, entry, self._deadline(timeout)))

    async def append_once(
        self,
        entries: Iterable[bytes],
        *,
        producer: str,
        sequence: int,
        part: int = 0,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        in_order: bool = False,
        timeout: Timeout = ...,
    ) -> int:
        """Append entries exactly once, even if the call fails and is repeated.

        The append is identified by producer, sequence number and part. If the call, the process or
        the machine fails, repeat the call with the same entries, in any order. It appends only the
        entries that are not in the log yet. If two attempts run at once, the older one fails.

        Entries are compared by data and tags. An entry that is given twice is appended twice. If
        entries of a failed attempt are trimmed before the next attempt, they are appended again.

        Args:
            entries: any number of entries. They are read as needed, up to 16 MiB at a time.
            producer: a name that you choose: 1 to 128 letters, digits, `_`, `.`, `-`.
            sequence: a number, 0 or more, that increases with each new append; see
                :meth:`complete_sequences`.
            part: the number of a part. Several clients may append parts of one sequence number at
                the same time. Every attempt must divide the entries into parts in the same way.
            tags: the tags of every entry; see :meth:`append`.
            tags_each: the tags of each entry, instead of ``tags``. They are read with the entry.
            in_order: whether the entries must be in the log in the given order. Every attempt must
                then set this and pass them in the same order. Writes are sent one after the other,
                each with up to a stripe unit of entries.
            timeout: the budget of each round of up to 32,768 entries or 16 MiB.

        Returns:
            The number of entries that this call has appended.

        Raises:
            SequenceSuperseded: a later attempt has begun, or the sequence number is complete.
            SequenceDiffers: an earlier attempt has appended entries that this attempt lacks.
            EntryTooLarge, InvalidTag: entries before the invalid one may have been appended.
            ValueError: ``entries`` and ``tags_each`` differ in length. Some entries may be in the
                log.
            ZlogError: as for :meth:`append`. After any error you can repeat the call.
        """
        key = SequenceKey(producer, sequence, part)
        stream = entry_stream(entries, tags, tags_each)
        once = self._client.exactly_once
        return await drive(once.append(stream, key, timeout, in_order=in_order))

    async def complete_sequences(
        self, producer: str, *, before: int, timeout: Timeout = ...
    ) -> None:
        """Declare a producer's sequence numbers complete, so that the log can forget their state.

        Later appends with these numbers raise SequenceSuperseded. It is safe to repeat this call.

        Args:
            before: sequence numbers below this one are complete.
        """
        records = self._client.exactly_once.records
        await drive(records.done(producer, before, self._deadline(timeout)))

    async def forget_producer(self, producer: str, *, timeout: Timeout = ...) -> None:
        """Forget a producer that no longer exists, and the state of its appends.

        Its entries stay in the log. If a new producer with this name repeats an append of the old
        one, the entries are appended again. If this call is interrupted, all appends of the
        producer are refused until you repeat it, which is safe.
        """
        records = self._client.exactly_once.records
        await drive(records.done(producer, None, self._deadline(timeout)))

    async def producers(self, *, timeout: Timeout = ...) -> list[Producer]:
        """Return all producers of exactly-once appends to the log, in the order of their names.

        A log has up to 1,024 producers. Remove unused ones with :meth:`forget_producer`.
        """
        return await drive(self._client.exactly_once.records.producers(self._deadline(timeout)))


def _pairs(decided: object) -> list[tuple[bytes, Tags]]:
    """Check what the function passed to ``decide`` has returned."""
    pairs: list[Any] = [*decided] if isinstance(decided, Iterable) else [None]
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise TypeError(
            "the function passed to decide() must return pairs of data and tags, such as"
            f" [(b'data', ['tag'])], not {decided!r:.80}"
        )
    return pairs
