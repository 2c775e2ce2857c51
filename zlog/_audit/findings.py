"""What an audit of a log can find."""

from __future__ import annotations

import enum
from typing import NamedTuple

from zlog.view import ObjectRef


class FindingKind(enum.Enum):
    """What an audit can find."""

    MISSING_OBJECT = "missing-object"
    """A stripe object of the view is gone, with its entries."""
    DAMAGED_OBJECT = "damaged-object"
    """What is stored as an attribute or a key fails its checksum. Where it is a stripe object's
    header, none of the object's entries can be read."""
    DAMAGED_COPY = "damaged-copy"
    """A copy of an object is damaged, and another one has what it lost: ``heal`` puts it back."""
    HEALED = "healed"
    """A copy of an object was damaged, and has been put right from another one."""
    WRONG_OBJECT = "wrong-object"
    """A stripe object was made for other positions than the view has in it."""
    BEYOND_END = "beyond-end"
    """An object of a closed stripe holds positions at or above the stripe's end: two entries may
    have the same position."""
    LOST = "lost"
    """Stored entries fail their checksum, or are gone from an object that says that it has them."""
    UNREADABLE = "unreadable"
    """A newer version of zlog stored what is at these positions; this one can't check it."""
    FORGED = "forged"
    """What is stored is intact, and was not made with the log's key: only looked for with it."""
    DUPLICATE = "duplicate"
    """Appends that stand at two positions. Never happens unless stored bytes were changed."""
    EPOCH_BEHIND = "epoch-behind"
    """An object was not sealed with an epoch that a view relies on: late writers get through."""
    EPOCH_AHEAD = "epoch-ahead"
    """An object is sealed above the newest view: a layout change is under way, or its author died.
    The next writer finishes it."""
    TAIL_BEHIND = "tail-behind"
    """The tail lies below a position that is taken, or below one that was shown as tail."""
    TRIM_AHEAD = "trim-ahead"
    """An object was trimmed further than the log was."""
    TRIM_BEHIND = "trim-behind"
    """A trim died before it had freed an object's space; the next one does that."""
    WRONG_INDEX = "wrong-index"
    """An object's index of tags does not tell of all entries: reads by tag may miss some.
    ``rebuild_index`` makes it anew from the entries."""
    REBUILT = "rebuilt"
    """An object's index of tags was wrong, and has been made anew."""
    HOLE = "hole"
    """Handed out, and not written in the time that a reader waits."""
    MISSING_STRIPE = "missing-stripe"
    """The head does not know any more in which objects some positions are."""
    ORPHAN = "orphan"
    """A stripe object that no view has and no list of stripes to be removed."""
    LEFTOVER = "leftover"
    """A stripe object in which nothing is needed. The next trim, leader or change of the layout
    removes it."""
    UNLISTED = "unlisted"
    """The log is not in the store's directory, so that ``zlog ls`` does not show it."""


_HARMLESS = frozenset(
    {
        FindingKind.HOLE,
        FindingKind.EPOCH_AHEAD,
        FindingKind.TRIM_BEHIND,
        FindingKind.ORPHAN,
        FindingKind.LEFTOVER,
        FindingKind.HEALED,
        FindingKind.REBUILT,
    }
)


class Finding(NamedTuple):
    """One thing that an audit found.

    Attributes:
        kind: what it is.
        object: name of the object concerned; of positions in several objects, the first one's.
        position: first position concerned, None when it is about the object as a whole.
        end: one past the last position concerned.
        detail: a sentence for people.
        step: from one position concerned to the next: 1, or the stripe's width where they are all
            in one object.
    """

    kind: FindingKind
    object: str
    position: int | None
    end: int | None
    detail: str
    step: int = 1

    @property
    def serious(self) -> bool:
        """Whether data is lost or a promise is broken, as opposed to work in progress or space."""
        return self.kind not in _HARMLESS

    @property
    def positions(self) -> range | None:
        """The positions concerned; None when it is about the object as a whole."""
        if self.position is None or self.end is None:
            return None
        return range(self.position, self.end, self.step)


class CheckSummary(NamedTuple):
    """What an audit has looked at.

    Attributes:
        positions: positions that were looked at, from the trim point to the tail.
        entries: entries whose checksums fit.
        bytes: their data together.
        filled: positions that were filled.
        trimmed: positions above the trim point that are trimmed, or were while the audit ran.
        unwritten: positions at which nothing was when the audit came by.
        lost: positions whose data is damaged or whose object is missing.
        unreadable: positions at which a newer version of zlog stored something.
        objects: stripe objects that were looked at.
        listed: whether objects that no view has were looked for: False when that was not wanted,
            or the store does not let the client list its objects.
        forged: of the entries, those whose MACs are not of the log's key; None: its entries have
            MACs, and none was checked, for want of the key.
    """

    positions: int
    entries: int
    bytes: int
    filled: int
    trimmed: int
    unwritten: int
    lost: int
    unreadable: int
    objects: int
    listed: bool
    forged: int | None


def about(kind: FindingKind, name: str, detail: str) -> Finding:
    """Return a finding about an object as a whole."""
    return Finding(kind, name, None, None, detail)


def at(kind: FindingKind, ref: ObjectRef, positions: range, detail: str) -> Finding:
    """Return a finding about some positions, of which ``ref`` holds the first."""
    return Finding(kind, ref.name, positions[0], positions[-1] + 1, detail, positions.step)
