"""Entries, and the gaps between them."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import NamedTuple

from zlog._native.entry import Entry

__all__ = ["Entry", "Fill", "FillReason", "Gap", "GapKind", "Loss", "LossReason"]


class GapKind(enum.Enum):
    """Why a position holds no entry."""

    FILLED = "filled"
    """The position was granted but never written, and was filled so that readers can pass it."""
    TRIMMED = "trimmed"
    """The position is no longer needed, and its space was freed. It stays trimmed."""
    UNWRITTEN = "unwritten"
    """The position is not written yet. Only readers that do not fill holes get this."""
    LOST = "lost"
    """The stored bytes fail their checksum, or the object that held them is missing."""
    UNREADABLE = "unreadable"
    """A newer version of zlog wrote the entry. Upgrade this version, and the OSDs' class."""
    FORGED = "forged"
    """No writer with the log's key wrote the stored entry at this position. Occurs only in logs
    with a ``mac_key``."""

    @property
    def hides_entry(self) -> bool:
        """Whether an entry may be lost, at least for this reader."""
        return self in (GapKind.LOST, GapKind.UNREADABLE, GapKind.FORGED)


class FillReason(enum.Enum):
    """Why a position was filled."""

    UNKNOWN = "unknown"
    """The client that filled it gave no reason, or a reason that this version does not know."""
    READER_WAITED = "reader_waited"
    """A reader waited for the entry until its hole timeout passed."""
    ASKED = "asked"
    """A user requested it with ``log.fill`` or ``zlog fill``."""
    WRITER_GAVE_UP = "writer_gave_up"
    """The writer of the position no longer needs it."""


class LossReason(enum.Enum):
    """Why a written position cannot be read."""

    CORRUPT = "corrupt"
    """The stored bytes fail their checksum, or are missing from their object."""
    MISSING = "missing"
    """The stripe object is missing."""


_FILLED_BECAUSE = {
    FillReason.UNKNOWN: "for an unknown reason",
    FillReason.READER_WAITED: "because a reader had waited for it",
    FillReason.ASKED: "because a client asked for it",
    FillReason.WRITER_GAVE_UP: "because its writer gave up",
}


class Fill(NamedTuple):
    """Who filled a position, when and why.

    Attributes:
        by: the ``writer_id`` of the handle that filled it, 32 hex digits.
        at: when it was filled, by that client's clock, UTC; the earliest time of several positions.
        why: the reason that the client gave.
    """

    by: str
    at: datetime
    why: FillReason

    def __str__(self) -> str:
        return f"by {self.by[:8]} at {self.at:%Y-%m-%dT%H:%M:%S.%fZ}, {_FILLED_BECAUSE[self.why]}"


class Loss(NamedTuple):
    """Why a position is lost.

    Attributes:
        why: whether bytes are damaged or an object is missing.
        objects: the stripe objects that held the positions, without duplicates.
    """

    why: LossReason
    objects: tuple[str, ...]

    def __str__(self) -> str:
        what = "bytes are damaged or lost in" if self.why is LossReason.CORRUPT else "missing:"
        return f"{what} {', '.join(self.objects)}"


class Gap(NamedTuple):
    """Consecutive positions ``[position, end)`` that hold no entries, all for the same reason.

    If the positions were filled, the same client has filled all of them for the same reason.

    Attributes:
        position: the first position.
        end: one past the last position.
        kind: why the positions hold no entries.
        detail: a `Fill` for filled positions, a `Loss` for lost ones, otherwise None.
    """

    position: int
    end: int
    kind: GapKind
    detail: Fill | Loss | None = None

    @property
    def positions(self) -> int:
        """The number of positions."""
        return self.end - self.position

    def __str__(self) -> str:
        first, last = self.position, self.end - 1
        where = f"position {first}" if first == last else f"positions {first} to {last}"
        detail = f" ({self.detail})" if self.detail is not None else ""
        return f"{where}: {self.kind.value}{detail}"
