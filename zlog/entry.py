"""What a reader gets: entries, and the gaps between them."""

from __future__ import annotations

import enum
from typing import NamedTuple

from zlog._native import Entry

__all__ = ["Entry", "Gap", "GapKind"]


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


class Gap(NamedTuple):
    """Positions ``[position, end)`` that hold no entry, all for the same reason."""

    position: int
    end: int
    kind: GapKind

    @property
    def positions(self) -> int:
        """How many positions the gap covers."""
        return self.end - self.position
