"""Options of `append` that let a log's object decide: a condition, and all entries or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TypedDict

import click

from zlog import AppendRefused, Conflict, Log, ZlogError
from zlog.cli.batches import tags_each
from zlog.cli.input import BadInput
from zlog.cli.output import Output
from zlog.cli.parameters import POSITION, together
from zlog.cli.render import to_json
from zlog.cli.tags import tag_option
from zlog.cli.tally import Tally
from zlog.limits import APPEND_BYTES_MAX, APPEND_ENTRIES_MAX


class Condition(TypedDict):
    """Arguments of :meth:`zlog.Log.append_many`."""

    expect: int | None
    unless: list[tuple[str]]
    after: int | None


condition_options = together(
    click.option(
        "--atomic", is_flag=True, help="Append all entries or none, at consecutive positions."
    ),
    click.option(
        "--expect",
        type=POSITION,
        metavar="POSITION",
        help="Append nothing unless the first entry gets this position. Implies --atomic.",
    ),
    tag_option(
        "Append nothing if the log has an entry with this tag, or with another one if repeated."
        " Implies --atomic.",
        "--unless-tag",
        "unless",
    ),
    click.option(
        "--after",
        type=POSITION,
        metavar="POSITION",
        help="With --unless-tag, ignore entries up to this position, which you have read.",
    ),
    click.option(
        "--result-json",
        is_flag=True,
        help="Print the positions, or the conflict, as a JSON object. Implies --atomic.",
    ),
)
"""The options pass ``atomic``, ``expect``, ``unless``, ``after`` and ``result_json``."""


@dataclass
class AtomicAppends(AbstractContextManager["AtomicAppends", None]):
    """Collects all entries, and appends them together at the end of the ``with`` block.

    Attributes:
        condition: the condition under which they are appended.
        tally: counts the entries that are in the log.
        show: a function that prints the positions, or None.
        result: where the result is printed as JSON, or None.
    """

    log: Log
    tags: tuple[str, ...]
    condition: Condition
    tally: Tally
    show: Callable[[Sequence[int]], None] | None
    result: Output | None
    entries: list[bytes] = field(default_factory=list)
    size: int = 0

    def append(self, batch: Sequence[bytes]) -> None:
        """Collect a batch."""
        self.entries += batch
        self.size += sum(map(len, batch))
        if len(self.entries) > APPEND_ENTRIES_MAX or self.size > APPEND_BYTES_MAX:
            raise BadInput(
                f"the input exceeds the {APPEND_ENTRIES_MAX:,} entries or"
                f" {APPEND_BYTES_MAX >> 20} MiB that can be appended together"
            )

    def settle(self) -> None:
        """Do nothing: no batch is in flight."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        if not self.entries:
            raise BadInput("the input has no entry, so there is nothing to append")
        self.tally.sent(len(self.entries))
        tags = tags_each(self.entries, self.tags)
        try:
            positions = self.log.append_many(self.entries, tags_each=tags, **self.condition)
        except ZlogError as error:
            self.tally.sent(0)
            self.tally.failed(error)
            if isinstance(error, Conflict):
                self._print({"conflict": {"position": error.position, "tags": error.tags}})
            raise
        self.tally.acknowledged(positions)
        self._print({"positions": positions})
        if self.show is not None:
            self.show(positions)

    def _print(self, result: object) -> None:
        if self.result is not None:
            self.result.line(to_json(result))


def check_atomic(log: Log) -> None:
    """Raise an error if the log cannot append several entries atomically."""
    if not log.view.ordered:
        raise AppendRefused(
            f"log {log.name!r} is ordered by a sequencer, so appends to it are neither atomic nor"
            " conditional",
            hint="Let its object order it: `zlog reconfigure LOG --ordering object`.",
        )
