"""The slots of an ordered group: their entries, and the positions that a member has reached."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from zlog.entry import Entry, Gap
from zlog.extension import NewEntry, tagged_each
from zlog.groups._states import Slot
from zlog.view import Stripe

Item = Entry | Gap
Key = Callable[[Entry], "str | bytes | int"]
Output = bytes | tuple[bytes, Collection[str]]


class Share:
    """A slot that this member owns.

    Attributes:
        committed: all entries below are processed.
        read: all entries below were delivered or belong to other slots.
        pending: the end of the last batch with entries of the slot.
        limit: the end of the next batch, if an earlier owner has begun to pass on its output.
        leaving: whether another member is to get the slot.
    """

    def __init__(self, number: int, slot: Slot) -> None:
        self.number = number
        self.grant = slot.grant
        self.committed = self.read = self.pending = slot.position
        self.limit = slot.intent if slot.intent > slot.position else None
        self.leaving = False


class Batch:
    """Entries of the member's slots, in order; a position that is lost is a gap.

    Attributes:
        items: the entries, and gaps for positions whose entries are lost.
        slots: the slots with entries in the batch, each with its fencing token, which is higher for
            each later owner of the slot. Compare it if a slot protects a resource outside the log.
        end: the position after the batch.
    """

    def __init__(self, items: Sequence[Item], slots: dict[int, int], end: int) -> None:
        """Create a batch; programs get batches from a member."""
        self.items = items
        self.slots = slots
        self.end = end
        self._items: dict[int, list[Item]] = {}
        self._committed: set[int] = set()

    def by_slot(self) -> dict[int, list[Item]]:
        """Return the items of each slot, which may be processed at the same time."""
        return self._items

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Cohort:
    """Shares that are read together, since they are at the same position."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.end = position
        self.shares: dict[int, Share] = {}
        self.buffer: deque[tuple[int, Item]] = deque()


def limit_of(cohort: Cohort) -> int | None:
    """Return the limit of a cohort's only share, if it has one."""
    return next((share.limit for share in cohort.shares.values() if share.limit), None)


def hash_of(value: str | bytes | int) -> int:
    """Return a hash that is the same in every process."""
    if isinstance(value, int):
        value = str(value)
    return zlib.crc32(value.encode() if isinstance(value, str) else value)


def object_of(stripes: Sequence[Stripe], position: int) -> int:
    """Return the number of the stripe object that holds a position."""
    for stripe in stripes:
        if stripe.start <= position < stripe.end or stripe.open:
            return position // stripe.stripe_unit % stripe.width
    return 0  # its stripe is completely trimmed


def new_entries(outputs: Iterable[Output] | None) -> list[NewEntry]:
    """Check what a function returned, and return it as entries to append."""
    given = [outputs] if isinstance(outputs, bytes) else outputs or ()
    pairs = [(each, ()) if isinstance(each, bytes) else each for each in given]
    return tagged_each([data for data, _ in pairs], [[*tags] for _, tags in pairs])
