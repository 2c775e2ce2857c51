"""Where a streaming query is: what Spark keeps in its checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch. Positions are global, so that a change of width doesn't matter.

    Attributes:
        position: one past the last position of the batch.
        since: the batch's first position. Spark asks for the very first offset again when it
            replays a query's first batch, and "latest" is then another one: what the batch has is
            told by its end alone.
        log_id: which log, since another one may have its name by now.
    """

    position: int
    since: int
    log_id: int

    def to_json(self) -> dict[str, int | str]:
        """Return what Spark writes down. It compares the text, so the keys have one order."""
        return {"position": self.position, "from": self.since, "log": f"{self.log_id:016x}"}

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Offset:
        """Read what Spark has kept.

        Raises:
            ValueError: this is no offset of a zlog source.
        """
        position, since, log_id = (content.get(key) for key in ("position", "from", "log"))
        if isinstance(position, int) and isinstance(since, int) and 0 <= since <= position:
            with contextlib.suppress(ValueError):
                return cls(position, since, int(str(log_id), 16))
        raise ValueError(f"the checkpoint holds no offset of a zlog source: {dict(content)}")
