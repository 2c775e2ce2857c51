"""The findings of an audit."""

from __future__ import annotations

import enum
from typing import NamedTuple

from zlog.view import ObjectRef


class FindingKind(enum.Enum):
    """The kind of a finding."""

    MISSING_OBJECT = "missing-object"
    """A stripe object of the view is missing, with all its entries."""
    DAMAGED_OBJECT = "damaged-object"
    """An attribute or a key fails its checksum. If it is the header of a stripe object, none of the
    object's entries can be read."""
    DAMAGED_REPLICA = "damaged-replica"
    """A replica of an object is damaged, but another one is sound. ``repair`` can repair it."""
    REPAIRED = "repaired"
    """A replica of an object was damaged, and was repaired from another one."""
    WRONG_OBJECT = "wrong-object"
    """A stripe object was made for positions other than those that the view gives it."""
    BEYOND_END = "beyond-end"
    """An object of an ended stripe holds positions at or above the stripe's end, so two entries may
    have the same position."""
    LOST = "lost"
    """Stored entries fail their checksum, or are missing from an object that must have them."""
    UNREADABLE = "unreadable"
    """A newer version of zlog wrote these positions, and this version cannot check them."""
    FORGED = "forged"
    """Entries have wrong MACs. This is checked only with the log's key."""
    DUPLICATE = "duplicate"
    """An append is stored at two positions. This happens only if stored bytes were changed."""
    EPOCH_BEHIND = "epoch-behind"
    """An object was not sealed with its view's epoch, so late writers are not fenced."""
    EPOCH_AHEAD = "epoch-ahead"
    """A layout change that is not finished has sealed an object above the newest view. The next
    writer finishes the change."""
    TAIL_BEHIND = "tail-behind"
    """The tail is below a position that is taken, or below an earlier tail."""
    TRIM_AHEAD = "trim-ahead"
    """An object was trimmed further than the log was."""
    TRIM_BEHIND = "trim-behind"
    """A client died during a trim, before an object's space was freed. The next trim frees it."""
    WRONG_INDEX = "wrong-index"
    """An object's index of tags lacks entries, so reads by tag may miss them. ``rebuild_index``
    rebuilds the index."""
    REBUILT = "rebuilt"
    """An object's index of tags was wrong, and was rebuilt."""
    HOLE = "hole"
    """A position was granted, but was not written within the hole timeout of readers."""
    MISSING_STRIPE = "missing-stripe"
    """The head has lost the record of which objects hold some positions."""
    ORPHAN = "orphan"
    """A stripe object is in no view and in no list of stripes to remove."""
    LEFTOVER = "leftover"
    """A stripe object is unused. The next trim, leader or layout change removes it."""
    UNLISTED = "unlisted"
    """The log is missing from the store's directory, so ``zlog ls`` does not show it."""


_HARMLESS = frozenset(
    {
        FindingKind.HOLE,
        FindingKind.EPOCH_AHEAD,
        FindingKind.TRIM_BEHIND,
        FindingKind.ORPHAN,
        FindingKind.LEFTOVER,
        FindingKind.REPAIRED,
        FindingKind.REBUILT,
    }
)


class Finding(NamedTuple):
    """A finding of an audit.

    Attributes:
        kind: the kind of the finding.
        object: the name of the object, or of the first object if the positions are in several. For
            positions of an offloaded stripe, the URL of its file.
        position: the first position; None if the finding is about the whole object.
        end: one past the last position.
        detail: a sentence that explains the finding.
        step: the distance from each position to the next. It is the stripe's width if all positions
            are in one object whose stripe unit is 1, and otherwise 1.
    """

    kind: FindingKind
    object: str
    position: int | None
    end: int | None
    detail: str
    step: int = 1

    @property
    def serious(self) -> bool:
        """Whether data is lost or an invariant is broken. Other findings are harmless."""
        return self.kind not in _HARMLESS

    @property
    def positions(self) -> range | None:
        """The positions; None if the finding is about the whole object."""
        if self.position is None or self.end is None:
            return None
        return range(self.position, self.end, self.step)


class CheckSummary(NamedTuple):
    """The totals of an audit.

    Attributes:
        positions: the number of positions between the trim point and the tail at the audit's start.
        entries: the number of entries with correct checksums.
        bytes: the size of the data of these entries.
        filled: the number of filled positions.
        trimmed: the number of positions that were trimmed individually, or while the audit ran.
        unwritten: the number of positions that were unwritten when they were checked.
        lost: the number of positions whose data is damaged or whose object is missing.
        unreadable: the number of positions that a newer version of zlog wrote.
        objects: the number of stripe objects.
        listed: whether the audit searched for objects that belong to no view. This is False if the
            caller did not ask for it, or if the client may not list the store's objects.
        forged: the number of entries with wrong MACs. None if entries have MACs but there was no
            key to check them.
        offloaded: the number of positions that are in files of offloaded stripes.
        files: the number of these files. They were read completely.
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
    offloaded: int = 0
    files: int = 0


def about(kind: FindingKind, name: str, detail: str) -> Finding:
    """Return a finding about a whole object."""
    return Finding(kind, name, None, None, detail)


def at(kind: FindingKind, ref: ObjectRef, positions: range, detail: str) -> Finding:
    """Return a finding about positions, the first of which is in ``ref``."""
    return Finding(kind, ref.name, positions[0], positions[-1] + 1, detail, positions.step)
