"""What a stripe object must do, said in the plainest Python: a dictionary from position to cell.

`StripeModel` answers like `objects.Stripe`, and a stateful test holds the hosts against it. It
knows nothing of records, bytestreams or limits of a host.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from .replies import (
    WRITTEN,
    Answer,
    Code,
    Read,
    Row,
    Sealed,
    Selected,
    Slot,
    Stat,
    State,
    Verified,
    answered,
)
from .requests import BYTES_MAX, RECORDS_MAX, TIME, WRITER, Entry
from .wire import entry_crc, striping_of

_OK = Answer(Code.OK)
_MISSING = Answer(-errno.ENOENT)
_INVALID = Answer(-errno.EINVAL)
POSITION_MAX = 2**63 - 1
WIDTH_MAX = 1024
UNITS = [2**shift for shift in range(17)]
ENTRIES_MAX = 65536
EPOCH_MAX = 2**63 - 1
EPOCHS_AHEAD_MAX = 2**20
OBJECT_POSITIONS_MAX = 2**25
_UNWRITTEN = Slot(State.UNWRITTEN)
_TRIMMED = Slot(State.TRIMMED)
_NOBODY = (None, 0)


@dataclass
class StripeModel:
    """One stripe object; the first three are what its caller claims, as in `Stripe`."""

    stride: int = 1
    residue: int = 0
    stripe_unit: int = 1
    epoch: int = 0  # 0: the object is missing
    geometry: tuple[int, int, int] = (1, 0, 1)
    cells: dict[int, Slot] = field(default_factory=dict)  # never a cell below trim_point
    ids: dict[int, tuple[bytes, int]] = field(default_factory=dict)  # outlive a trim, not trim_to
    freed: dict[int, tuple[bytes, int]] = field(default_factory=dict)  # may have been dropped
    compacted: bool = False
    written: dict[int, bytes] = field(default_factory=dict)  # all that ever was
    tags: dict[int, frozenset[bytes]] = field(default_factory=dict)  # and its tags
    blocks: dict[int, int] = field(default_factory=dict)  # entries in each block it came in; or 0
    top: int | None = None
    trim_point: int = 0
    start: int | None = None
    frozen: bool = False

    @property
    def end(self) -> int:
        """One past the last position that it takes."""
        if self.start is None:
            return POSITION_MAX + 1
        return min(self.start + OBJECT_POSITIONS_MAX * self.geometry[0], POSITION_MAX + 1)

    @property
    def striping(self) -> int:
        """Its stride and stripe unit as requests have them."""
        return striping_of(self.stride, self.stripe_unit)

    def _beyond(self, positions: Sequence[int]) -> Answer | None:
        return Answer(Code.BEYOND_STRIPE, self.end) if positions[-1] >= self.end else None

    @property
    def highest(self) -> int | None:
        """The highest position written, filled or trimmed, by hand or by the trim point."""
        below = self.trim_point - 1
        while below >= 0 and not self.has(below):
            below -= 1
        candidates = [] if self.top is None else [self.top]
        return max([*candidates, below] if below >= 0 else candidates, default=None)

    def has(self, position: int) -> bool:
        """Whether a position is one of the object's."""
        stride, residue, stripe_unit = self.geometry
        return position // stripe_unit % stride == residue

    def cell(self, position: int) -> Slot:
        """What a position holds."""
        if position < self.trim_point:
            return _TRIMMED
        return self.cells.get(position, _UNWRITTEN)

    def _told(self, position: int, without_data: bool) -> Slot:
        slot = self.cell(position)
        return replace(slot, data=b"") if without_data else slot

    def seal(self, epoch: int, create: bool = True, start: int | None = None) -> Answer:
        """seal: the epoch only grows, the geometry is set once, a lost object stays lost."""
        if (
            not 1 <= epoch <= EPOCH_MAX
            or not 1 <= self.stride <= WIDTH_MAX
            or self.residue >= self.stride
            or self.stripe_unit not in UNITS
        ):
            return _INVALID
        if not (self.epoch or create):
            return _MISSING
        if self.epoch and self.geometry != (self.stride, self.residue, self.stripe_unit):
            return _INVALID
        if self.epoch and not self.epoch < epoch <= self.epoch + EPOCHS_AHEAD_MAX:
            return Answer(Code.INVALID_EPOCH, self.epoch)
        self.epoch, self.geometry = epoch, (self.stride, self.residue, self.stripe_unit)
        if self.start is None:
            self.start = start
            if self.highest is not None and self.highest >= self.end:
                self.start = None
        return Answer(Code.OK, Sealed(self.highest, start=self.start))

    def _refusal(self, epoch: int, positions: Sequence[int] | None = None) -> Answer | None:
        if not self.epoch:
            return _MISSING
        if positions is not None and (misplaced := self._misplaced(positions)):
            return misplaced
        return self._stale(epoch)

    def _misplaced(self, positions: Sequence[int]) -> Answer | None:
        stride, _, stripe_unit = self.geometry
        some = 1 <= len(positions) <= ENTRIES_MAX
        if (self.stride, self.stripe_unit) != (stride, stripe_unit) or not some:
            return _INVALID
        wrong = any(not self.has(p) or p > POSITION_MAX for p in positions)
        ascending = all(a < b for a, b in pairwise(positions))
        return _INVALID if wrong or not ascending else None

    def _stale(self, epoch: int) -> Answer | None:
        return Answer(Code.STALE_EPOCH, self.epoch) if epoch < self.epoch else None

    def _raise(self, positions: Iterable[int]) -> None:
        self.top = max([*positions, *([] if self.top is None else [self.top])], default=None)

    def write(
        self,
        epoch: int,
        entries: Sequence[Entry],
        writer: bytes = WRITER,
        timestamp: int = TIME,
        in_block: int = 0,
        crcs: Sequence[int] | None = None,
    ) -> Answer:
        """write: what is there is fine in any epoch; else fenced, write-once, all or nothing.

        How it is compressed, which is `in_block`, is the hosts' business.
        """
        if not self.epoch:
            return _MISSING
        positions = [e.position for e in entries]
        if invalid := self._misplaced(positions):
            return invalid
        if crcs is not None and list(crcs) != [entry_crc(e.position, e.data) for e in entries]:
            return _INVALID
        missing = [e for e in entries if not self._holds(e, writer)]
        if not missing:
            return WRITTEN
        if stale := self._stale(epoch):
            return stale
        taken = [e.position for e in missing if self.cell(e.position) != _UNWRITTEN]
        if taken:
            return Answer(Code.READ_ONLY, taken[0])
        if beyond := self._beyond([e.position for e in missing]):
            return beyond
        for e in missing:
            self.blocks[e.position] = in_block if any(each.data for each in entries) else 0
            slot = Slot(State.WRITTEN, e.data, timestamp, writer, e.number)
            self.cells[e.position] = replace(slot, tags=frozenset(e.tags))
            self.ids[e.position] = (writer, e.number)
            self.written[e.position], self.tags[e.position] = e.data, frozenset(e.tags)
        self._raise(e.position for e in missing)
        return WRITTEN

    def _holds(self, entry: Entry, writer: bytes) -> bool:
        return self._is_own(self.ids, entry, writer)

    def _is_own(self, ids: Mapping[int, tuple[bytes, int]], entry: Entry, writer: bytes) -> bool:
        """Whether an append is the one at its position: the same id, data and tags.

        Of what is trimmed nothing tells the tags.
        """
        at = entry.position
        if ids.get(at) != (writer, entry.number) or self.written[at] != entry.data:
            return False
        return self.cell(at).state != State.WRITTEN or self.tags[at] == {*entry.tags}

    def write_as_host(
        self,
        found: Answer,
        epoch: int,
        entries: Sequence[Entry],
        writer: bytes = WRITER,
        timestamp: int = TIME,
        in_block: int = 0,
    ) -> Answer:
        """What a host that answered `found` should have answered to a write.

        Where the data is compressed, here or there, it may say SAME_ID of an entry that is there.

        Below the trim point a host knows an entry's identity for as long as it has not freed the
        record, so there a retry may be OK or READ_ONLY: the host chooses, position by position.
        """
        if found.code == Code.SAME_ID:
            (entry,) = (e for e in entries if e.position == found.value)
            assert self._holds(entry, writer)
            assert self.cell(entry.position).state == State.WRITTEN
            assert in_block or self.blocks[entry.position]
            return found
        own = {e.position for e in entries if self._is_own(self.freed, e, writer)}
        if found.code == Code.READ_ONLY and found.value in own and epoch >= self.epoch:
            return found
        if found.code == Code.STALE_EPOCH and own:
            return Answer(Code.STALE_EPOCH, self.epoch) if epoch < self.epoch else WRITTEN
        rest = [e for e in entries if e.position not in own]
        if not rest:
            return WRITTEN
        return self.write(epoch, rest, writer, timestamp, in_block)

    def put(self, epoch: int, position: int, data: bytes, writer: bytes = WRITER) -> Answer:
        """A write of one entry whose number is its position."""
        return self.write(epoch, [Entry(position, position, data)], writer)

    def read(
        self,
        epoch: int,
        positions: Sequence[int],
        bytes_max: int = BYTES_MAX,
        with_ids: bool = False,
        blocks: bool = True,
        tags: bool = False,
        without_data: bool = False,
    ) -> Answer:
        """read: as many of the positions as fit `bytes_max`, and one in any case.

        Without data all fit.
        """
        if refusal := self._refusal(epoch, positions):
            return refusal
        slots: list[Slot] = []
        size = 0
        for position in positions:
            slot = self._told(position, without_data)
            size += len(slot.data)
            if slots and slot.state == State.WRITTEN and size > bytes_max:
                break
            slot = slot if tags else replace(slot, tags=frozenset())
            slots.append(slot if with_ids else _anonymous(slot))
        return Answer(Code.OK, Read(self.highest, tuple(slots)))

    def select(
        self,
        epoch: int,
        start: int,
        end: int,
        tags: Collection[bytes],
        all: bool = False,
        reverse: bool = False,
        entries_max: int = 1000,
        bytes_max: int = BYTES_MAX,
        with_ids: bool = False,
        without_data: bool = False,
    ) -> Answer:
        """select: all that pages of any size find together; each gap of one position."""
        if refusal := self._refusal(epoch):
            return refusal
        fits = frozenset(tags).issubset if all else lambda own: not own.isdisjoint(tags)
        found, gaps = [], []
        for position in filter(self.has, range(start, end)):
            slot = self._told(position, without_data)
            if slot.state == State.WRITTEN and fits(slot.tags):
                found.append((position, slot if with_ids else _anonymous(slot)))
            elif position < self.trim_point or (
                slot.state == State.UNWRITTEN and position <= (-1 if self.top is None else self.top)
            ):
                gaps.append((position, position, slot.state))
        return Answer(Code.OK, Selected(self.highest, end, tuple(gaps), tuple(found)))

    def verify(
        self,
        epoch: int,
        positions: Sequence[int],
        bytes_max: int = BYTES_MAX,
        keys_only: bool = False,
    ) -> Answer:
        """verify: what a read with ids would tell, without data, alike positions together."""
        found = self.read(epoch, positions, bytes_max)
        if found.code != Code.OK:
            return found
        rows: list[Row] = []
        for position, slot in zip(positions, found.value.slots, strict=False):
            known = position >= self.trim_point and slot.state in (State.WRITTEN, State.TRIMMED)
            writer, number = self.ids.get(position, _NOBODY) if known else _NOBODY
            row = Row(1, slot.state, writer, number, 0, len(slot.data))
            longer = rows[-1].joined(row) if rows else None
            rows[-1:] = [longer] if longer else [*rows[-1:], row]
        return Answer(Code.OK, Verified(self.highest, tuple(rows)))

    def count(self, epoch: int, start: int, end: int) -> Answer:
        """count: entries, their data and times, and the first hole."""
        if max(start, end) > POSITION_MAX + 1:
            return _INVALID
        if refusal := self._refusal(epoch):
            return refusal
        first = max(start, self.trim_point)
        own = {p: slot for p, slot in self.cells.items() if start <= p < end}
        live = {p: slot for p, slot in own.items() if slot.state == State.WRITTEN}
        hole = first
        while hole < end and (hole in self.cells or not self.has(hole)):
            hole += 1
        size = sum(len(slot.data) for slot in live.values())
        counts = end, len(live), size, hole if hole < end else None, max(live, default=None)
        oldest = min(live, key=lambda p: (live[p].timestamp, p), default=None)
        newest = min(live, key=lambda p: (-live[p].timestamp, p), default=None)
        times = [None if p is None else live[p].timestamp for p in (oldest, newest)]
        return answered("count", *counts, *times, False, oldest, newest)

    def fill(
        self,
        epoch: int,
        positions: Sequence[int],
        writer: bytes = WRITER,
        timestamp: int = TIME,
        reason: int = 0,
    ) -> Answer:
        """fill: never over data, idempotent on junk, all or nothing."""
        if refusal := self._refusal(epoch, positions):
            return refusal
        written = [p for p in positions if self.cell(p).state == State.WRITTEN]
        if written:
            return Answer(Code.READ_ONLY, written[0])
        empty = [p for p in positions if self.cell(p) == _UNWRITTEN]
        if empty and (beyond := self._beyond(empty)):
            return beyond
        for p in empty:
            self.cells[p] = Slot(State.FILLED, b"", timestamp, writer, None, reason)
        self._raise(empty)
        return _OK

    def trim(self, epoch: int, positions: Sequence[int]) -> Answer:
        """trim: wins over everything."""
        if refusal := self._refusal(epoch, positions):
            return refusal
        above = positions[-1] >= self.trim_point
        if above and (refusal := self._thawed() or self._beyond(positions)):
            return refusal
        for p in positions:
            if p >= self.trim_point:
                self.cells[p] = _TRIMMED
                self._raise([p])
                if self.compacted and p in self.ids:
                    self.freed[p] = self.ids.pop(p)
        return _OK

    def trim_to(self, epoch: int, position: int, records_max: int = RECORDS_MAX) -> Answer:
        """trim_to: all below `position`, for ever. The model frees everything at once."""
        if not (1 <= records_max <= RECORDS_MAX and position <= POSITION_MAX + 1):
            return _INVALID
        if refusal := self._refusal(epoch):
            return refusal
        self.trim_point = max(self.trim_point, min(position, self.end))
        for below in [p for p in self.cells if p < self.trim_point]:
            del self.cells[below]
            if below in self.ids:
                self.freed[below] = self.ids.pop(below)
        return Answer(Code.OK, False)

    def compact(self, epoch: int, start: int, end: int, positions: Sequence[int]) -> Answer:
        """compact: trims the positions in a range that hold entries; OK with their number.

        The identities of trimmed entries may be forgotten, of these and of earlier ones.
        """
        if refusal := self._refusal(epoch, positions) or self._thawed():
            return refusal
        if not any(self.tags.values()):
            return Answer(Code.OK, 0)
        self.compacted = True
        written = [p for p in positions if self.cell(p).state == State.WRITTEN]
        trimmed = [p for p in written if start <= p < end]
        self.cells.update(dict.fromkeys(trimmed, _TRIMMED))
        for p in [p for p in self.ids if self.cell(p) == _TRIMMED]:
            self.freed[p] = self.ids.pop(p)
        return Answer(Code.OK, len(trimmed))

    def tags_list(self, epoch: int, start: int = 0, end: int = POSITION_MAX + 1) -> Answer:
        """tags_list: what pages of any size list together."""
        if refusal := self._refusal(epoch):
            return refusal
        own = [(p, slot.tags) for p, slot in sorted(self.cells.items()) if slot.tags]
        return Answer(Code.OK, tuple((p, tags) for p, tags in own if start <= p < end))

    def max_position(self, epoch: int, start: int = 0) -> Answer:
        """max_position: the highest position, and the first one from `start` on without a cell."""
        if start > POSITION_MAX:
            return _INVALID
        return self._refusal(epoch) or answered(
            "max_position", self.highest, self._unwritten(start)
        )

    def _unwritten(self, start: int) -> int | None:
        position = max(start, self.trim_point)
        while position <= POSITION_MAX:
            if self.has(position) and position not in self.cells:
                return position
            position += 1
        return None

    def stat(self, epoch: int) -> Answer:
        """stat: counts what is written and not trimmed."""
        if refusal := self._refusal(epoch):
            return refusal
        live = [slot for slot in self.cells.values() if slot.state == State.WRITTEN]
        size = sum(len(slot.data) for slot in live)
        counts = self.epoch, self.highest, self.trim_point, len(live), size
        geometry = dict(zip(("stride", "residue", "stripe_unit"), self.geometry, strict=True))
        return Answer(Code.OK, Stat(*counts, **geometry, frozen=self.frozen))

    def freeze(self, epoch: int) -> Answer:
        """freeze: from then on only trim_to trims."""
        refusal = self._refusal(epoch)
        self.frozen |= refusal is None
        return refusal or _OK

    def _thawed(self) -> Answer | None:
        return Answer(Code.FROZEN, self.trim_point) if self.frozen else None

    def remove(self, epoch: int) -> Answer:
        """remove: fenced like everything."""
        if refusal := self._refusal(epoch):
            return refusal
        self.__init__(self.stride, self.residue, self.stripe_unit)  # type: ignore[misc]
        return _OK


def _anonymous(slot: Slot) -> Slot:
    return replace(slot, writer=None, number=None, reason=None)
