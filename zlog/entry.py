"""What a reader gets: entries, and the gaps between them."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import NamedTuple

from zlog._native.entry import Entry

__all__ = ["Entry", "Fill", "FillReason", "Gap", "GapKind", "Loss", "LossReason"]


class GapKind(enum.Enum):
    """Why positions hold no entry."""

    FILLED = "filled"
    """Handed out, never written, and filled with junk so that readers can pass. Final."""
    TRIMMED = "trimmed"
    """No longer needed; the space was given back. Final."""
    UNWRITTEN = "unwritten"
    """Nothing there yet. Only seen by readers that asked not to wait or fill."""
    LOST = "lost"
    """Stored bytes failed their checksum, or the object that held them is missing."""
    UNREADABLE = "unreadable"
    """A newer version of zlog stored what is there: upgrade this one, and the OSDs' class."""
    FORGED = "forged"
    """Stored bytes fit their checksum, and are no entry that a writer with the log's key has put
    there. Only in logs with a ``mac_key``."""


class FillReason(enum.Enum):
    """Why a position was filled."""

    UNKNOWN = "unknown"
    """The filler gave no reason, or one that this version does not know."""
    READER_WAITED = "reader_waited"
    """A reader had waited for its writer for as long as it was set to."""
    ASKED = "asked"
    """A user asked for it: ``log.fill``, ``zlog fill``."""
    WRITER_GAVE_UP = "writer_gave_up"
    """Its own writer does not need it any more."""


class LossReason(enum.Enum):
    """Why what was stored is not readable."""

    CORRUPT = "corrupt"
    """Stored bytes failed their checksum, or are gone from their object."""
    MISSING = "missing"
    """The stripe object is gone."""


_FILLED_BECAUSE = {
    FillReason.UNKNOWN: "for an unknown reason",
    FillReason.READER_WAITED: "a reader had waited for it",
    FillReason.ASKED: "it was asked for",
    FillReason.WRITER_GAVE_UP: "its writer gave up",
}


class Fill(NamedTuple):
    """Who filled a position, when and why. As text it has the first eight digits of the id.

    Attributes:
        by: the filler's id, 32 hex digits; of a handle, its ``writer_id``.
        at: when, by the filler's clock, UTC. Of several positions: of the one filled first.
        why: the reason that it gave.
    """

    by: str
    at: datetime
    why: FillReason

    def __str__(self) -> str:
        return f"by {self.by[:8]} at {self.at:%Y-%m-%dT%H:%M:%S.%fZ}, {_FILLED_BECAUSE[self.why]}"


class Loss(NamedTuple):
    """What became of a position that held something once.

    Attributes:
        why: whether the bytes are damaged or gone.
        objects: the stripe objects that held it; of several positions, each object once.
    """

    why: LossReason
    objects: tuple[str, ...]

    def __str__(self) -> str:
        what = "bytes are damaged or gone in" if self.why is LossReason.CORRUPT else "missing:"
        return f"{what} {', '.join(self.objects)}"


class Gap(NamedTuple):
    """Positions ``[position, end)`` that hold no entry, all for the same reason.

    Neighbouring positions are one gap where the kind is the same, and with it who filled them and
    why, or why they are lost.

    Attributes:
        position: the first.
        end: one past the last.
        kind: what became of them.
        detail: a `Fill` where they were filled, a `Loss` where they are lost, else None.
    """

    position: int
    end: int
    kind: GapKind
    detail: Fill | Loss | None = None

    @property
    def positions(self) -> int:
        """How many positions the gap covers."""
        return self.end - self.position

    def __str__(self) -> str:
        first, last = self.position, self.end - 1
        where = f"position {first}" if first == last else f"positions {first} to {last}"
        told = f" ({self.detail})" if self.detail is not None else ""
        return f"{where}: {self.kind.value}{told}"
