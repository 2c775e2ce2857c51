"""Exactly-once appends: a repeated call appends only the entries that are missing.

A producer numbers its appends, and may divide each of them into parts. Before an entry of a part is
written, the head object records the positions granted to the part (cls_zlog/head/producers.cc). A
new attempt at a part takes these steps:

1. It registers in the head, after which the head records no more grants of earlier attempts.
2. It fills the positions that were granted to earlier attempts and are still unwritten.
3. It reads the entries that earlier attempts wrote at the other positions.
4. It appends the entries that it did not find.

After step 2 no earlier attempt can write an entry of the part, so step 3 finds all of the part's
entries that are in the log. Entries are compared by data and tags, regardless of their order.

If the log is ordered by its object, there are no positions to record. Instead, the head records a
position above which the part's entries may be, and allows the attempt to append in one epoch. In
step 2, the new attempt begins another epoch unless nothing is missing, and in step 3 it reads
everything from there on.

Source: docs/design/append-once.md.
"""

from __future__ import annotations

import contextlib
import hashlib
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from zlog._append.ordered import OrderedAppender
from zlog._append.producer_records import ProducerRecords, SequenceKey
from zlog._append.same_id import digest, digest_of
from zlog._base.codes import FillCode
from zlog._base.deadline import Deadline, Timeout
from zlog._base.options import origins
from zlog._native.new_entries import EntryColumn, EntryLimit, NewEntry, entries_cut, entries_owned
from zlog._read.read import READ_BYTES_MAX, Reader
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import CorruptEntry, SequenceDiffers, StoreUnavailable, ZlogError
from zlog.limits import APPEND_BYTES_MAX, APPEND_ENTRIES_MAX
from zlog.view import View

_UNKNOWN = (GapKind.LOST, GapKind.UNREADABLE, GapKind.FORGED)
"""Kinds of gaps that may hide an entry of an earlier attempt."""

_NUMBERS_BITS = 40  # how many bits the numbers of an attempt's appends have
_WINDOW_POSITIONS = 4096
_WINDOW_BYTES = 8 << 20


class ExactlyOnce:
    """Appends exactly once to a log. The log's head keeps the ``records`` of its producers."""

    def __init__(self, reader: Reader, limit: EntryLimit) -> None:
        self.records = ProducerRecords(reader.layout)
        self.reader = reader
        self.limit = limit
        self._deadline = reader.budget.deadline

    async def append(
        self,
        entries: Iterable[NewEntry | EntryColumn],
        key: SequenceKey,
        timeout: Timeout,
        *,
        in_order: bool = False,
    ) -> int:
        """Append the missing entries; see :meth:`zlog.Log.append_once`."""
        key.check()
        attempt = await self._begin(key, timeout)
        appended = 0
        for some in _rounds(entries):
            missing = attempt.missing(some)
            if missing and attempt.unfenced is not None:
                await attempt.fence(self._deadline(timeout))
                missing = attempt.missing(missing)
            if in_order and not self.reader.layout.view.ordered:
                deadline = self._deadline(timeout)
                await attempt.appender.append_in_order(missing, attempt.recover, deadline)
            else:
                await attempt.appender.append(missing, self._deadline(timeout))
            appended += len(missing)
        attempt.finish()
        return appended

    async def _begin(self, key: SequenceKey, timeout: Timeout) -> _Attempt:
        """Stop the earlier attempts, and find the entries that they wrote."""
        await self.reader.positions.check_appendable(self._deadline(timeout))
        number, grants, incarnation = await self.records.begin(key, self._deadline(timeout))
        attempt = _Attempt(self, key, incarnation, number)
        if grants:
            for window in _windows(await attempt.granted(self._deadline(timeout))):
                await attempt.recover(window, self._deadline(timeout))
        return attempt


