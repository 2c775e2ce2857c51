"""Rounds of appends: their sizes, their entries, and the outcomes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from zlog._base.io import Reply
from zlog._native.new_entries import NewEntry, tags_bytes
from zlog.errors import StoreTimeout, ZlogError
from zlog.store import Store

E = TypeVar("E", bound=BaseException)

ROUND_ENTRIES_MAX = 4096
ROUND_BYTES_MAX = 4 << 20

ROUNDS_MAX = 2
"""How many rounds may be in flight: one that the store works on, and one on its way. If the store
is on this machine's disk, a small round is in flight alone, because the disk syncs once per
round."""

SUBMITTED_MAX = 1 << 16
"""How many submitted entries may wait, because each takes some hundred bytes."""

QUICK_SECONDS = 0.25
"""How long a round on an event loop waits for replies to its writes before a task does."""

_ROUND_ENTRIES_SPLIT = 512
"""Up to this many entries are sent in one round, because a sync of the store costs more than the
work that could overlap with it. More entries are split evenly, so that while the store works on one
round, the tasks of the other round are woken and append again."""


class RoundPolicy:
    """Decides how large rounds are, from the number of entries that wait or are in flight."""

    def __init__(self, store: Store) -> None:
        self._on_disk = bool(store.identity and not store.pool)

    def rounds_max(self, entries: int) -> int:
        """Return how many rounds may be in flight."""
        return 1 if self._on_disk and entries <= _ROUND_ENTRIES_SPLIT else ROUNDS_MAX

    def share(self, entries: int) -> int:
        """Return how many entries the next round takes."""
        return min(max(-(-entries // ROUNDS_MAX), _ROUND_ENTRIES_SPLIT), ROUND_ENTRIES_MAX)


class _Outcome(Protocol):
    """A future of threads or of asyncio. Its result is a position or a range of positions."""

    def done(self) -> bool: ...
    def set_result(self, result: Any, /) -> None: ...
    def set_exception(self, error: BaseException, /) -> None: ...


@dataclass(slots=True, eq=False)
class Pending:
    """Entries that were submitted to an exclusive writer in one call, and are confirmed together.

    Attributes:
        entries: the entries, at least one.
        outcome: the future that gets :attr:`result` once all entries are confirmed.
        awaited: whether the submitting call waits for the entries and raises their error.
        many: whether the result is a range of positions instead of a single position.
        size: the size of the entries' data in bytes.
        tags_bytes: the maximum size of the entries' tags in a write.
        first: the position of the first entry, once it is in a round.
        taken: the number of entries that are in rounds.
        left: the number of entries that are not confirmed yet.
    """

    entries: Sequence[NewEntry]
    outcome: _Outcome
    awaited: bool
    many: bool
    size: int = field(init=False)
    tags_bytes: int = field(init=False)
    first: int = field(init=False, default=0)
    taken: int = field(init=False, default=0)
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = sum(map(len, self.entries))
        self.tags_bytes = tags_bytes(self.entries)
        self.left = len(self.entries)

    @property
    def result(self) -> int | range:
        """The position of the entry, or the consecutive positions of several entries."""
        return range(self.first, self.first + len(self.entries)) if self.many else self.first


@dataclass(slots=True, eq=False)
class Round:
    """Entries of an exclusive writer that are sent together, at consecutive positions.

    A round first waits, and is then in flight until it is written. If an object refuses a round
    that is in flight, the round waits to be sent again.
    """

    first: int
    entries: list[NewEntry] = field(default_factory=list)
    parts: list[tuple[Pending, int]] = field(default_factory=list)
    under_way: bool = False
    written: bool = False

    @property
    def end(self) -> int:
        """One past the round's last position."""
        return self.first + len(self.entries)

    def split(self, position: int) -> Round:
        """Move the entries below a position to a new round, and return it."""
        head = Round(self.first)
        count = position - self.first
        head.entries, self.entries = self.entries[:count], self.entries[count:]
        parts, self.parts, self.first = self.parts, [], position
        for pending, length in parts:
            within = min(count, length)
            count -= within
            if within:
                head.parts.append((pending, within))
            if length > within:
                self.parts.append((pending, length - within))
        return head


@dataclass(frozen=True, slots=True)
class Failed:
    """A round that failed, perhaps after some of its entries were acknowledged.

    Attributes:
        error: why the round failed.
        positions: the position of each entry; None if the entry was not acknowledged.
    """

    error: BaseException
    positions: Sequence[int | None]

    def outcomes(self) -> list[int | BaseException]:
        """Return the position or the error of each append of the round."""
        if len(self.positions) == 1:
            return [self.error_of_all()]
        return [again(self.error) if each is None else each for each in self.positions]

    def error_of_all(self, before: Sequence[int] = (), not_sent: int = 0) -> BaseException:
        """Return the error of a whole append that has positions ``before`` and entries not sent."""
        if isinstance(self.error, ZlogError):
            self.error.positions = (*before, *self.positions, *[None] * not_sent)
        return self.error


def not_sent(
    why: str = "earlier entries were not acknowledged",
    remedy: str = "The store is slow or unreachable (`zlog doctor`).",
) -> StoreTimeout:
    """Return the error of an append whose time was up before it was sent."""
    error = StoreTimeout(f"the entry was not sent in time: {why}")
    error.hint = f"The entry is not in the log. {remedy}"
    error.positions = (None,)
    return error


def not_confirmed() -> StoreTimeout:
    """Return the error of a call whose time was up before its entries were confirmed."""
    return StoreTimeout(
        "not all submitted entries were confirmed in time",
        hint="The unconfirmed entries may still be in the log. The store is slow or"
        " unreachable (`zlog doctor`).",
    )


def interrupted() -> StoreTimeout:
    """Return the error of an append whose thread or task was interrupted."""
    return StoreTimeout(
        "the append was interrupted", hint="Whether the entry is in the log is unknown."
    )


def again(error: E) -> E:
    """Return a copy of an error that several appends share. The copy has no positions."""
    own = copy.copy(error)
    own.__cause__ = error
    if isinstance(own, ZlogError):
        own.positions = (None,)
    return own


def indefinite(why: ZlogError, reply: Reply) -> StoreTimeout:
    """Return the error of a write after which it is unknown whether its entry is in the log."""
    return StoreTimeout(
        f"{why} (position {reply.number}). The stored record may be this entry or another one",
        hint=f"Whether the entry is in the log is unknown. {why.hint}",
    )
