"""Where a streaming query is: what Spark keeps in its checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from zlog.errors import ZlogError


class WrongCheckpoint(ZlogError):
    """The checkpoint of a query is not of the log that it reads."""

    hint = "Start the query with a checkpoint of its own, or with the log that this one is of."


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch. Positions are global, so that a change of width doesn't matter.

    Attributes:
        position: one past the last position of the batch.
        since: the batch's first position. Spark asks for the very first offset again when it
            replays a query's first batch, and "latest" is then another one: what the batch has is
            told by its end alone.
        log: name of the log.
        log_id: which log of that name, since another one may have it by now.
    """

    position: int
    since: int
    log: str
    log_id: int

    def to_json(self) -> dict[str, int | str]:
        """Return what Spark writes down. It compares the text, so the keys have one order."""
        return {
            "position": self.position,
            "from": self.since,
            "log": self.log,
            "id": f"{self.log_id:016x}",
        }

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Offset:
        """Read what Spark has kept.

        Raises:
            WrongCheckpoint: this is no offset of a zlog source.
        """
        position, since, log, log_id = (content.get(k) for k in ("position", "from", "log", "id"))
        if isinstance(position, int) and isinstance(since, int) and 0 <= since <= position:
            with contextlib.suppress(ValueError):
                return cls(position, since, str(log), int(str(log_id), 16))
        raise WrongCheckpoint(f"the checkpoint is not of a log of zlog: it holds {dict(content)}")

    def check(self, log: str, log_id: int | None) -> None:
        """Complain unless the offset is one of this log.

        Raises:
            WrongCheckpoint: it is another one's.
        """
        if self.log != log:
            raise WrongCheckpoint(f"the checkpoint is of log {self.log!r}, and not of {log!r}")
        if self.log_id != log_id:
            raise WrongCheckpoint(
                f"the checkpoint is of a log {log!r} that was removed: another one has its name"
            )
