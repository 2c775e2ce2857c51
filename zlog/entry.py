"""Entries, and the gaps between them."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import NamedTuple

from zlog._native.entry import Entry

__all__ = ["Entry", "Fill", "FillReason", "Gap", "GapKind", "Loss", "LossReason"]


class GapKind(enum.Enum):
    """Why positions hold no entry."""

    FILLED = "filled"
    """Granted, never written, and filled so that readers can pass. Final."""
    TRIMMED = "trimmed"
    """No longer needed; the space was freed. Final."""
    UNWRITTEN = "unwritten"
    """Not written yet. Only readers that do not wait or fill get it."""
    LOST = "lost"
    """Stored bytes failed their checksum, or the object that held them is missing."""
    UNREADABLE = "unreadable"
    """Written by a newer version of zlog: upgrade this one, and the OSDs' class."""
    FORGED = "forged"
    """The stored entry was not written there by a writer with the log's key. Only in logs with a
    ``mac_key``."""


class FillReason(enum.Enum):
    """Why a position was filled."""

    UNKNOWN = "unknown"
    """The filler gave no reason, or a reason that this version does not know."""
    READER_WAITED = "reader_waited"
    """A reader had waited for its hole time-out."""
    ASKED = "asked"
    """A user requested it: ``log.fill``, ``zlog fill``."""
    WRITER_GAVE_UP = "writer_gave_up"
    """Its writer no longer needs it."""


class LossReason(enum.Enum):
    """Why a written position can't be read."""

    CORRUPT = "corrupt"
    """Stored bytes failed their checksum, or are gone from their object."""
    MISSING = "missing"
    """The stripe object is gone."""


_FILLED_BECAUSE = {
    FillReason.UNKNOWN: "for an unknown reason",
    FillReason.READER_WAITED: "because a reader had waited for it",
    FillReason.ASKED: "because a client asked for it",
    FillReason.WRITER_GAVE_UP: "because its writer gave up",
}


class Fill(NamedTuple):
    """Who filled a position, when and why. ``str`` shows the first eight digits of the id.

    Attributes:
        by: the ``writer_id`` of the filler's handle, 32 hex digits.
        at: the time by the filler's clock, UTC; the earliest one for several positions.
        why: the reason that the filler gave.
    """

    by: str
    at: datetime
    why: FillReason

    def __str__(self) -> str:
        return f"by {self.by[:8]} at {self.at:%Y-%m-%dT%H:%M:%S.%fZ}, {_FILLED_BECAUSE[self.why]}"


class Loss(NamedTuple):
    """Why a position is lost.

    Attributes:
        why: the reason: bytes are damaged, or an object is gone.
        objects: the stripe objects that held the positions, each once.
    """

    why: LossReason
    objects: tuple[str, ...]

    def __str__(self) -> str:
        what = "bytes are damaged or lost in" if self.why is LossReason.CORRUPT else "missing:"
        return f"{what} {', '.join(self.objects)}"


class Gap(NamedTuple):
    """Consecutive positions ``[position, end)`` without entries, all for the same reason.

    All filled positions of a gap have the same filler and reason, and all lost positions are lost
    for the same reason.

    Attributes:
        position: the first position.
        end: one past the last position.
        kind: the reason.
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
