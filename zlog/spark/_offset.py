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
class Settings:
    """The settings of a batch, so that Spark can repeat the batch with the same tasks.

    Attributes:
        sizes: the rules for cutting the batch into tasks.
        selection: the options that decide which positions become rows.
    """

    sizes: Sizes
    selection: Selection

    def to_json(self) -> dict[str, object]:
        """Return the JSON for an offset."""
        return {**asdict(self.sizes), **self.selection}

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Settings:
        """Read the JSON of an offset. Raises LookupError if a key is missing."""
        sizes = Sizes(**{name: content[name] for name in asdict(Sizes())})  # type: ignore[arg-type]
        selection = {name: content[name] for name in Selection.__annotations__}
        return cls(sizes, cast("Selection", selection))


@dataclass(frozen=True, slots=True)
class LogOffset:
    """The progress in one log.

    Attributes:
        position: the next position to read.
        since: the first position of the batch that ends here. A query's first batch needs it,
            because "latest" may mean another position when Spark replays the batch.
        log_id: the id of the log, since a later log may have the same name.
        stripes: the stripes that hold the batch's positions. Positions below the first of these
            stripes were trimmed. The layout may have changed when Spark repeats the batch. None if
            no positions of the log are in the batch.
    """

    position: int
    since: int
    log_id: int
    stripes: Sequence[Stripe] | None = None

    @property
    def count(self) -> int:
        """The number of the batch's positions."""
        return self.position - self.since

    def stripes_json(self) -> list[list[int]] | None:
        """Return the JSON of the stripes. Each stripe ends where the next one starts."""
        if self.stripes is None:
            return None
        return [[each.start, each.width, each.stripe_unit] for each in self.stripes]

    @classmethod
    def from_json(cls, position: object, since: object, log_id: object, found: object) -> LogOffset:
        """Check and decode the parts of an offset's JSON. Raises an error if one is invalid."""
        if not (isinstance(position, int) and isinstance(since, int) and 0 <= since <= position):
            raise ValueError("the positions are invalid")
        if found is None:
            return cls(position, since, int(str(log_id), 16))
        given = cast("Sequence[tuple[int, int, int]]", found)
        ends = [*(start for start, _, _ in given[1:]), position][: len(given)]  # empty if trimmed
        stripes = [
            Stripe(0, start, last, width, stripe_unit)
            for (start, width, stripe_unit), last in zip(given, ends, strict=True)
        ]
        return cls(position, since, int(str(log_id), 16), stripes)


@dataclass(frozen=True, slots=True)
class Offset:
    """The offset that Spark stores for the end of a batch.

    Attributes:
        logs: the progress in each log, by name.
        settings: how to divide the batch into tasks; None if no batch ends here, or if the offset
            is from an older version of zlog.
    """

    logs: Mapping[str, LogOffset]
    settings: Settings | None = None

    def to_json(self, *, several: bool) -> dict[str, object]:
        """Return the JSON that Spark stores. Spark compares texts, so the keys have one order.

        Args:
            several: whether the query may read several logs. If not, the JSON has another form.
        """
        settings = None if self.settings is None else self.settings.to_json()
        if several:
            logs = {name: _log_to_json(each) for name, each in sorted(self.logs.items())}
            return {"logs": logs} if settings is None else {"logs": logs, "plan": settings}
        ((name, only),) = self.logs.items()
        offset = {"position": only.position, "from": only.since}
        content = {**offset, "log": name, "id": f"{only.log_id:016x}"}
        if settings is None:
            return content
        return {**content, "plan": {"stripes": only.stripes_json(), **settings}}

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Offset:
        """Decode the JSON that Spark has stored. Raises WrongCheckpoint if it is not zlog's."""
        try:
            plan = cast("Mapping[str, object] | None", content.get("plan"))
            settings = None if plan is None else Settings.from_json(plan)
            if "logs" in content:
                found = cast("Mapping[str, Sequence[object]]", content["logs"])
                return cls({name: _log_from_json(each) for name, each in found.items()}, settings)
            only = LogOffset.from_json(
                content["position"], content["from"], content["id"], (plan or {}).get("stripes")
            )
            return cls({str(content["log"]): only}, settings)
        except (AttributeError, LookupError, TypeError, ValueError):
            raise WrongCheckpoint(
                f"the checkpoint does not belong to a zlog log: it contains {dict(content)}"
            ) from None

    def check(self, selection: Selection) -> None:
        """Raise WrongCheckpoint unless the offset belongs to a query that selects the same rows."""
        given = cast("Mapping[str, object]", selection)
        kept = cast("Mapping[str, object]", self.settings.selection if self.settings else {})
        for name, value in kept.items():
            if value != given[name]:
                raise WrongCheckpoint(
                    f"the checkpoint belongs to a query with {_shown(name, value)}, not with"
                    f" {_shown(name, given[name])}",
                    hint=f"Set {name} back to continue this query. {self._other_rows()}",
                )

    def _other_rows(self) -> str:
        if len(self.logs) != 1:
            return "To read other rows, start a query with another checkpoint."
        (only,) = self.logs.values()
        return (
            f"To read other rows from {only.position} on, let it reach this position; then start a"
            f" query with another checkpoint and startingPosition={only.position}."
        )


def _log_to_json(offset: LogOffset) -> list[object]:
    """Return a short list, because an offset of many logs is written for each batch."""
    content: list[object] = [f"{offset.log_id:016x}", offset.position]
    if offset.stripes is not None:
        content += [offset.since, offset.stripes_json()]
    return content


def _log_from_json(content: Sequence[object]) -> LogOffset:
    log_id, position, *batch = content
    since, stripes = batch or (position, None)
    return LogOffset.from_json(position, since, log_id, stripes)


def _shown(name: str, value: object) -> str:
    return f"no {name}" if value is None else f"{name}={json.dumps(value)}"
