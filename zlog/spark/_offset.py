"""The progress of a streaming query, as Spark keeps it in its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict, cast

from zlog.errors import ZlogError
from zlog.spark._plan import Sizes
from zlog.view import Stripe


class WrongCheckpoint(ZlogError):
    """The checkpoint of a query belongs to another log than the query reads."""

    hint = "Use another checkpoint, or read the log to which this checkpoint belongs."


class Selection(TypedDict):
    """The options that decide which positions become rows, by name."""

    includeGaps: bool
    tags: list[str] | None
    match: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """What an offset records about a batch, so that Spark can repeat the batch with the same tasks.

    A repeated batch must have the same rows in the same tasks, because a sink may identify rows by
    their task. The log and the options may have changed by then.

    Attributes:
        stripes: the stripes that hold the batch's positions. Positions below the first of these
            stripes were trimmed.
        sizes: the rules for cutting the batch into tasks.
        selection: the options that decide which positions become rows.
    """

    stripes: Sequence[Stripe]
    sizes: Sizes
    selection: Selection

    def to_json(self) -> dict[str, object]:
        """Return the JSON for an offset. Each stripe ends where the next one starts."""
        stripes = [[each.start, each.width, each.stripe_unit] for each in self.stripes]
        return {"stripes": stripes, **asdict(self.sizes), **self.selection}

    @classmethod
    def from_json(cls, content: Mapping[str, object], end: int) -> Recorded:
        """Read the JSON of an offset of a batch that ends at ``end``; keys may be missing."""
        found = cast("Sequence[tuple[int, int, int]]", content["stripes"])
        ends = [*(start for start, _, _ in found[1:]), end][: len(found)]  # empty if all is trimmed
        stripes = [
            Stripe(0, start, last, width, stripe_unit)
            for (start, width, stripe_unit), last in zip(found, ends, strict=True)
        ]
        sizes = Sizes(**{name: content[name] for name in asdict(Sizes())})  # type: ignore[arg-type]
        selection = {name: content[name] for name in Selection.__annotations__}
        return cls(stripes, sizes, cast("Selection", selection))


@dataclass(frozen=True, slots=True)
class Offset:
    """The offset that Spark stores for the end of a batch.

    Attributes:
        since: the batch's first position. A query's first batch needs it, because "latest" may mean
            another position when Spark replays the batch.
        log: the name of the log.
        log_id: the id of the log, since a later log may have the same name.
        recorded: how to divide the batch into tasks; None if no batch ends here, or if the offset
            is from an older version of zlog.
    """

    position: int
    since: int
    log: str
    log_id: int
    recorded: Recorded | None = None

    def to_json(self) -> dict[str, object]:
        """Return the JSON that Spark stores. Spark compares texts, so the keys have one order."""
        recorded = {} if self.recorded is None else {"plan": self.recorded.to_json()}
        return {
            "position": self.position,
            "from": self.since,
            "log": self.log,
            "id": f"{self.log_id:016x}",
            **recorded,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Offset:
        """Decode the JSON that Spark has stored. Raises WrongCheckpoint if it is not zlog's."""
        position, since, log, log_id = (content.get(k) for k in ("position", "from", "log", "id"))
        plan = cast("Mapping[str, object] | None", content.get("plan"))
        try:
            if isinstance(position, int) and isinstance(since, int) and 0 <= since <= position:
                recorded = None if plan is None else Recorded.from_json(plan, position)
                return cls(position, since, str(log), int(str(log_id), 16), recorded)
        except (LookupError, TypeError, ValueError):
            pass
        raise WrongCheckpoint(
            f"the checkpoint does not belong to a zlog log: it contains {dict(content)}"
        )

    def check(self, log: str, log_id: int | None, selection: Selection) -> None:
        """Raise WrongCheckpoint unless the offset belongs to this log and selects the same rows."""
        if self.log != log:
            raise WrongCheckpoint(f"the checkpoint belongs to log {self.log!r}, not to {log!r}")
        if self.log_id != log_id:
            raise WrongCheckpoint(
                f"the checkpoint belongs to a removed log {log!r}, and another log now has its name"
            )
        given = cast("Mapping[str, object]", selection)
        kept = cast("Mapping[str, object]", self.recorded.selection if self.recorded else {})
        for name, value in kept.items():
            if value != given[name]:
                raise WrongCheckpoint(
                    f"the checkpoint belongs to a query with {_shown(name, value)}, not with"
                    f" {_shown(name, given[name])}",
                    hint=f"Set {name} back to continue this query. To read other rows from"
                    f" {self.position} on, let it reach this position; then start a query with"
                    f" another checkpoint and startingPosition={self.position}.",
                )


def _shown(name: str, value: object) -> str:
    return f"no {name}" if value is None else f"{name}={json.dumps(value)}"