class _Attempt:
    """One attempt of a producer to append a part.

    The attempt first finds the entries that earlier attempts have appended, and then appends only
    the others. A later attempt may supersede it at any time.

    Attributes:
        appender: appends the part's entries, only at positions that the head has recorded.
        unfenced: a position above which an earlier attempt may still append, to a log ordered by
            its object; None if none can.
    """

    def __init__(self, once: ExactlyOnce, key: SequenceKey, incarnation: int, number: int) -> None:
        self._reader = once.reader
        self._layout = layout = once.reader.layout
        self._records = once.records
        self._key = key
        self._incarnation = incarnation
        self._number = number
        self._writers = writer_ids(layout.view, key, incarnation)
        self._written: Counter[bytes] = Counter()
        self.unfenced: int | None = None
        first = number << _NUMBERS_BITS
        self.appender = OrderedAppender(
            layout, self, self._writers[0], once.limit, self._reader, number=first
        )
        self.appender.admit = self._open

    async def granted(self, deadline: Deadline) -> list[range]:
        """Return the positions at which earlier attempts may have written."""
        grants, start = await self._records.granted(self._key, self._incarnation, deadline)
        if start is not None:
            tail = await self._reader.positions.tail(deadline)
            grants.append(range(start, tail))
            self.unfenced = tail
        return grants

    async def fence(self, deadline: Deadline) -> None:
        """End the epoch in which earlier attempts may append, and find their latest entries."""
        view = await self._layout.refresh(deadline)
        if view.ordered:  # otherwise, it ended with the ordering
            await self._layout.renew(view, deadline)
        start, self.unfenced = self.unfenced or 0, None
        tail = await self._reader.positions.tail(deadline)
        for window in _windows([range(start, tail)]):
            await self.recover(window, deadline)

    async def recover(self, positions: Sequence[int], deadline: Deadline) -> None:
        """Fill the unwritten positions, and record the entries at the others."""
        reader, layout = self._reader, self._layout
        while positions:
            bytes_max = min(READ_BYTES_MAX, _WINDOW_BYTES // layout.width_at(positions[0]))
            writers: dict[int, bytes] = {}
            found = await reader.read_some(
                positions, deadline, bytes_max=bytes_max, writers=writers
            )
            for position, slot in found.items():
                # In a log without a sequencer, another writer may have taken the position.
                if isinstance(slot, Entry) and writers[position] in self._writers:
                    self._written[digest_of(slot.data, slot.tags)] += 1
                elif isinstance(slot, Gap) and slot.kind in _UNKNOWN:
                    raise CorruptEntry(
                        f"position {position} of log {self._layout.view.log!r} is"
                        f" {slot.kind.value}: it is unknown whether {self._key} is complete"
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

    def missing(self, entries: Sequence[NewEntry]) -> Sequence[NewEntry]:
        """Return the entries that no earlier attempt wrote."""
        if not self._written:
            return entries
        return [entry for entry in entries if not self._take(digest(entry))]

    def _take(self, content: bytes) -> bool:
        if not self._written[content]:  # a Counter does not keep what it is asked for
            return False
        self._written[content] -= 1
        return True

    def finish(self) -> None:
        """Raise SequenceDiffers if an earlier attempt wrote other entries."""
        surplus = self._written.total()
        if surplus:
            raise SequenceDiffers(
                f"log {self._layout.view.log!r}: an earlier attempt at {self._key} appended"
                f" {surplus} entries that this attempt does not contain"
            )

    async def _open(self, view: View, tail: int, deadline: Deadline) -> bool:
        """Record that the attempt appends at or above a tail in ``view``.

        Returns False if there is a newer view.
        """
        ids, positions = (self._key, self._incarnation, self._number), range(tail, tail + 1)
        granted = await self._records.grant(*ids, view, positions, deadline, opened=True)
        if granted is not None:
            return True
        await self._layout.advance(view, deadline)
        return False

    async def grant(self, count: int, deadline: Deadline) -> tuple[View, int]:
        """Grant positions as :meth:`Positions.grant` does, and record them in the head."""
        while True:
            view, first = await self._reader.positions.grant(count, deadline)
            asked = range(first, first + count)
            try:
                granted = await self._records.grant(
                    self._key, self._incarnation, self._number, view, asked, deadline
                )
            except StoreUnavailable:  # fills would fail as well, and use up the time budget
                raise
            except ZlogError:
                await self._give_back(view, asked, deadline)
                raise
            if granted is not None:
                return view, granted
            await self._layout.advance(view, deadline)

    async def _give_back(self, view: View, positions: range, deadline: Deadline) -> None:
        """Fill granted positions that will not be written, so that no reader waits for them.

        The head has not recorded the grant, so a later epoch may grant the same positions again.
        The fill is therefore sent only if the epoch of ``view`` is still the newest known. In a log
        without a sequencer, nothing was granted and nothing is filled.
        """
        if not view.sequencer:
            return
        with contextlib.suppress(ZlogError):
            tail = await self._reader.positions.tail(deadline)
            unused = range(positions.start, min(positions.stop, tail))
            if unused and self._layout.view.epoch == view.epoch:
                await self._reader.fill(unused, FillCode.WRITER_GAVE_UP, deadline)


def _rounds(entries: Iterable[NewEntry | EntryColumn]) -> Iterator[Sequence[NewEntry]]:
    """Divide the entries of a call into lists that are small enough for one append.

    Single entries are copied, because the caller may reuse its buffer. Columns are only sliced.
    """
    some: list[NewEntry] = []
    size = 0
    for item in entries:
        if isinstance(item, EntryColumn):
            if some:
                yield some
                some, size = [], 0
            start = 0
            while start < len(item):
                end = entries_cut(item, start, APPEND_ENTRIES_MAX, APPEND_BYTES_MAX)
                yield item[start:end]
                start = end
            continue
        entry = item if type(item) is bytes else entries_owned((item,))[0]
        if len(some) == APPEND_ENTRIES_MAX or (some and size + len(entry) > APPEND_BYTES_MAX):
            yield some
            some, size = [], 0
        some.append(entry)
        size += len(entry)
    if some:
        yield some


def _windows(grants: Iterable[range]) -> Iterator[range]:
    """Divide granted positions into windows, each position once."""
    for grant in _each_once(grants):
        for first in range(grant.start, grant.stop, _WINDOW_POSITIONS):
            yield range(first, min(first + _WINDOW_POSITIONS, grant.stop))


def _each_once(grants: Iterable[range]) -> Iterator[range]:
    """Return each position in only one range, because a store may have recorded a grant twice."""
    reached = 0
    for grant in sorted(grants, key=lambda each: each.start):
        if grant.stop > reached:
            yield range(max(grant.start, reached), grant.stop)
            reached = grant.stop


def writer_ids(view: View, key: SequenceKey, incarnation: int) -> list[bytes]:
    """Return the writer ids of a part's entries: the log's own, and those of mirrored entries."""
    sources = (int(each.partition("@")[0], 16) for each in origins(view.options))
    return [_writer_id(each, key, incarnation) for each in (view.log_id, *sources)]


def _writer_id(log_id: int, key: SequenceKey, incarnation: int) -> bytes:
    """Return the writer id that is used by all attempts to append the same part.

    The id includes the producer's incarnation, because a producer that is forgotten and created
    again counts its attempts from 1 again, and would otherwise reuse append ids.
    """
    sequence, part = operator.index(key.sequence), operator.index(key.part)
    text = f"{log_id} {key.producer} {incarnation} {sequence} {part}".encode()
    return hashlib.blake2b(text, digest_size=16, person=b"zlog delivery").digest()
