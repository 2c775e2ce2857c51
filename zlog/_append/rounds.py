"""Rounds of appends: how large they are, how many are under way at a time, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from zlog._native.new_entries import tags_bytes
from zlog.store import Store

if TYPE_CHECKING:
    from zlog._native.new_entries import NewEntry

ROUND_ENTRIES_MAX = 4096
ROUND_BYTES_MAX = 4 << 20

_ROUNDS_MAX = 2
"""Rounds under way at the same time: one with the store, one on its way. Where the store is this
machine's disk, one of few entries is with it at a time: it would sync once for each."""

_ROUND_ENTRIES_SPLIT = 512
"""Entries that leave in one round at the most: a sync of the store costs more than what could be
done meanwhile. Of more, each round takes its share, so that the store works on one while the tasks
of another are woken and append again."""


class RoundPolicy:
    """Decides for the appends of one handle.

    Args:
        store: where they go.
    """

    def __init__(self, store: Store) -> None:
        self._on_disk = bool(store.identity and not store.pool)

    def rounds_max(self, entries: int) -> int:
        """Return how many rounds may be under way.

        Args:
            entries: that wait or are under way.
        """
        return 1 if self._on_disk and entries <= _ROUND_ENTRIES_SPLIT else _ROUNDS_MAX

    def share(self, entries: int) -> int:
        """Return how many entries the next round takes; ``entries`` as in :meth:`rounds_max`."""
        return min(max(-(-entries // _ROUNDS_MAX), _ROUND_ENTRIES_SPLIT), ROUND_ENTRIES_MAX)


class Outcome(Protocol):
    """A future, of either kind."""

    def done(self) -> bool:
        """Whether it has a result already, or was cancelled."""
        ...

    def set_result(self, result: Any, /) -> None:
        """Tell the position, or the positions."""
        ...

    def set_exception(self, error: BaseException, /) -> None:
        """Tell what went wrong."""
        ...


class Handed:
    """Entries that were handed in together, and are confirmed together.

    Attributes:
        entries: at least one.
        outcome: gets :attr:`result`, once all are confirmed.
        size: their data in bytes.
        tags_bytes: what their tags take in a write, at most.
        awaited: whether the call that handed them in waits for them, and raises what goes wrong.
        many: whether their sender handed in a list, and is told all positions.
        taken: how many of them are in rounds.
        left: how many are not confirmed yet.
    """

    __slots__ = (
        "awaited",
        "entries",
        "first",
        "left",
        "many",
        "outcome",
        "size",
        "tags_bytes",
        "taken",
    )

    def __init__(
        self, entries: Sequence[NewEntry], outcome: Outcome, *, awaited: bool, many: bool
    ) -> None:
        self.awaited = awaited
        self.many = many
        self.entries = entries
        self.outcome = outcome
        self.size = sum(map(len, entries))
        self.tags_bytes = tags_bytes(entries)
        self.taken = 0
        self.left = len(entries)
        self.first = 0

    @property
    def result(self) -> int | range:
        """The position of the entry, or those of the list, which follow each other."""
        return range(self.first, self.first + len(self.entries)) if self.many else self.first


class Round:
    """Entries at positions in a row that travel together.

    Life: waiting → under way → written, or waiting again when an object refused it.
    """

    __slots__ = ("entries", "first", "parts", "under_way", "written")

    def __init__(self, first: int) -> None:
        self.first = first
        self.entries: list[NewEntry] = []
        self.parts: list[tuple[Handed, int]] = []
        self.under_way = False
        self.written = False

    @property
    def end(self) -> int:
        """One past its last position."""
        return self.first + len(self.entries)

    def split(self, position: int) -> Round:
        """Take off what lies below a position, and return it."""
        head = Round(self.first)
        count = position - self.first
        head.entries, self.entries = self.entries[:count], self.entries[count:]
        parts, self.parts, self.first = self.parts, [], position
        for handed, length in parts:
            within = min(count, length)
            count -= within
            if within:
                head.parts.append((handed, within))
            if length > within:
                self.parts.append((handed, length - within))
        return head
