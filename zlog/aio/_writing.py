"""The calls of a log that add entries."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from zlog._append.coalesce import Coalescer
from zlog._append.delivery_records import DeliveryKey, DeliverySource
from zlog._base.deadline import Timeout
from zlog._client import LogClient, Tags, entry_stream, new_entries, new_entry
from zlog._io.aio import drive
from zlog.aio._handle import LogHandle

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry


class Writing(LogHandle):
    """Appends, reserves and delivers."""

    def __init__(self, client: LogClient) -> None:
        """Wrap a client; programs call :meth:`open` or :meth:`create`."""
        super().__init__(client)
        self._shared = Coalescer(client.appender, client.io, client.options.timeout)
        self._append = self._shared.append

    def append(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> Coroutine[Any, Any, int]:
        """Append one entry and return its position, once it is durable.

        Appends that wait at the same time travel together, unless they come with a ``timeout`` of
        their own. An append that is alone leaves at once.

        Args:
            data: the entry.
            tags: what it is about: up to 64, each of 1 to 128 bytes in UTF-8. Readers get them
                with the entry. Their order means nothing.
            timeout: budget of the call.

        Raises:
            EntryTooLarge, InvalidTag: nothing was sent.
            UnsupportedVersion: it has tags, and the class of an OSD is too old to keep them.
            StoreTimeout: the entry may be in the log or not, at one position at most.
        """
        entry = data if tags == () else new_entry(data, tags)
        return self._append(entry) if timeout is ... else self._append_alone(entry, timeout)

    async def _append_alone(self, entry: NewEntry, timeout: float | None) -> int:
        [position] = await drive(self._client.appender.append([entry], self._deadline(timeout)))
        return position

    async def append_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> list[int]:
        """Append entries in one go and return their positions, in the entries' order.

        Much faster than one by one: a range of positions is asked for once, and each stripe object
        gets one write. Positions ascend, also if the layout changes meanwhile, except for an
        entry whose position was taken before it arrived: a reader filled it or, without a
        sequencer, another writer was faster. It moves above its successors. Entries that must never
        change places are appended one by one.

        Args:
            entries: any number of them.
            tags: of all entries; see :meth:`append`.
            tags_each: instead of ``tags``, those of each entry, as many collections as entries.
            timeout: budget of the call.

        Raises:
            EntryTooLarge, InvalidTag: nothing was sent.
            ZlogError: as in :meth:`append`; its ``positions`` tells what was acknowledged before.
        """
        items = new_entries(entries, tags, tags_each)
        return await drive(self._client.appender.append(items, self._deadline(timeout)))

    async def reserve(self, count: int = 1, *, timeout: Timeout = ...) -> range:
        """Take positions without writing to them yet, and return them: they follow each other.

        They are handed out to no one else, whatever becomes of the sequencer and the layout. Write
        to each with :meth:`write`, from any process. A position that is not written is a hole:
        readers wait for it as long as their ``hole_timeout`` says, one second unless set, and then
        fill it, after which it can't be written any more. :meth:`fill` what is not needed.

        Args:
            count: 1 to 65,536.
            timeout: budget of the call.

        Raises:
            SequencerUnavailable: the log has no sequencer. Without one, writers take what is free.
        """
        return await drive(self._client.reserved.reserve(count, self._deadline(timeout)))

    async def write(
        self, position: int, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> None:
        """Write an entry at a position that was reserved, and return once it is durable.

        Safe to repeat with the same data and tags, also in another process: it finds the entry
        there.

        Raises:
            AlreadyWritten: the position holds another entry.
            Invalidated: it was filled or trimmed; ``gap`` says which. Reserve another one.
            BeyondTail: it was not handed out yet.
            EntryTooLarge, InvalidTag: nothing was sent.
            StoreTimeout: the entry may be there or not.
        """
        entry = new_entry(data, tags)
        await drive(self._client.reserved.write(position, entry, self._deadline(timeout)))

    async def deliver(
        self,
        entries: Iterable[bytes],
        *,
        source: str,
        batch: int,
        part: int = 0,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> int:
        """Append entries exactly once, however often it is tried and fails meanwhile.

        Source, batch and part name the delivery. After a failure, of the call, the process or the
        machine, deliver the same entries under the same name again, in any order: those that are
        in the log stay where they are, the others are appended. While two try at the same time,
        the later one goes on and the other one fails.

        Entries are equal if data and tags are; they count as often as they are given. Where a
        delivery that failed was trimmed
        before it was repeated, what is gone looks like what never came, and is appended
        again.

        Args:
            entries: taken as they are needed, up to 16 MiB at a time.
            source: who delivers: a name of your own, of 1 to 128 letters, digits, `_`, `.`, `-`.
            batch: 0 or more; see :meth:`deliveries_done`.
            part: batches may be delivered in parts, at the same time; which entry is in which part
                must be the same each time.
            tags: of all entries; see :meth:`append`.
            tags_each: instead of ``tags``, those of each entry, taken with it.
            timeout: for each round of up to 32,768 entries or 16 MiB.

        Returns:
            How many entries this call has appended.

        Raises:
            DeliverySuperseded: another attempt has begun since, or the batch is done.
            DeliveryDiffers: an earlier attempt has appended something else.
            EntryTooLarge, InvalidTag: those before it may be appended.
            ValueError: entries and ``tags_each`` end at different lengths; the same.
            ZlogError: as in :meth:`append`; after any error the delivery can be repeated.
        """
        key = DeliveryKey(source, batch, part)
        stream = entry_stream(entries, tags, tags_each)
        return await drive(self._client.deliveries.deliver(stream, key, timeout))

    async def deliveries_done(self, source: str, *, before: int, timeout: Timeout = ...) -> None:
        """Say which batches of a source are delivered, so that the log need not remember them.

        They are never delivered again: an attempt that was cut off for a while, and comes back,
        gets DeliverySuperseded. Safe to repeat.

        Args:
            source: as in :meth:`deliver`.
            before: batches below this one are done.
            timeout: budget of the call.
        """
        await drive(self._client.deliveries.records.done(source, before, self._deadline(timeout)))

    async def forget_source(self, source: str, *, timeout: Timeout = ...) -> None:
        """Forget a source of deliveries that is gone for good, and all that it has delivered.

        Its entries stay in the log. A source that comes again by this name starts afresh: what it
        delivers is appended, delivered before or not. Safe to repeat. When the call is broken off,
        by a time-out or a death, all that the source delivers is refused until it is repeated.

        Args:
            source: as in :meth:`deliver`.
            timeout: budget of the call.
        """
        await drive(self._client.deliveries.records.forget(source, self._deadline(timeout)))

    async def sources(self, *, timeout: Timeout = ...) -> list[DeliverySource]:
        """Return all sources of deliveries that the log knows, in the order of their names.

        A log takes 1,024 of them. Remove those that are gone with :meth:`forget_source`.
        """
        return await drive(self._client.deliveries.records.sources(self._deadline(timeout)))
